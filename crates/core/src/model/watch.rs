//! What a watcher knows: the directories that may have changed since a moment.

use super::{Stamp, WorkspacePath};

/// A moment in the life of one watcher.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WatchToken {
    /// The watcher. A watcher that was restarted is another one.
    pub instance: String,
    /// The number of events that it had seen.
    pub sequence: u64,
}

/// Directories that may have changed. No other directory of the workspace did.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ChangedDirectories {
    /// Directories in which a name, a file or the directory itself may have changed. Says nothing about the directories
    /// below.
    pub here: Vec<WorkspacePath>,
    /// Directories in which anything may have changed, at any depth.
    pub whole: Vec<WorkspacePath>,
}

/// The answer of a [`ChangeSource`].
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ChangeAnswer {
    /// The moment of the answer. `None` if the watcher could not answer a question about it later.
    pub token: Option<WatchToken>,
    /// What may have changed since the moment that the question names. `Err` contains the reason why it is unknown.
    pub changes: Result<ChangedDirectories, String>,
}

/// Knows which directories may have changed since a moment.
///
/// An answer covers every change that was complete before the question was asked. A source that is not certain must
/// answer that it does not know.
pub trait ChangeSource: std::fmt::Debug + Send + Sync {
    /// Returns what may have changed since a moment. `root` is the device and the inode of the workspace's directory.
    /// Returns `None` if there is no answer.
    fn changes_since(&self, root: (u64, u64), since: Option<&WatchToken>) -> Option<ChangeAnswer>;

    /// Tells the source that an answer could not be used, and why.
    fn note_fallback(&self, reason: &str);
}

/// The file of a stat cache, as it was when it was written. A file with the same numbers holds the same cache, or a
/// newer one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct CacheFile {
    inode: u64,
    size: u64,
    mtime: i64,
    ctime: i64,
}

impl CacheFile {
    pub(crate) fn of(stamp: &Stamp) -> Self {
        let Stamp { inode, size, mtime, ctime, .. } = *stamp;
        Self { inode, size, mtime, ctime }
    }
}
