//! Finds the repository around the workspace, and reads it from its files.

use std::{
    cell::RefCell,
    io,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    thread,
};

use bstr::ByteSlice;

use super::{
    dirty::MAX_DIRTY_FILES,
    index::{Index, SUBMODULE},
};
use crate::{
    disk,
    model::{GitChanges, GitState, MAX_RULE_BYTES, OutsideRules, Stamp},
    scan::{IgnoreRules, RuleVerdict},
    settings::ScanSettings,
};

/// The parts of the user's git configuration that depend on the environment of the process.
#[derive(Debug, Clone, Default)]
pub struct GitEnvironment {
    /// The home directory, for `~` in a configured path.
    pub home: Option<PathBuf>,
    /// The configuration files of the system and of the user, lowest precedence first.
    pub config_files: Vec<PathBuf>,
    /// The excludes file that is used if no configuration names one.
    pub default_excludes: Option<PathBuf>,
}

/// The location of the user repository, and what is checked out there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitPosition {
    /// The directory that contains its `.git`.
    pub top: PathBuf,
    /// The branch. `None` if HEAD is detached, or the repository keeps its refs in a reftable.
    pub branch: Option<String>,
    /// The commit. `None` before the first commit, or if the repository keeps its refs in a reftable.
    pub commit: Option<String>,
}

/// A repository around the workspace.
pub(crate) struct UserRepository {
    pub(super) git_dir: PathBuf,
    pub(super) common_dir: PathBuf,
    /// The path of the workspace in the repository, with a trailing slash. Empty at the top.
    pub(super) prefix: Vec<u8>,
    pub(super) top: PathBuf,
    index_stamp: OnceLock<Option<Stamp>>,
    index: Arc<OnceLock<Option<Index>>>,
}

impl UserRepository {
    /// Returns the repository that contains the workspace, if there is one.
    pub(crate) fn around(root: &Path) -> Option<Self> {
        root.ancestors().find_map(|top| Self::with_top(root, top).ok().flatten())
    }

    /// Returns the repository whose top directory is the workspace. Returns `None` if there is certainly none, and an
    /// error if that is unknown.
    pub(crate) fn at(root: &Path) -> io::Result<Option<Self>> {
        Self::with_top(root, root)
    }

    fn with_top(root: &Path, top: &Path) -> io::Result<Option<Self>> {
        use std::os::unix::ffi::OsStrExt;
        let Some(git_dir) = git_dir_at(top)? else { return Ok(None) };
        let common_dir = common_dir_of(&git_dir)?;
        let mut prefix = root.strip_prefix(top).map_err(io::Error::other)?.as_os_str().as_bytes().to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        let (index_stamp, index) = (OnceLock::new(), Arc::default());
        Ok(Some(Self { git_dir, common_dir, prefix, top: top.to_owned(), index_stamp, index }))
    }

    /// Returns the directory of the repository's own files.
    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Returns whether the repository tracks this path of the workspace or something below it.
    pub(crate) fn is_tracked(&self, path: &[u8]) -> bool {
        let Some(index) = self.index() else { return false };
        let full = [self.prefix.as_slice(), path].concat();
        // The entry of a submodule stands for a separate repository, not for files that this one tracks.
        let is_file = |position: usize| index.entry(position).mode != SUBMODULE;
        index.of_path(&full).any(is_file)
            || index.with_prefix(0..index.len(), &[full.as_slice(), b"/"].concat()).any(is_file)
            || index.is_below_directory(&full)
    }

    /// Returns the stamp that the index had before it was read. Returns `None` if there is no index.
    pub(crate) fn index_stamp(&self) -> Option<Stamp> {
        *self.index_stamp.get_or_init(|| disk::stamp_following(&self.index_path()).ok()?)
    }

    pub(super) fn index(&self) -> Option<&Index> {
        self.index_stamp();
        self.index.get_or_init(|| Index::at(self.index_path(), self.object_hash())).as_ref()
    }

    /// Starts to read the index in the background, for a caller that will need it soon.
    pub(crate) fn read_index_ahead(&self) {
        self.index_stamp();
        let (index, path, hash) = (Arc::clone(&self.index), self.index_path(), self.object_hash());
        let read = move || {
            index.get_or_init(|| Index::at(path, hash));
        };
        // If the thread can't be started, the index is read on first use.
        drop(thread::Builder::new().name("index".into()).spawn(read));
    }

    /// Returns the complete index, parsed by gitoxide.
    pub(super) fn parsed_index(&self) -> Option<gix_index::File> {
        super::index::parsed(&self.index_path(), self.object_hash())
    }

    pub(super) fn index_path(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    pub(super) fn object_hash(&self) -> gix_hash::Kind {
        let format = self.local_config().and_then(|config| config.string("extensions.objectFormat"));
        match format {
            Some(format) if format.eq_ignore_ascii_case(b"sha256") => gix_hash::Kind::Sha256,
            _ => gix_hash::Kind::Sha1,
        }
    }

    fn local_config(&self) -> Option<gix_config::File> {
        let bytes = disk::read_following(&self.common_dir.join("config")).ok()??;
        let metadata = gix_config::file::Metadata::from(gix_config::Source::Local);
        gix_config::File::from_bytes_no_includes(&bytes, metadata, Default::default()).ok()
    }

    /// Returns the ignore rules from outside the workspace.
    pub(crate) fn outside_rules(&self, environment: &GitEnvironment, files: &RuleFiles) -> OutsideRules {
        let read = |path: PathBuf| files.read(path);
        let local = self.local_config().and_then(|config| config.string("core.excludesFile"));
        let global_excludes = match local {
            Some(named) => expand(&named, environment.home.as_deref(), &self.top).map(read).unwrap_or_default(),
            None => global_excludes(environment, files),
        };
        let mut rules = OutsideRules {
            info_exclude: read(self.common_dir.join("info/exclude")),
            global_excludes,
            prefix: self.prefix.clone(),
            above: Vec::new(),
        };
        if self.prefix.is_empty() {
            return rules;
        }
        let mut at = Vec::new();
        let mut directory = self.top.clone();
        for part in self.prefix.trim_end_with(|c| c == '/').split_str("/") {
            rules.above.push((at.clone(), read(directory.join(".gitignore"))));
            at.extend_from_slice(part);
            at.push(b'/');
            directory.push(part.to_path_lossy());
        }
        rules.above.retain(|(_, bytes)| !bytes.is_empty());
        // The outer repository may ignore the workspace, for instance if a home directory is kept in git and the
        // workspace is a project below it. The rules of that repository then do not apply: they would exclude
        // everything.
        if self.ignores_the_workspace(&rules) {
            return OutsideRules { global_excludes: rules.global_excludes, ..OutsideRules::default() };
        }
        rules
    }

    fn ignores_the_workspace(&self, rules: &OutsideRules) -> bool {
        let from_top = OutsideRules { prefix: Vec::new(), ..rules.clone() };
        let judge = IgnoreRules::new(&from_top, &ScanSettings { precious: Vec::new(), ..ScanSettings::default() });
        let path = self.prefix.trim_end_with(|c| c == '/');
        let ends = path.find_iter("/").chain([path.len()]);
        let is_ignored = ends.into_iter().any(|end| judge.judge(&path[..end], true) != RuleVerdict::Captured);
        is_ignored && self.index().is_none_or(|index| index.with_prefix(0..index.len(), &self.prefix).is_empty())
    }

    /// Returns the position of the repository, with its changes, which the caller has already found.
    pub(crate) fn state(&self, changes: &GitChanges) -> Option<GitState> {
        let (branch, commit) = self.head()?;
        let mut dirty_files = [changes.unstaged.as_slice(), &changes.staged].concat();
        dirty_files.sort();
        dirty_files.dedup();
        dirty_files.truncate(MAX_DIRTY_FILES);
        Some(GitState { commit, branch, dirty_count: dirty_files.len() as u64, dirty_files })
    }

    /// Returns the location of the repository, and what is checked out.
    pub(crate) fn position(&self) -> GitPosition {
        let (branch, commit) = self.head().unwrap_or_default();
        GitPosition { top: self.top.clone(), branch, commit }
    }

    /// Returns the branch and the commit that are checked out.
    pub(super) fn head(&self) -> Option<(Option<String>, Option<String>)> {
        let text = read_text(&self.git_dir.join("HEAD"))?;
        let text = text.trim();
        match text.strip_prefix("ref: ") {
            // With a reftable, the refs are stored elsewhere.
            Some("refs/heads/.invalid") => Some((None, None)),
            Some(name) => {
                let branch = name.strip_prefix("refs/heads/").unwrap_or(name).to_owned();
                Some((Some(branch), self.resolve(name)))
            }
            None => Some((None, is_hex(text).then(|| text.to_owned()))),
        }
    }

    pub(super) fn resolve(&self, name: &str) -> Option<String> {
        let mut name = name.to_owned();
        // A ref may name another ref. Git follows them up to the same depth.
        for _ in 0..5 {
            let loose = [&self.git_dir, &self.common_dir].into_iter().find_map(|at| read_text(&at.join(&name)));
            let Some(text) = loose else { return self.resolve_packed(&name) };
            match text.trim().strip_prefix("ref: ") {
                Some(next) => name = next.to_owned(),
                None => return is_hex(text.trim()).then(|| text.trim().to_owned()),
            }
        }
        None
    }

    /// Returns whether the repository is configured as bare, without a work tree of its own.
    pub(super) fn is_bare(&self) -> bool {
        self.local_config().and_then(|config| config.boolean("core.bare").ok().flatten()).unwrap_or(false)
    }

    pub(super) fn packed_names(&self) -> Vec<String> {
        let packed = read_text(&self.common_dir.join("packed-refs")).unwrap_or_default();
        let lines = packed.lines().filter_map(|line| line.split_once(' '));
        lines.filter(|(id, _)| is_hex(id)).map(|(_, name)| name.to_owned()).collect()
    }

    pub(super) fn resolve_packed(&self, name: &str) -> Option<String> {
        let packed = read_text(&self.common_dir.join("packed-refs"))?;
        let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(id, held)| *held == name && is_hex(id)).map(|(id, _)| id.to_owned())
    }
}

/// Returns the contents of the excludes file that the user's own configuration names, or of the default one.
pub(crate) fn global_excludes(environment: &GitEnvironment, files: &RuleFiles) -> Vec<u8> {
    let named = global_config(environment).and_then(|config| config.string("core.excludesFile"));
    let path = match named {
        Some(named) => expand(&named, environment.home.as_deref(), Path::new("/")),
        None => environment.default_excludes.clone(),
    };
    path.map(|path| files.read(path)).unwrap_or_default()
}

/// Reads files of ignore rules outside the workspace, and records the ones that are too large.
#[derive(Debug, Default)]
pub(crate) struct RuleFiles {
    too_large: RefCell<Vec<PathBuf>>,
}

impl RuleFiles {
    /// Returns the rules in a file. Returns no rules if the file does not exist, can't be read, or is too large.
    fn read(&self, path: PathBuf) -> Vec<u8> {
        let bytes = disk::read_rules(&path).ok().flatten().unwrap_or_default();
        if bytes.len() as u64 <= MAX_RULE_BYTES {
            return bytes;
        }
        self.too_large.borrow_mut().push(path);
        Vec::new()
    }

    /// Returns the files that were too large.
    pub(crate) fn too_large(self) -> Vec<PathBuf> {
        self.too_large.into_inner()
    }
}

fn global_config(environment: &GitEnvironment) -> Option<gix_config::File> {
    let files = environment.config_files.iter().filter(|path| disk::is_regular(path));
    let metadata = files.map(|path| gix_config::file::Metadata::from(gix_config::Source::User).at(path.clone()));
    let includes = gix_config::file::includes::Options::follow_without_conditional(environment.home.as_deref());
    let options = gix_config::file::init::Options { includes, lossy: true, ignore_io_errors: true };
    gix_config::File::from_paths_metadata(metadata, options).ok().flatten()
}

/// Expands a configured path. Returns `None` if it is empty, or refers to the home directory of another user.
fn expand(value: &[u8], home: Option<&Path>, base: &Path) -> Option<PathBuf> {
    let path = value.to_path().ok()?;
    if let Ok(below) = path.strip_prefix("~") {
        return Some(home?.join(below));
    }
    (!value.is_empty() && !value.starts_with(b"~")).then(|| base.join(path))
}

fn git_dir_at(top: &Path) -> io::Result<Option<PathBuf>> {
    let path = top.join(".git");
    let git_dir = match read_if_allowed(&path)? {
        Some(bytes) => {
            let named = bytes.trim_end_with(|c| matches!(c, '\n' | '\r')).strip_prefix(b"gitdir: ");
            let Some(named) = named.and_then(|named| named.to_path().ok()) else { return Ok(None) };
            top.join(named)
        }
        None => path,
    };
    Ok(disk::stamp_following(&git_dir.join("HEAD"))?.map(|_| git_dir))
}

fn common_dir_of(git_dir: &Path) -> io::Result<PathBuf> {
    let Some(bytes) = read_if_allowed(&git_dir.join("commondir"))? else { return Ok(git_dir.to_owned()) };
    let named = bytes.trim_end_with(|c| matches!(c, '\n' | '\r')).to_path();
    let common_dir = named.map_or_else(|_| git_dir.to_owned(), |named| git_dir.join(named));
    // The file usually names a relative path such as `../..`. It is resolved so that paths of files below it are plain.
    Ok(disk::private::canonical(&common_dir).unwrap_or(common_dir))
}

/// Returns the contents of a file. Returns `None` if it is not a regular file, or this user may not read it.
fn read_if_allowed(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match disk::read_following(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        read => read,
    }
}

pub(super) fn read_text(path: &Path) -> Option<String> {
    String::from_utf8(disk::read_following(path).ok()??).ok()
}

fn is_hex(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}
