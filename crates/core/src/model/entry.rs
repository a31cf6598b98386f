//! A directory of the workspace as it was read: what `files` finds and `store` keeps.

use std::sync::{Arc, OnceLock};

use bstr::BString;

use super::{CheckpointId, ContentId, ModesId, Side, TreeId, WorkspacePath};

/// Permission bits, with setuid, setgid and sticky.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Mode(pub u16);

impl Mode {
    /// Takes the permission bits out of a raw `st_mode`.
    pub fn from_raw(raw: u32) -> Self {
        Self((raw & 0o7777) as u16)
    }

    /// Without the bits that let a file run as its owner or group.
    pub fn without_identity(self) -> Self {
        Self(self.0 & !0o6000)
    }

    /// May its owner run it? The one bit that git itself keeps.
    pub fn is_executable(self) -> bool {
        self.0 & 0o100 != 0
    }
}

/// The permission bits that need no mention: those that most entries have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) struct ModeDefaults {
    /// Of files that can't be run.
    pub file: Mode,
    /// Of files that can.
    pub executable: Mode,
    /// Of directories.
    pub directory: Mode,
}

impl Default for ModeDefaults {
    fn default() -> Self {
        Self { file: Mode(0o644), executable: Mode(0o755), directory: Mode(0o755) }
    }
}

impl ModeDefaults {
    /// The mode of a file where nothing else is said.
    pub(crate) fn of_file(&self, executable: bool) -> Mode {
        if executable { self.executable } else { self.file }
    }
}

/// What tells whether a file or directory is still the one that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stamp {
    /// Device.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Last change of the content, in nanoseconds.
    pub mtime: i64,
    /// Last change of anything, in nanoseconds; a program can't set it.
    pub ctime: i64,
    /// The raw `st_mode`.
    pub mode: u32,
    /// How many names it has.
    pub links: u32,
}

/// Why a path was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// An ignore rule names it.
    Ignored,
    /// A directory that a tool can make again: a cache, an environment, installed packages.
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
    /// A name that git can't hold.
    Name,
    /// A directory with too many directories above it.
    Deep,
}

impl Reason {
    /// For people.
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

    /// Is it nobody's news: git's own files, and the program's?
    pub(crate) fn goes_without_saying(self) -> bool {
        matches!(self, Self::Git | Self::Own)
    }

    /// Should it have been captured, so that the checkpoint without it is incomplete?
    pub fn breaks_completeness(self) -> bool {
        matches!(self, Self::Unreadable | Self::Changing)
    }
}

/// A path that was left out.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Skipped {
    /// Which.
    pub path: WorkspacePath,
    /// Why.
    pub reason: Reason,
}

/// A path that an earlier checkpoint held, that is still on disk, and that is not captured any more.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Dropped {
    /// The path.
    pub path: WorkspacePath,
    /// Why it is not captured.
    pub reason: Reason,
    /// The last checkpoint that held it.
    pub held_by: CheckpointId,
}

/// A captured file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileEntry {
    /// Its bytes.
    pub content: ContentId,
    /// Its stamp when it was read.
    pub stamp: Stamp,
}

/// What stands under a name.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// A regular file.
    File(FileEntry),
    /// A symlink, by its target; never followed.
    Symlink(FileEntry),
    /// A directory.
    Directory(Box<Directory>),
    /// Something that is there and was left out.
    Skipped(Reason, Stamp),
}

/// Why an entry was captured although a rule leaves it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exception {
    /// The settings or the caller name it, or it is precious.
    Named,
    /// The user's own repository tracks it.
    Tracked,
    /// The checkpoint that the workspace stands on, or one that is being restored, holds it.
    Held,
}

/// One name in a directory.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// Its name.
    pub name: BString,
    /// What stands there.
    pub node: Node,
    /// Set where a rule leaves it out and something else brought it in.
    pub exception: Option<Exception>,
}

/// The ids of a directory's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DirectoryIds {
    /// Of its files and directories.
    pub tree: TreeId,
    /// Of its exceptional permission bits; none where there are none.
    pub modes: Option<ModesId>,
}

/// What can be said of a directory, with everything below it, without looking at its entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Summary {
    /// How many bytes the captured files have together.
    pub bytes: u64,
    /// Does a snapshot hold it? Not where it has entries and every one was left out.
    pub is_captured: bool,
    /// Was something left out that the rules in a snapshot do not tell again?
    pub has_skipped: bool,
    /// Was something left out by an ignore rule?
    pub has_ignored: bool,
    /// Set if a path below was captured only because a checkpoint holds it.
    pub has_held: bool,
}

impl Summary {
    /// What the entries of one directory come to; `of_child` has it for the directories among them.
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
                // Left out by its name, whoever looks.
                Node::Skipped(Reason::Git, _) if entry.name == ".git" => {}
                Node::Skipped(Reason::Ignored, _) => summary.has_ignored = true,
                Node::Skipped(..) => summary.has_skipped = true,
            }
        }
        summary
    }
}

/// What remembers directories from an earlier scan.
pub(crate) trait Memory: std::fmt::Debug + Send + Sync {
    /// The entries of the directory that is remembered at this place.
    fn entries(self: Arc<Self>, place: u64) -> Vec<Entry>;
}

/// A directory as it was read, entries in the order of their bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Directory {
    /// Its stamp before it was listed.
    pub stamp: Stamp,
    /// Known where it, with everything below it, is as it was at the last save.
    pub ids: Option<DirectoryIds>,
    /// What decided about the names in it, besides the names: rules and settings, hashed.
    pub fingerprint: u64,
    listing: Listing,
}

/// What a directory holds, skipped names included.
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
    /// One that is remembered at this place: it is, with everything below it, just as it was.
    pub(crate) fn remembered(memory: Arc<dyn Memory>, place: u64, summary: Summary) -> Self {
        let listing = Listing::Remembered { memory, place, summary, entries: OnceLock::new() };
        Self { listing, ..Self::default() }
    }

    /// The same with these entries, which are in order.
    pub(crate) fn with_entries(self, entries: Vec<Entry>) -> Self {
        Self { listing: Listing::Read(entries), ..self }
    }

    /// Where it is remembered; none where it, or anything below it, is not as it was.
    pub(crate) fn place(&self) -> Option<u64> {
        match &self.listing {
            Listing::Remembered { place, .. } => Some(*place),
            Listing::Read(_) => None,
        }
    }

    /// What it holds, skipped names included.
    pub(crate) fn entries(&self) -> &[Entry] {
        match &self.listing {
            Listing::Read(entries) => entries,
            Listing::Remembered { memory, place, entries, .. } => {
                entries.get_or_init(|| Arc::clone(memory).entries(*place))
            }
        }
    }

    /// What it holds, to be changed: it counts as read from then on.
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

    /// Its permission bits.
    pub(crate) fn mode(&self) -> Mode {
        Mode::from_raw(self.stamp.mode)
    }

    /// Does a snapshot hold it? Not where it has entries and every one was left out.
    pub(crate) fn is_captured(&self) -> bool {
        match &self.listing {
            Listing::Read(entries) => entries.is_empty() || entries.iter().any(|entry| entry.node.is_captured()),
            Listing::Remembered { summary, .. } => summary.is_captured,
        }
    }

    /// What can be said of it and everything below it.
    pub(crate) fn summary(&self) -> Summary {
        match &self.listing {
            Listing::Read(entries) => Summary::of(entries, Self::summary),
            Listing::Remembered { summary, .. } => *summary,
        }
    }

    /// The entry of this name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Node> {
        let entries = self.entries();
        let position = entries.binary_search_by(|entry| entry.name.as_slice().cmp(name)).ok()?;
        Some(&entries[position].node)
    }

    /// What stands at a path below it; none where nothing does, or where a part of the path is no directory.
    pub(crate) fn find(&self, path: &WorkspacePath) -> Option<&Node> {
        let mut parts = path.parts();
        let mut node = self.get(parts.next()?)?;
        for part in parts {
            let Node::Directory(directory) = node else { return None };
            node = directory.get(part)?;
        }
        Some(node)
    }

    /// Returns why a path is skipped, or why a directory above it is. `None` if it is captured, or not on disk.
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

    /// Calls `visit` for everything below it with its path, parents first.
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
    /// Does a snapshot hold it?
    pub(crate) fn is_captured(&self) -> bool {
        match self {
            Self::File(_) | Self::Symlink(_) => true,
            Self::Directory(directory) => directory.is_captured(),
            Self::Skipped(..) => false,
        }
    }

    /// As one side of a change; none where it was left out.
    pub(crate) fn side(&self) -> Option<Side> {
        match self {
            Self::File(file) => Some(Side::File { content: file.content, mode: Mode::from_raw(file.stamp.mode) }),
            Self::Symlink(link) => Some(Side::Symlink { target: link.content }),
            Self::Directory(directory) => directory.is_captured().then(|| Side::Directory { mode: directory.mode() }),
            Self::Skipped(..) => None,
        }
    }
}
