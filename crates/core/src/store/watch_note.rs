//! The moment of a watcher that belongs to the stat cache, in a file beside it.
//!
//! The file only saves work: without it, or if it does not belong to the stat cache, everything is scanned.

use std::io;

use super::{
    Layout,
    checksummed_lines::{self, Lines},
};
use crate::{
    disk::private::{self, Durability},
    model::{CacheFile, WatchToken, WorkspacePath},
};

/// The contents of the file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct WatchNote {
    /// A moment before the scan whose result is in the stat cache.
    pub(crate) token: WatchToken,
    /// The stat cache.
    pub(crate) cache: CacheFile,
    /// A hash of the facts from outside the tree that decided what was captured.
    pub(crate) context: u64,
    /// Directories that every scan looks at.
    pub(crate) always: Vec<WorkspacePath>,
    /// Directories that a scan looks at if another index or another checkpoint decides.
    pub(crate) for_verdicts: Vec<WorkspacePath>,
}

impl WatchNote {
    /// Reads the file. Returns `None` if it is missing or damaged.
    pub(crate) fn read(layout: &Layout) -> Option<Self> {
        let bytes = private::read(&layout.watch_note()).ok()??;
        let lines = Lines::of(&bytes);
        serde_json::from_str(lines.sound.first()?).ok()
    }

    /// Replaces the file.
    pub(crate) fn write(&self, layout: &Layout) -> io::Result<()> {
        let line = checksummed_lines::seal(&serde_json::to_string(self)?);
        private::replace(&layout.watch_note(), line.as_bytes(), Durability::Unsynced)
    }
}
