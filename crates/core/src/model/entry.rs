//! A directory of the workspace as it was read: what `files` finds and `store` keeps.

use bstr::BString;

use super::{ContentId, ModesId, Side, TreeId, WorkspacePath};

/// Permission bits, with setuid, setgid and sticky.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct Mode(pub u16);

impl Mode {
    /// Takes the permission bits out of a raw `st_mode`.
    pub fn from_raw(raw: u32) -> Self {
        Self((raw & 0o7777) as u16)
    }

    /// May its owner run it? The one bit that git itself keeps.
    pub fn is_executable(self) -> bool {
        self.0 & 0o100 != 0
    }
}

/// The permission bits that need no mention: those that most entries have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct ModeDefaults {
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
    pub fn of_file(&self, executable: bool) -> Mode {
        if executable { self.executable } else { self.file }
    }
}

/// What tells whether a file or directory is still the one that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
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
        }
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

/// A captured file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileEntry {
    /// Its bytes.
    pub content: ContentId,
    /// Its stamp when it was read.
    pub stamp: Stamp,
}

/// What stands under a name.
#[derive(Debug, Clone)]
pub enum Node {
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
pub enum Exception {
    /// The settings or the caller name it, or it is precious.
    Named,
    /// The user's own repository tracks it.
    Tracked,
    /// The checkpoint that is being restored holds it.
    Held,
}

/// One name in a directory.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name.
    pub name: BString,
    /// What stands there.
    pub node: Node,
    /// Set where a rule leaves it out and something else brought it in.
    pub exception: Option<Exception>,
}

/// The ids of a directory's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectoryIds {
    /// Of its files and directories.
    pub tree: TreeId,
    /// Of its exceptional permission bits; none where there are none.
    pub modes: Option<ModesId>,
}

/// A directory as it was read, entries in the order of their bytes.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    /// Its stamp before it was listed.
    pub stamp: Stamp,
    /// What it holds, skipped names included.
    pub entries: Vec<Entry>,
    /// Known where it, with everything below it, is as it was at the last save.
    pub ids: Option<DirectoryIds>,
    /// Its ignore file is itself left out, so that the snapshot can't tell what it said.
    pub rules_left_out: bool,
    /// What decided about the names in it, besides the names: rules and settings, hashed.
    pub fingerprint: u64,
}

impl Directory {
    /// Its permission bits.
    pub fn mode(&self) -> Mode {
        Mode::from_raw(self.stamp.mode)
    }

    /// Does a snapshot hold it? Not where it has entries and every one was left out.
    pub fn is_captured(&self) -> bool {
        self.entries.is_empty() || self.entries.iter().any(|entry| entry.node.is_captured())
    }

    /// The entry of this name.
    pub fn get(&self, name: &[u8]) -> Option<&Node> {
        let position = self.entries.binary_search_by(|entry| entry.name.as_slice().cmp(name)).ok()?;
        Some(&self.entries[position].node)
    }

    /// What stands at a path below it; none where nothing does, or where a part of the path is no directory.
    pub fn find(&self, path: &WorkspacePath) -> Option<&Node> {
        let mut parts = path.parts();
        let mut node = self.get(parts.next()?)?;
        for part in parts {
            let Node::Directory(directory) = node else { return None };
            node = directory.get(part)?;
        }
        Some(node)
    }

    /// Calls `visit` for everything below it with its path, parents first.
    pub fn walk(&self, visit: &mut impl FnMut(&WorkspacePath, &Node)) {
        self.walk_below(&WorkspacePath::root(), visit);
    }

    fn walk_below(&self, above: &WorkspacePath, visit: &mut impl FnMut(&WorkspacePath, &Node)) {
        for entry in &self.entries {
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
    pub fn is_captured(&self) -> bool {
        match self {
            Self::File(_) | Self::Symlink(_) => true,
            Self::Directory(directory) => directory.is_captured(),
            Self::Skipped(..) => false,
        }
    }

    /// As one side of a change; none where it was left out.
    pub fn side(&self) -> Option<Side> {
        match self {
            Self::File(file) => Some(Side::File { content: file.content, mode: Mode::from_raw(file.stamp.mode) }),
            Self::Symlink(link) => Some(Side::Symlink { target: link.content }),
            Self::Directory(directory) => directory.is_captured().then(|| Side::Directory { mode: directory.mode() }),
            Self::Skipped(..) => None,
        }
    }
}
