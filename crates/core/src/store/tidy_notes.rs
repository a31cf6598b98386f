//! The note of what a writer tidied last, so that work that takes as long as the history is done only when enough has
//! changed. The file can be deleted at any time: the work is then done once more.

use std::io;

use super::{
    Layout, Timeline,
    checksummed_lines::{self, Lines},
};
use crate::disk::private::{self, Durability};

/// The state of the store when it was tidied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct TidyNotes {
    /// The highest sequence number when unneeded objects were removed.
    #[serde(default)]
    pub(super) compacted_at: u64,
    /// The number of checkpoints at that moment.
    #[serde(default)]
    pub(super) compacted_with: u64,
    /// The length of the log of operations when it was found to be needed.
    #[serde(default)]
    pub(super) needed_log: u64,
}

impl TidyNotes {
    pub(super) fn read(layout: &Layout) -> Self {
        let bytes = private::read(&layout.tidy_notes()).ok().flatten().unwrap_or_default();
        let line = Lines::of(&bytes).sound.into_iter().next_back().map(serde_json::from_str);
        line.and_then(Result::ok).unwrap_or_default()
    }

    pub(super) fn write(&self, layout: &Layout) -> io::Result<()> {
        let line = checksummed_lines::seal(&serde_json::to_string(self)?);
        private::replace(&layout.tidy_notes(), line.as_bytes(), Durability::Unsynced)
    }

    /// Returns whether so many checkpoints were deleted that their objects are worth looking for, which reads the trees
    /// of all checkpoints.
    pub(super) fn is_compacting_worth_it(&self, timeline: &Timeline) -> bool {
        let present = timeline.entries().len() as u64;
        let numbers = timeline.next_sequence().saturating_sub(1).saturating_sub(self.compacted_at);
        // Each new number is that of a checkpoint or of a restore, so this counts the restores, too.
        let deleted = (numbers + self.compacted_with).saturating_sub(present);
        deleted > 0 && deleted.saturating_mul(4) >= present
    }

    pub(super) fn compacted(self, timeline: &Timeline) -> Self {
        let (compacted_at, compacted_with) = (timeline.next_sequence() - 1, timeline.entries().len() as u64);
        Self { compacted_at, compacted_with, ..self }
    }

    /// Returns whether the log has grown so much since it was all needed that it is worth examining again.
    pub(super) fn is_shortening_worth_it(&self, log: usize) -> bool {
        log as u64 >= self.needed_log + self.needed_log / 4
    }
}
