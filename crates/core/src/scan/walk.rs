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
    IgnoreRules, Scan, StatCache, Verdict,
    directory_kind::Place,
    git_directory::{holds_objects, is_git_directory, is_of_git},
    is_rule_file, read,
    rebuildable::is_rebuildable,
    stat_cache::{CachedEntry, CachedNode, Record},
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
    pub(crate) exceptions: Exceptions<'a>,
    /// Directories of the program itself, by device and inode.
    pub(crate) own: &'a [(u64, u64)],
    /// Staging areas of the program itself, inside the workspace.
    pub(crate) staging_areas: &'a [WorkspacePath],
    pub(crate) scope: &'a Scope,
    pub(crate) cache: Option<&'a Arc<StatCache>>,
    pub(crate) sink: &'a dyn ContentSink,
    pub(crate) progress: &'a Progress,
}

/// Functions and paths that decide which paths are captured although a rule excludes them.
#[derive(Clone, Copy)]
pub(crate) struct Exceptions<'a> {
    /// Paths that the caller named. A directory includes everything below it.
    pub(crate) named: &'a [WorkspacePath],
    /// Returns whether the user repository, or a repository inside the workspace, tracks this path or something below
    /// it.
    pub(crate) is_tracked: &'a (dyn Fn(&[u8]) -> bool + Sync),
    /// Called with each directory that is the top of a repository inside the workspace, before `is_tracked` is called
    /// for paths below it.
    pub(crate) meet_repository: &'a (dyn Fn(&[u8]) + Sync),
    /// Returns whether a repository borrows its objects from this directory.
    pub(crate) is_lent: &'a (dyn Fn(&Stamp) -> bool + Sync),
    /// Returns whether the index that decides about the names in this directory is the one that the cache was made
    /// with.
    pub(crate) index_is_cached: &'a (dyn Fn(&[u8]) -> bool + Sync),
    /// Returns whether the current checkpoint of the workspace, `@`, holds this path.
    pub(crate) is_held: &'a (dyn Fn(&[u8]) -> bool + Sync),
    /// Returns whether a checkpoint that is being restored holds this path. The safety checkpoint then needs it, even
    /// if the owner excluded it.
    pub(crate) is_restored: &'a (dyn Fn(&[u8]) -> bool + Sync),
    /// Returns the size of the largest file that `@` or a checkpoint that is being restored holds at this path.
    pub(crate) held_size: &'a (dyn Fn(&[u8]) -> Option<u64> + Sync),
    /// The checkpoints that the cached verdicts were made for.
    pub(crate) cached_verdicts: CachedVerdicts,
}

/// The validity of the verdicts in the stat cache about paths that checkpoints hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CachedVerdicts {
    /// They were made for `@`, and no other checkpoint counts: a name that was skipped is not held, and a name that was
    /// captured because it is held still is.
    Final,
    /// They were made for `@`, but another checkpoint counts as well.
    OfCurrent,
    /// They were made for another checkpoint.
    Stale,
}

/// Reads the workspace, or the part of it in the scope.
pub(crate) fn scan(root: &Path, options: &ScanOptions<'_>) -> Result<Scan> {
    let started = disk::coarse_now();
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
        walker.directory(&directory, stamp, b"", &rules, Place::Ordinary, cached)
    };
    let root = threads::for_trees(walk).map_err(fail)?;
    let mut unapplied_rules = walker.unapplied_rules.into_inner().unwrap_or_else(PoisonError::into_inner);
    unapplied_rules.sort();
    Ok(Scan { root, started, scope: options.scope.clone(), cache: options.cache.cloned(), unapplied_rules })
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

/// The decision about a name.
enum Judged {
    LeftOut(Reason),
    Captured { place_below: Place, exception: Option<Exception> },
}

impl<'a> Walker<'a> {
    fn directory(
        &self,
        directory: &Dir,
        stamp: Stamp,
        path: &[u8],
        above: &IgnoreRules,
        place: Place,
        record: Option<Record<'_>>,
    ) -> Result<Directory, Failure> {
        if self.options.progress.is_stopped() {
            return Err(Failure::new("continue reading", path, io::ErrorKind::Interrupted.into()));
        }
        let intact = record.filter(|record| self.is_intact(directory, &stamp, record));
        let rules = match intact {
            Some(record) if !record.has_ignore_file() => Cow::Borrowed(above),
            _ => Cow::Owned(self.rules_in(directory, path, above)?),
        };
        let fingerprint = (rules.fingerprint() ^ place.salt()).wrapping_add(named_salt(self.options.exceptions.named));
        let within = self.scope_within(path);
        // A repository inside an ignored directory does not cause files there to be captured.
        let may_track = !path.is_empty() && place.below() == Place::Ordinary;
        if let (Within::All, Some(record)) = (&within, intact)
            && record.fingerprint == fingerprint
        {
            if may_track && record.has_git() {
                (self.options.exceptions.meet_repository)(path);
            }
            if self.verdicts_stand(path, &record) {
                return self.known(directory, path, &rules, place, &record);
            }
        }
        let known: Vec<CachedEntry<'_>> = record.map(|record| record.entries().collect()).unwrap_or_default();
        let pending: Vec<Pending<'_>> = match &within {
            Within::Names(names) => names.iter().map(|name| Pending::named(name.clone(), None, &known)).collect(),
            Within::All => {
                let listed = directory.list().map_err(|source| Failure::new("list", path, source))?;
                listed.into_iter().map(|listed| Pending::named(listed.name, listed.file_type, &known)).collect()
            }
        };
        let is_listed = || pending.binary_search_by(|pending| pending.name.as_slice().cmp(b".git")).is_ok();
        if may_track && (is_listed() || matches!(within, Within::Names(_)) && directory.stamp_at(b".git").is_ok()) {
            (self.options.exceptions.meet_repository)(path);
        }
        self.options.progress.add_entries(pending.len() as u64);
        let entries = self.entries(directory, path, &rules, place, pending)?;
        let mut read = Directory::default().with_entries(entries);
        read.stamp = stamp;
        read.fingerprint = fingerprint;
        Ok(read)
    }

    /// Returns whether the names in the directory are certainly unchanged.
    fn is_intact(&self, directory: &Dir, stamp: &Stamp, record: &Record<'_>) -> bool {
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

    /// Returns whether every cached verdict in the directory is still valid.
    fn verdicts_stand(&self, path: &[u8], record: &Record<'_>) -> bool {
        if !record.has_verdicts() {
            return true;
        }
        let index_is_cached = (self.options.exceptions.index_is_cached)(path);
        record.entries().all(|entry| self.verdict_stands(path, &entry, index_is_cached))
    }

    /// Returns whether the verdict about a name is still valid. Checks the names that something other than the rules
    /// could decide about.
    fn verdict_stands(&self, path: &[u8], entry: &CachedEntry<'_>, index_is_cached: bool) -> bool {
        let exceptions = &self.options.exceptions;
        let path = || join(path, entry.name.to_bytes());
        match (entry.exception, &entry.node) {
            (Some(Exception::Held), _) => exceptions.cached_verdicts != CachedVerdicts::Stale,
            (Some(Exception::Tracked), _) => index_is_cached || (exceptions.is_tracked)(&path()),
            (None, CachedNode::Skipped(Reason::Ignored | Reason::Rebuildable, _)) => {
                (index_is_cached || !(exceptions.is_tracked)(&path()))
                    && (exceptions.cached_verdicts == CachedVerdicts::Final || !self.is_held(&path()))
            }
            _ => true,
        }
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
        place: Place,
        pending: Vec<Pending<'_>>,
    ) -> Result<Vec<Entry>, Failure> {
        let one = |pending: Pending<'_>| self.entry(directory, path, rules, place, pending).transpose();
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
        place: Place,
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
        // An ignored name needs no stat: it is skipped whatever its type is.
        if pending.is_judged
            && let Some(CachedEntry { node: CachedNode::Skipped(Reason::Ignored, _), .. }) = pending.cached
        {
            return with(Node::Skipped(Reason::Ignored, Stamp::default()), None, name);
        }
        if !pending.is_judged
            && let Some(hint) = pending.file_type
        {
            match self.judge(&child, hint, rules, place) {
                Judged::LeftOut(Reason::Ignored) => {
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
                Judged::Captured { place_below: place.below(), exception: None }
            }
            _ => self.judge(&child, file_type, rules, place),
        };
        let (place_below, exception) = match judged {
            Judged::LeftOut(reason) => return with(Node::Skipped(reason, stamp), None, name),
            Judged::Captured { place_below, exception } => (place_below, exception),
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
                        place: place_below,
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

    /// Marks a file over the size limit as captured because a checkpoint holds it. Otherwise it would have been
    /// skipped.
    fn exception_for_size(&self, exception: Option<Exception>, node: &Node, path: &[u8]) -> Option<Exception> {
        match node {
            Node::File(file) if self.is_over_limit(file.stamp.size, path) => exception.or(Some(Exception::Held)),
            _ => exception,
        }
    }

    /// Returns whether a file is larger than the settings allow. The limit does not apply to rule files that are small
    /// enough to be applied.
    fn is_over_limit(&self, size: u64, path: &[u8]) -> bool {
        size > self.options.settings.max_file_bytes && !(size <= MAX_RULE_BYTES && is_rule_file(path, false))
    }

    /// Returns whether a checkpoint holds a file at this path that is at least this large.
    fn is_held_as_large(&self, size: u64, path: &[u8]) -> bool {
        (self.options.exceptions.held_size)(path).is_some_and(|held| held >= size)
    }

    /// Returns whether the stat cache alone proves that no checkpoint that counts holds a name.
    pub(super) fn is_certainly_unheld(&self, cached: Option<&CachedEntry<'_>>) -> bool {
        self.options.exceptions.cached_verdicts == CachedVerdicts::Final
            && matches!(cached, Some(CachedEntry { node: CachedNode::Skipped(..), .. }))
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
    pub(super) fn record_of(&self, cached: Option<&CachedEntry<'_>>) -> Option<Record<'a>> {
        match (cached?.node, self.options.cache) {
            (CachedNode::Directory(place), Some(cache)) => cache.record(place),
            _ => None,
        }
    }

    pub(super) fn subdirectory(
        &self,
        directory: Dir,
        found: &Subdirectory<'_>,
        rules: &IgnoreRules,
    ) -> Result<Option<Node>, Failure> {
        let Subdirectory { parent, name, path, mut place, record, .. } = *found;
        let fail = |source: io::Error| Failure::new("read", path, source);
        let stamp = directory.stamp().map_err(fail)?;
        if self.is_own(path, &stamp) {
            return Ok(Some(Node::Skipped(Reason::Own, stamp)));
        }
        if path.find_iter("/").count() >= MAX_DEPTH {
            return Ok(Some(Node::Skipped(Reason::Deep, stamp)));
        }
        let is_known = || record.is_some_and(|record| self.is_intact(&directory, &stamp, &record));
        if is_git_directory(&directory, record.filter(|_| is_known())) && !(self.options.exceptions.is_tracked)(path) {
            place = place.of_git();
        }
        if name == b"objects" && holds_objects(&directory) && self.is_lent(path, &stamp) {
            return Ok(Some(Node::Skipped(Reason::Git, stamp)));
        }
        // A mark is a file of a certain name. If the record has no such name, there is no mark.
        let is_unmarked =
            || record.is_some_and(|record| !record.has_mark() && self.is_intact(&directory, &stamp, &record));
        if place == Place::Ordinary
            && !self.options.settings.capture_rebuildable
            && match is_rebuildable(parent, name, &directory, is_unmarked) {
                Err(error) if is_shortage(&error) => return Err(fail(error)),
                found => found.unwrap_or(false),
            }
        {
            match self.exception(path, true, rules, found.is_certainly_unheld) {
                Some(Exception::Named) if self.is_named(path) => place = Place::Named,
                Some(_) => place = Place::Ignored(Reason::Rebuildable),
                None => return Ok(Some(Node::Skipped(Reason::Rebuildable, stamp))),
            }
        }
        match self.directory(&directory, stamp, path, rules, place, record) {
            Ok(read) => Ok(Some(Node::Directory(Box::new(read)))),
            // A directory that opens but can't be listed is skipped like an unreadable file.
            Err(failure) if failure.path == path && !is_shortage(&failure.source) => {
                Ok(Some(Node::Skipped(Reason::Unreadable, stamp)))
            }
            Err(failure) => Err(failure),
        }
    }

    /// Returns whether a directory belongs to the program. Its location decides, never its contents.
    fn is_own(&self, path: &[u8], stamp: &Stamp) -> bool {
        self.options.own.contains(&(stamp.device, stamp.inode))
            || self.options.staging_areas.iter().any(|area| area.as_bytes() == path)
    }

    fn judge(&self, path: &[u8], file_type: FileType, rules: &IgnoreRules, place: Place) -> Judged {
        let captured = |place_below, exception| Judged::Captured { place_below, exception };
        let is_directory = file_type == FileType::Directory;
        if matches!(place, Place::GitDirectory(_)) && is_of_git(name_of(path), file_type) {
            return Judged::LeftOut(Reason::Git);
        }
        let place = place.below();
        let reason = match place {
            Place::Named => return captured(Place::Named, Some(Exception::Named)),
            Place::Ignored(reason) => reason,
            Place::Ordinary | Place::GitDirectory(_) if is_rule_file(path, is_directory) => {
                return captured(Place::Ordinary, None);
            }
            Place::Ordinary | Place::GitDirectory(_) => match rules.judge(path, is_directory) {
                Verdict::Captured => return captured(Place::Ordinary, None),
                Verdict::Ignored => Reason::Ignored,
            },
        };
        if place == Place::Ordinary && !is_directory && rules.is_precious(path) {
            return captured(place, Some(Exception::Named));
        }
        if self.is_named(path) || rules.is_included(path, is_directory) {
            return captured(Place::Named, Some(Exception::Named));
        }
        match self.exception(path, is_directory, rules, false) {
            Some(exception) => captured(Place::Ignored(reason), Some(exception)),
            None => Judged::LeftOut(reason),
        }
    }

    fn is_lent(&self, path: &[u8], stamp: &Stamp) -> bool {
        (self.options.exceptions.is_lent)(stamp) && !(self.options.exceptions.is_tracked)(path)
    }

    /// Returns the exception that captures a path, or something below it, although a rule excludes it.
    fn exception(
        &self,
        path: &[u8],
        is_directory: bool,
        rules: &IgnoreRules,
        is_certainly_unheld: bool,
    ) -> Option<Exception> {
        let exceptions = &self.options.exceptions;
        let is_above_named = || {
            let here = WorkspacePath::new(path).unwrap_or_default();
            exceptions.named.iter().any(|named| named.is_within(&here))
        };
        if self.is_named(path) || (is_directory && (is_above_named() || rules.may_include_below(path))) {
            return Some(Exception::Named);
        }
        if (exceptions.is_tracked)(path) {
            return Some(Exception::Tracked);
        }
        let is_held = || {
            (exceptions.is_restored)(path)
                || (exceptions.is_held)(path) && !rules.is_excluded_by_owner(path, is_directory)
        };
        (!is_certainly_unheld && is_held()).then_some(Exception::Held)
    }

    fn is_held(&self, path: &[u8]) -> bool {
        (self.options.exceptions.is_restored)(path) || (self.options.exceptions.is_held)(path)
    }

    fn is_named(&self, path: &[u8]) -> bool {
        let named = self.options.exceptions.named;
        !named.is_empty() && {
            let here = WorkspacePath::new(path).unwrap_or_default();
            named.iter().any(|named| here.is_within(named))
        }
    }
}

/// An opened directory that is not a node yet.
pub(super) struct Subdirectory<'a> {
    pub(super) parent: &'a Dir,
    pub(super) name: &'a [u8],
    pub(super) path: &'a [u8],
    pub(super) place: Place,
    /// The directory's record in the stat cache.
    pub(super) record: Option<Record<'a>>,
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
    fn named(name: BString, file_type: Option<FileType>, known: &[CachedEntry<'c>]) -> Self {
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

fn name_of(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
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
