//! A directory of the workspace as a scan read it. `scan` creates it and `store` stores it.

use std::sync::{Arc, OnceLock};

use bstr::BString;

use super::{CheckpointId, ContentId, ModesId, Side, TreeId, WorkspacePath};

/// Permission bits, including setuid, setgid and sticky.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Mode(pub u16);

impl Mode {
    /// Extracts the permission bits from a raw `st_mode`.
    pub fn from_raw(raw: u32) -> Self {
        Self((raw & 0o7777) as u16)
    }

    /// Returns the mode without the setuid and setgid bits.
    pub fn without_identity(self) -> Self {
        Self(self.0 & !0o6000)
    }

    /// Returns whether the owner may execute the file. This is the only permission bit that git stores.
    pub fn is_executable(self) -> bool {
        self.0 & 0o100 != 0
    }
}

/// The usual permission bits, which most entries have. Only other ones are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) struct ModeDefaults {
    /// For files that are not executable.
    pub file: Mode,
    /// For executable files.
    pub executable: Mode,
    /// For directories.
    pub directory: Mode,
}

impl Default for ModeDefaults {
    fn default() -> Self {
        Self { file: Mode(0o644), executable: Mode(0o755), directory: Mode(0o755) }
    }
}

impl ModeDefaults {
    /// Returns the mode of a file that has no other one stored.
    pub(crate) fn of_file(&self, executable: bool) -> Mode {
        if executable { self.executable } else { self.file }
    }
}

/// The metadata that shows whether a file or directory changed since it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    /// The device number.
    pub device: u64,
    /// The inode number.
    pub inode: u64,
    /// The size in bytes.
    pub size: u64,
    /// The last change of the content, in nanoseconds.
    pub mtime: i64,
    /// The last change of the content or the metadata, in nanoseconds. A program can't set it.
    pub ctime: i64,
    /// The raw `st_mode`.
    pub mode: u32,
    /// The number of hard links.
    pub links: u32,
}

/// The reason why a path was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// An ignore rule excludes it.
    Ignored,
    /// A directory that a tool can rebuild: a cache, an environment, installed packages.
    Rebuildable,
    /// A git directory.
    Git,
    /// The store itself, or the staging area of a restore.
    Own,
    /// A FIFO, socket or device.
    Special,
    /// Larger than `max_file_bytes`.
    TooLarge,
    /// It could not be read.
    Unreadable,
    /// It kept changing while it was read.
    Changing,
    /// A name that git can't store.
    Name,
    /// A directory that is nested too deep.
    Deep,
}

impl Reason {
    /// Returns the reason as text for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Rebuildable => "can be rebuilt",
            Self::Git => "git directory",
            Self::Own => "part of the store",
            Self::Special => "special file",
            Self::TooLarge => "too large",
            Self::Unreadable => "unreadable",
            Self::Changing => "kept changing while it was read",
            Self::Name => "a name that git can't hold",
            Self::Deep => "too deep",
        }
    }

    /// Returns whether the reason is not worth reporting to the user: the path is git's own, or the program's.
    pub(crate) fn goes_without_saying(self) -> bool {
        matches!(self, Self::Git | Self::Own)
    }

    /// Returns whether the path should have been captured, so that a checkpoint without it is incomplete.
    pub fn breaks_completeness(self) -> bool {
        matches!(self, Self::Unreadable | Self::Changing)
    }
}

/// A path that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Skipped {
    /// The path.
    pub path: WorkspacePath,
    /// The reason why it was skipped.
    pub reason: Reason,
}

/// A path that an earlier checkpoint held, that is still on disk, and that is no longer captured.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Dropped {
    /// The path.
    pub path: WorkspacePath,
    /// The reason why it is not captured.
    pub reason: Reason,
    /// The last checkpoint that held it.
    pub held_by: CheckpointId,
}

/// A captured file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileEntry {
    /// The id of its bytes.
    pub content: ContentId,
    /// Its stamp when it was read.
    pub stamp: Stamp,
}

/// The file, symlink or directory that has a name.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// A regular file.
    File(FileEntry),
    /// A symlink, with its target as the content. It is never followed.
    Symlink(FileEntry),
    /// A directory.
    Directory(Box<Directory>),
    /// An entry on disk that was skipped.
    Skipped(Reason, Stamp),
}

/// The reason why an entry was captured although a rule excludes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exception {
    /// The settings or the caller name it, or it is precious.
    Named,
    /// The user repository, or a repository inside the workspace, tracks it.
    Tracked,
    /// The checkpoint that the workspace stands on, or one that is being restored, holds it.
    Held,
}

/// One name in a directory.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub name: BString,
    pub node: Node,
    /// Set if the entry was captured although a rule excludes it.
    pub exception: Option<Exception>,
}

/// The ids of a directory's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectoryIds {
    /// The id of its files and directories.
    pub tree: TreeId,
    /// The id of its unusual permission bits. `None` if there are none.
    pub modes: Option<ModesId>,
}

/// A summary of a directory and everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Summary {
    /// The total size of the captured files.
    pub bytes: u64,
    /// Set if a snapshot contains the directory. Not set if it has entries and all of them were skipped.
    pub is_captured: bool,
    /// Set if a path was skipped that the rules in a snapshot do not identify.
    pub has_skipped: bool,
    /// Set if an ignore rule excluded a path.
    pub has_ignored: bool,
    /// Set if a path below was captured only because a checkpoint holds it.
    pub has_held: bool,
}

impl Summary {
    /// Summarizes the entries of one directory. `of_child` returns the summary of a subdirectory.
    pub(crate) fn of(entries: &[Entry], mut of_child: impl FnMut(&Directory) -> Self) -> Self {
        let mut summary = Self { is_captured: entries.is_empty(), ..Self::default() };
        for entry in entries {
            summary.has_held |= entry.exception == Some(Exception::Held);
            match &entry.node {
                Node::File(file) => {
                    summary.bytes += file.stamp.size;
                    summary.is_captured = true;
                }
                Node::Symlink(_) => summary.is_captured = true,
                Node::Directory(child) => {
                    let below = of_child(child);
                    summary.bytes += below.bytes;
                    summary.is_captured |= below.is_captured;
                    summary.has_skipped |= below.has_skipped;
                    summary.has_ignored |= below.has_ignored;
                    summary.has_held |= below.has_held;
                }
                // `.git` is always skipped because of its name.
                Node::Skipped(Reason::Git, _) if entry.name == ".git" => {}
                Node::Skipped(Reason::Ignored, _) => summary.has_ignored = true,
                Node::Skipped(..) => summary.has_skipped = true,
            }
        }
        summary
    }
}

/// A cache of directories from an earlier scan.
pub(crate) trait Memory: std::fmt::Debug + Send + Sync {
    /// Returns the entries of the directory that is cached at this place.
    fn entries(self: Arc<Self>, place: u64) -> Vec<Entry>;
}

/// A directory as it was read. Its entries are sorted by the bytes of their names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Directory {
    /// The stamp of the directory before it was listed.
    pub stamp: Stamp,
    /// Set if the directory and everything below it are unchanged since the last save.
    pub ids: Option<DirectoryIds>,
    /// A hash of the rules and settings that decided about the names in the directory.
    pub fingerprint: u64,
    listing: Listing,
}

/// The contents of a directory, including skipped names.
#[derive(Debug, Clone)]
enum Listing {
    Read(Vec<Entry>),
    Remembered { memory: Arc<dyn Memory>, place: u64, summary: Summary, entries: OnceLock<Vec<Entry>> },
}

impl Default for Listing {
    fn default() -> Self {
        Self::Read(Vec::new())
    }
}

impl Directory {
    /// Creates a directory that is cached at this place. It and everything below it are unchanged.
    pub(crate) fn remembered(memory: Arc<dyn Memory>, place: u64, summary: Summary) -> Self {
        let listing = Listing::Remembered { memory, place, summary, entries: OnceLock::new() };
        Self { listing, ..Self::default() }
    }

    /// Returns the directory with these entries, which must be sorted.
    pub(crate) fn with_entries(self, entries: Vec<Entry>) -> Self {
        Self { listing: Listing::Read(entries), ..self }
    }

    /// Returns the place where the directory is cached. Returns `None` if it or anything below it has changed.
    pub(crate) fn cache_offset(&self) -> Option<u64> {
        match &self.listing {
            Listing::Remembered { place, .. } => Some(*place),
            Listing::Read(_) => None,
        }
    }

    /// Returns the entries, including skipped ones.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.listing {
            Listing::Read(entries) => entries,
            Listing::Remembered { memory, place, entries, .. } => {
                entries.get_or_init(|| Arc::clone(memory).entries(*place))
            }
        }
    }

    /// Returns the entries for modification. From then on the directory no longer counts as cached.
    pub(crate) fn entries_mut(&mut self) -> &mut Vec<Entry> {
        if let Listing::Remembered { memory, place, entries, .. } = &mut self.listing {
            let entries = entries.take().unwrap_or_else(|| Arc::clone(memory).entries(*place));
            self.listing = Listing::Read(entries);
        }
        match &mut self.listing {
            Listing::Read(entries) => entries,
            Listing::Remembered { .. } => unreachable!("it was just made one that was read"),
        }
    }

    /// Returns the permission bits.
    pub(crate) fn mode(&self) -> Mode {
        Mode::from_raw(self.stamp.mode)
    }

    /// Returns whether a snapshot contains the directory. Returns `false` if it has entries and all of them were
    /// skipped.
    pub(crate) fn is_captured(&self) -> bool {
        match &self.listing {
            Listing::Read(entries) => entries.is_empty() || entries.iter().any(|entry| entry.node.is_captured()),
            Listing::Remembered { summary, .. } => summary.is_captured,
        }
    }

    /// Returns a summary of the directory and everything below it.
    pub(crate) fn summary(&self) -> Summary {
        match &self.listing {
            Listing::Read(entries) => Summary::of(entries, Self::summary),
            Listing::Remembered { summary, .. } => *summary,
        }
    }

    /// Returns the node with this name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Node> {
        let entries = self.entries();
        let position = entries.binary_search_by(|entry| entry.name.as_slice().cmp(name)).ok()?;
        Some(&entries[position].node)
    }

    /// Returns the node at a path below the directory. Returns `None` if there is none, or a part of the path is not a
    /// directory.
    pub(crate) fn find(&self, path: &WorkspacePath) -> Option<&Node> {
        let mut parts = path.parts();
        let mut node = self.get(parts.next()?)?;
        for part in parts {
            let Node::Directory(directory) = node else { return None };
            node = directory.get(part)?;
        }
        Some(node)
    }

    /// Returns the reason why a path, or a directory above it, was skipped. Returns `None` if the path is captured or
    /// not on disk.
    pub(crate) fn skipped_at(&self, path: &WorkspacePath) -> Option<Reason> {
        let mut directory = self;
        for part in path.parts() {
            match directory.get(part)? {
                Node::Skipped(reason, _) => return Some(*reason),
                Node::Directory(below) => directory = below,
                Node::File(_) | Node::Symlink(_) => return None,
            }
        }
        None
    }

    /// Calls `visit` with each node below the directory and its path, parents first.
    pub(crate) fn walk(&self, visit: &mut impl FnMut(&WorkspacePath, &Node)) {
        self.walk_below(&WorkspacePath::root(), visit);
    }

    fn walk_below(&self, above: &WorkspacePath, visit: &mut impl FnMut(&WorkspacePath, &Node)) {
        for entry in self.entries() {
            let path = above.join(&entry.name);
            visit(&path, &entry.node);
            if let Node::Directory(directory) = &entry.node {
                directory.walk_below(&path, visit);
            }
        }
    }
}

impl Node {
    /// Returns whether a snapshot contains the node.
    pub(crate) fn is_captured(&self) -> bool {
        match self {
            Self::File(_) | Self::Symlink(_) => true,
            Self::Directory(directory) => directory.is_captured(),
            Self::Skipped(..) => false,
        }
    }

    /// Returns the node as one side of a change. Returns `None` if it is not captured.
    pub(crate) fn side(&self) -> Option<Side> {
        match self {
            Self::File(file) => Some(Side::File { content: file.content, mode: Mode::from_raw(file.stamp.mode) }),
            Self::Symlink(link) => Some(Side::Symlink { target: link.content }),
            Self::Directory(directory) => directory.is_captured().then(|| Side::Directory { mode: directory.mode() }),
            Self::Skipped(..) => None,
        }
    }
}
