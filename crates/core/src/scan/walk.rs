//! Reads the workspace into a [`Scan`].
//!
//! Decides nothing about history: [`save`](crate::Workspace::save) compares scans and publishes.

use std::{
    borrow::Cow,
    collections::HashMap,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use bstr::{BString, ByteSlice};
use rayon::prelude::*;

use super::{
    CapturePolicy, ChangedPaths, IgnoreRules, Scan, StatCache,
    changed::Extent,
    directory_kind::DirectoryKind,
    git_directory::{holds_objects, is_git_directory},
    judge::Judged,
    read,
    rebuildable::is_rebuildable,
    stat_cache::{CachedDirectory, CachedEntry, CachedNode},
};
use crate::{
    disk::{self, Dir, FileType},
    error::{Error, Result},
    events::Progress,
    model::{
        ContentSink, Directory, Entry, Exception, MAX_RULE_BYTES, Node, OutsideRules, Reason, Scope, Stamp,
        WorkspacePath, is_safe_name, is_shortage,
    },
    settings::ScanSettings,
    threads,
};

/// The inputs of a scan.
pub(crate) struct ScanOptions<'a> {
    pub(crate) settings: &'a ScanSettings,
    pub(crate) outside: &'a OutsideRules,
    pub(crate) policy: &'a dyn CapturePolicy,
    /// Directories of the program itself, by device and inode.
    pub(crate) own: &'a [(u64, u64)],
    /// Staging areas of the program itself, inside the workspace.
    pub(crate) staging_areas: &'a [WorkspacePath],
    /// Symlinks of the program itself, inside the workspace.
    pub(crate) links: &'a [OwnLink<'a>],
    pub(crate) scope: &'a Scope,
    pub(crate) cache: Option<&'a Arc<StatCache>>,
    /// The directories that may differ from the cache. `None` if all of them may.
    pub(crate) changed: Option<&'a ChangedPaths>,
    pub(crate) sink: &'a dyn ContentSink,
    pub(crate) progress: &'a Progress,
}

/// A symlink that the program made inside a fork, to a directory that is not captured.
pub(crate) struct OwnLink<'a> {
    pub(crate) path: &'a WorkspacePath,
    pub(crate) target: Vec<u8>,
}

/// Reads the workspace, or the part of it in the scope.
pub(crate) fn scan(root: &Path, options: &ScanOptions<'_>) -> Result<Scan> {
    let started = disk::coarse_now();
    if let Some(cache) = options.cache.filter(|_| *options.scope == Scope::Whole && options.changed.is_none()) {
        cache.read_whole();
    }
    let walker = Walker { options, is_reliable: Mutex::default(), unapplied_rules: Mutex::default() };
    let fail = |source: Failure| {
        if options.progress.is_stopped() {
            return Error::Stopped;
        }
        Error::Io { action: source.action, path: root.join(source.path.to_path_lossy()), source: source.source }
    };
    let walk = || -> Result<Directory, Failure> {
        let directory = Dir::open_resolved(root).map_err(|source| Failure::new("open", b"", source))?;
        let stamp = directory.stamp().map_err(|source| Failure::new("read", b"", source))?;
        let rules = IgnoreRules::new(options.outside, options.settings);
        let cached = options.cache.and_then(|cache| cache.root());
        walker.directory(&directory, stamp, b"", &rules, DirectoryKind::Ordinary, cached)
    };
    let root = threads::for_trees(walk).map_err(fail)?;
    let mut unapplied_rules = walker.unapplied_rules.into_inner().unwrap_or_else(PoisonError::into_inner);
    unapplied_rules.sort();
    Ok(Scan {
        root,
        started,
        scope: options.scope.clone(),
        cache: options.cache.cloned(),
        unapplied_rules,
        watch: None,
    })
}

pub(super) struct Failure {
    action: &'static str,
    path: BString,
    source: io::Error,
}

impl Failure {
    fn new(action: &'static str, path: &[u8], source: io::Error) -> Self {
        Self { action, path: path.into(), source }
    }
}

/// The maximum depth of nested directories. Each level takes a file handle and up to 5 KiB of stack. A process may have
/// no more than 1024 handles, and a stack no more than 2 MiB.
pub(crate) const MAX_DEPTH: usize = 320;

pub(super) struct Walker<'a> {
    pub(super) options: &'a ScanOptions<'a>,
    /// Whether the times of a directory reflect every change, by device.
    is_reliable: Mutex<HashMap<u64, bool>>,
    /// Ignore files that are too large to be applied.
    unapplied_rules: Mutex<Vec<WorkspacePath>>,
}

/// A listed name that is not an entry yet.
pub(super) struct Pending<'c> {
    pub(super) name: BString,
    pub(super) file_type: Option<FileType>,
    pub(super) cached: Option<CachedEntry<'c>>,
    /// Set if the cached verdict of the rules still applies.
    pub(super) is_judged: bool,
}

impl<'a> Walker<'a> {
    fn directory(
        &self,
        directory: &Dir,
        stamp: Stamp,
        path: &[u8],
        above: &IgnoreRules,
        kind: DirectoryKind,
        record: Option<CachedDirectory<'_>>,
    ) -> Result<Directory, Failure> {
        if self.options.progress.is_stopped() {
            return Err(Failure::new("continue reading", path, io::ErrorKind::Interrupted.into()));
        }
        let extent = self.extent(path);
        let intact = record.filter(|record| match extent {
            // No event since the scan that made the record.
            Extent::Nothing | Extent::Below => record.stamp == stamp,
            Extent::Here | Extent::Whole => self.is_intact(directory, &stamp, record),
        });
        let rules = match intact {
            Some(record) if !record.has_ignore_file() => Cow::Borrowed(above),
            _ => Cow::Owned(self.rules_in(directory, path, above)?),
        };
        let fingerprint = (rules.fingerprint() ^ kind.salt()).wrapping_add(named_salt(self.options.policy.named()));
        let within = self.scope_within(path);
        // A repository inside an ignored directory does not cause files there to be captured.
        let may_track = !path.is_empty() && kind.below() == DirectoryKind::Ordinary;
        if let (Within::All, Some(record)) = (&within, intact)
            && record.fingerprint == fingerprint
        {
            if may_track && record.has_git() {
                self.options.policy.meet_repository(path);
            }
            if let (Extent::Nothing, Some(cache)) = (extent, self.options.cache) {
                return Ok(record.to_directory(cache));
            }
            if self.verdicts_stand(path, &record) {
                return self.read_cached(directory, path, &rules, kind, &record);
            }
        }
        let known: Vec<CachedEntry<'_>> = record.map(|record| record.entries().collect()).unwrap_or_default();
        let pending: Vec<Pending<'_>> = match &within {
            Within::Names(names) => names.iter().map(|name| Pending::with_cached(name.clone(), None, &known)).collect(),
            Within::All => {
                let listed = directory.list().map_err(|source| Failure::new("list", path, source))?;
                listed.into_iter().map(|listed| Pending::with_cached(listed.name, listed.file_type, &known)).collect()
            }
        };
        let is_listed = || pending.binary_search_by(|pending| pending.name.as_slice().cmp(b".git")).is_ok();
        if may_track && (is_listed() || matches!(within, Within::Names(_)) && directory.stamp_at(b".git").is_ok()) {
            self.options.policy.meet_repository(path);
        }
        self.options.progress.add_entries(pending.len() as u64);
        let entries = self.entries(directory, path, &rules, kind, pending)?;
        let mut read = Directory::default().with_entries(entries);
        read.stamp = stamp;
        read.fingerprint = fingerprint;
        Ok(read)
    }

    /// Returns how far a directory may differ from the cache.
    pub(super) fn extent(&self, path: &[u8]) -> Extent {
        self.options.changed.map_or(Extent::Whole, |changed| changed.extent(path))
    }

    /// Returns whether the names in the directory are certainly unchanged.
    fn is_intact(&self, directory: &Dir, stamp: &Stamp, record: &CachedDirectory<'_>) -> bool {
        record.is_settled() && record.stamp == *stamp && self.times_are_reliable(directory, stamp.device)
    }

    /// Returns the rules in the directory: those from above and its own ignore file.
    fn rules_in(&self, directory: &Dir, path: &[u8], above: &IgnoreRules) -> Result<IgnoreRules, Failure> {
        let read = || -> io::Result<Option<Vec<u8>>> {
            match directory.try_stamp_at(b".gitignore")? {
                // Git does not follow a symlink here either.
                Some(stamp) if FileType::of(&stamp) == FileType::File => {}
                _ => return Ok(None),
            }
            let mut bytes = Vec::new();
            directory.open_file(b".gitignore")?.take(MAX_RULE_BYTES + 1).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        };
        match read() {
            Ok(Some(bytes)) => {
                if bytes.len() as u64 > MAX_RULE_BYTES {
                    let file = WorkspacePath::new(join(path, b".gitignore")).unwrap_or_default();
                    self.unapplied_rules.lock().unwrap_or_else(PoisonError::into_inner).push(file);
                }
                Ok(above.below(path, &bytes))
            }
            Ok(None) => Ok(above.clone()),
            Err(error) if is_shortage(&error) => Err(Failure::new("read the ignore rules of", path, error)),
            // Unreadable rules are not applied; git does the same. The file itself is reported as unreadable.
            Err(_) => Ok(above.clone()),
        }
    }

    fn scope_within(&self, path: &[u8]) -> Within {
        let Scope::Paths(paths) = self.options.scope else { return Within::All };
        let here = WorkspacePath::new(path).unwrap_or_default();
        if self.options.scope.contains(&here) {
            return Within::All;
        }
        let depth = here.parts().count();
        let mut names: Vec<BString> = paths
            .iter()
            .filter(|wanted| wanted.is_within(&here))
            .filter_map(|wanted| wanted.parts().nth(depth).map(BString::from))
            .collect();
        names.sort();
        names.dedup();
        Within::Names(names)
    }

    fn times_are_reliable(&self, directory: &Dir, device: u64) -> bool {
        let mut known = self.is_reliable.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(device).or_insert_with(|| disk::has_reliable_directory_times(directory).unwrap_or(false))
    }

    fn entries(
        &self,
        directory: &Dir,
        path: &[u8],
        rules: &IgnoreRules,
        kind: DirectoryKind,
        pending: Vec<Pending<'_>>,
    ) -> Result<Vec<Entry>, Failure> {
        let one = |pending: Pending<'_>| self.entry(directory, path, rules, kind, pending).transpose();
        // Checking unchanged files costs less than handing them to another thread, so only longer lists are processed
        // in parallel.
        if pending.len() < 8 && !pending.iter().any(Pending::may_be_directory) {
            return pending.into_iter().filter_map(one).collect();
        }
        pending.into_par_iter().with_min_len(4).filter_map(one).collect()
    }

    pub(super) fn entry(
        &self,
        directory: &Dir,
        path: &[u8],
        rules: &IgnoreRules,
        kind: DirectoryKind,
        pending: Pending<'_>,
    ) -> Result<Option<Entry>, Failure> {
        let name = pending.name;
        let child = join(path, &name);
        let fail = |source: io::Error| Failure::new("read", &child, source);
        let with = |node: Node, exception: Option<Exception>, name: BString| Ok(Some(Entry { name, node, exception }));
        if name.as_slice() == b".git" {
            return with(Node::Skipped(Reason::Git, Stamp::default()), None, name);
        }
        if !is_safe_name(&name) {
            return with(Node::Skipped(Reason::Name, Stamp::default()), None, name);
        }
        if let Some(stamp) = self.own_link(directory, &name, &child) {
            return with(Node::Skipped(Reason::Own, stamp), None, name);
        }
        // An ignored name needs no stat: it is skipped whatever its type is.
        if pending.is_judged
            && let Some(CachedEntry { node: CachedNode::Skipped(Reason::Ignored, _), .. }) = pending.cached
        {
            return with(Node::Skipped(Reason::Ignored, Stamp::default()), None, name);
        }
        if !pending.is_judged
            && let Some(hint) = pending.file_type
        {
            match self.judge(&child, hint, rules, kind) {
                Judged::Skipped(Reason::Ignored) => {
                    return with(Node::Skipped(Reason::Ignored, Stamp::default()), None, name);
                }
                // A new file has to be opened in any case, and that tells as much as a stat.
                Judged::Captured { exception, .. } if hint == FileType::File && pending.cached.is_none() => {
                    match self.contents(directory, &name, &child).map_err(fail)? {
                        None => return Ok(None),
                        // Another process may have replaced the file after it was listed.
                        Some(Node::Skipped(..)) => {}
                        Some(node) => {
                            let exception = self.exception_for_size(exception, &node, &child);
                            return with(node, exception, name);
                        }
                    }
                }
                _ => {}
            }
        }
        let stamp = match directory.try_stamp_at(&name) {
            Ok(Some(stamp)) => stamp,
            Ok(None) => return Ok(None),
            Err(error) if is_shortage(&error) => return Err(fail(error)),
            Err(_) => return with(Node::Skipped(Reason::Unreadable, Stamp::default()), None, name),
        };
        let file_type = FileType::of(&stamp);
        let judged = match &pending.cached {
            // An exception is cheap to determine again. All other names were captured by the rules, which have not
            // changed.
            Some(cached)
                if pending.is_judged
                    && cached.exception.is_none()
                    && !matches!(cached.node, CachedNode::Skipped(..)) =>
            {
                Judged::Captured { kind_below: kind.below(), exception: None }
            }
            _ => self.judge(&child, file_type, rules, kind),
        };
        let (kind_below, exception) = match judged {
            Judged::Skipped(reason) => return with(Node::Skipped(reason, stamp), None, name),
            Judged::Captured { kind_below, exception } => (kind_below, exception),
        };
        let node = match file_type {
            FileType::File => self.file(directory, &name, &child, stamp, pending.cached.as_ref()).map_err(fail)?,
            FileType::Symlink => self.symlink(directory, &name, stamp, pending.cached.as_ref()).map_err(fail)?,
            FileType::Special => Some(Node::Skipped(Reason::Special, stamp)),
            FileType::Directory => match directory.open_dir(&name) {
                Ok(opened) => {
                    let found = Subdirectory {
                        parent: directory,
                        name: &name,
                        path: &child,
                        kind: kind_below,
                        record: self.record_of(pending.cached.as_ref()),
                        is_certainly_unheld: self.is_certainly_unheld(pending.cached.as_ref()),
                    };
                    self.subdirectory(opened, &found, rules)?
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => Some(read::refusal(directory, &name, error).map_err(fail)?),
            },
        };
        match node {
            Some(node) => {
                let exception = self.exception_for_size(exception, &node, &child);
                with(node, exception, name)
            }
            None => Ok(None),
        }
    }

    fn file(
        &self,
        directory: &Dir,
        name: &[u8],
        path: &[u8],
        stamp: Stamp,
        cached: Option<&CachedEntry<'_>>,
    ) -> io::Result<Option<Node>> {
        if let Some(CachedEntry { node: CachedNode::File(file, true), .. }) = cached
            && file.stamp == stamp
        {
            if self.is_over_limit(stamp.size, path) && !self.is_held_as_large(stamp.size, path) {
                return Ok(Some(Node::Skipped(Reason::TooLarge, stamp)));
            }
            return Ok(Some(Node::File(*file)));
        }
        self.contents(directory, name, path)
    }

    fn contents(&self, directory: &Dir, name: &[u8], path: &[u8]) -> io::Result<Option<Node>> {
        let read = |max_bytes| read::read_file(directory, name, max_bytes, self.options.sink);
        let mut node = read(self.options.settings.max_file_bytes)?;
        // The limit may have been lowered since the file was captured, or since the checkpoint that is being restored
        // was taken.
        if let Some(Node::Skipped(Reason::TooLarge, stamp)) = &node
            && (!self.is_over_limit(stamp.size, path) || self.is_held_as_large(stamp.size, path))
        {
            node = read(stamp.size)?;
        }
        if let Some(Node::File(file)) = &node {
            self.options.progress.add_bytes(file.stamp.size);
        }
        Ok(node)
    }

    fn symlink(
        &self,
        directory: &Dir,
        name: &[u8],
        stamp: Stamp,
        cached: Option<&CachedEntry<'_>>,
    ) -> io::Result<Option<Node>> {
        if let Some(CachedEntry { node: CachedNode::Symlink(link, true), .. }) = cached
            && link.stamp == stamp
        {
            return Ok(Some(Node::Symlink(*link)));
        }
        read::read_link(directory, name, self.options.sink)
    }

    /// Returns the cached record of a directory. Returns `None` if the name was not a directory when it was cached.
    pub(super) fn record_of(&self, cached: Option<&CachedEntry<'_>>) -> Option<CachedDirectory<'a>> {
        match (cached?.node, self.options.cache) {
            (CachedNode::Directory(kind), Some(cache)) => cache.record(kind),
            _ => None,
        }
    }

    pub(super) fn subdirectory(
        &self,
        directory: Dir,
        found: &Subdirectory<'_>,
        rules: &IgnoreRules,
    ) -> Result<Option<Node>, Failure> {
        let Subdirectory { parent, name, path, mut kind, record, .. } = *found;
        let fail = |source: io::Error| Failure::new("read", path, source);
        let stamp = directory.stamp().map_err(fail)?;
        if self.is_own(path, &stamp) {
            return Ok(Some(Node::Skipped(Reason::Own, stamp)));
        }
        if path.find_iter("/").count() >= MAX_DEPTH {
            return Ok(Some(Node::Skipped(Reason::Deep, stamp)));
        }
        let is_known = || record.is_some_and(|record| self.is_intact(&directory, &stamp, &record));
        if is_git_directory(&directory, record.filter(|_| is_known())) && !self.options.policy.is_tracked(path) {
            kind = kind.of_git();
        }
        if name == b"objects" && holds_objects(&directory) && self.is_borrowed_from(path, &stamp) {
            return Ok(Some(Node::Skipped(Reason::Git, stamp)));
        }
        // A mark is a file of a certain name. If the record has no such name, there is no mark.
        let is_unmarked =
            || record.is_some_and(|record| !record.has_mark() && self.is_intact(&directory, &stamp, &record));
        if kind == DirectoryKind::Ordinary
            && !self.options.settings.capture_rebuildable
            && match is_rebuildable(parent, name, &directory, is_unmarked) {
                Err(error) if is_shortage(&error) => return Err(fail(error)),
                found => found.unwrap_or(false),
            }
        {
            match self.exception(path, true, rules, found.is_certainly_unheld) {
                Some(Exception::Named) if self.is_named(path) => kind = DirectoryKind::Named,
                Some(_) => kind = DirectoryKind::Ignored(Reason::Rebuildable),
                None => return Ok(Some(Node::Skipped(Reason::Rebuildable, stamp))),
            }
        }
        match self.directory(&directory, stamp, path, rules, kind, record) {
            Ok(read) => Ok(Some(Node::Directory(Box::new(read)))),
            // A directory that opens but can't be listed is skipped like an unreadable file.
            Err(failure) if failure.path == path && !is_shortage(&failure.source) => {
                Ok(Some(Node::Skipped(Reason::Unreadable, stamp)))
            }
            Err(failure) => Err(failure),
        }
    }
}

/// An opened directory that is not a node yet.
pub(super) struct Subdirectory<'a> {
    pub(super) parent: &'a Dir,
    pub(super) name: &'a [u8],
    pub(super) path: &'a [u8],
    pub(super) kind: DirectoryKind,
    /// The directory's record in the stat cache.
    pub(super) record: Option<CachedDirectory<'a>>,
    /// Set if the stat cache proves that no checkpoint that counts holds the directory.
    pub(super) is_certainly_unheld: bool,
}

/// The part of a directory that is in the scope.
enum Within {
    All,
    Names(Vec<BString>),
}

impl<'c> Pending<'c> {
    /// Creates a pending name with its cached entry, if there is one.
    fn with_cached(name: BString, file_type: Option<FileType>, known: &[CachedEntry<'c>]) -> Self {
        let position = known.binary_search_by(|entry| entry.name.to_bytes().cmp(&name)).ok();
        Self { cached: position.map(|position| known[position]), name, file_type, is_judged: false }
    }

    fn may_be_directory(&self) -> bool {
        match (&self.cached, self.file_type) {
            (_, Some(file_type)) => file_type == FileType::Directory,
            (Some(cached), None) => matches!(cached.node, CachedNode::Directory(_)),
            (None, None) => true,
        }
    }
}

fn named_salt(named: &[WorkspacePath]) -> u64 {
    named.iter().fold(0, |salt, path| xxhash_rust::xxh3::xxh3_64_with_seed(path.as_bytes(), salt))
}

pub(super) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}

trait ToPathLossy {
    fn to_path_lossy(&self) -> PathBuf;
}

impl ToPathLossy for BString {
    fn to_path_lossy(&self) -> PathBuf {
        use std::os::unix::ffi::OsStrExt;
        PathBuf::from(std::ffi::OsStr::from_bytes(self.as_bytes()))
    }
}
