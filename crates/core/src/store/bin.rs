//! The bin: checkpoints that were deleted on request, and that `undo` can bring back for a while.
//!
//! A checkpoint in the bin has a ref below `refs/deleted/`, so that its objects stay. The line in the log of operations
//! is what deletes the checkpoints, or brings them back, all at once; refs that a killed process left are removed by the
//! next one that tidies.

use jiff::Timestamp;

use super::{
    Operation, TimelineEntry, Writer, format,
    operations::{Binned, BinnedCheckpoint, Direction, Unbinned},
    refs::{self, Removed},
};
use crate::{
    error::{Result, While},
    model::CheckpointId,
};

impl Writer {
    /// Moves checkpoints to the bin.
    pub(crate) fn bin(&self, going: &[&TimelineEntry], direction: Direction, now: Timestamp) -> Result<()> {
        let (layout, timeline) = (self.store().layout(), self.timeline()?);
        let binned = |entry: &&TimelineEntry| BinnedCheckpoint {
            id: entry.id,
            sequence: entry.sequence,
            parent: entry.parent,
            pinned: entry.pinned,
        };
        let binned = Binned {
            sequence: timeline.next_sequence(),
            checkpoints: going.iter().map(binned).collect(),
            time: now.as_millisecond(),
            direction,
        };
        format::require_bin(layout)?;
        // Refs that lead to objects come before the entry that hides the other refs.
        self.forget_timeline();
        for entry in going {
            refs::put_into_bin(layout, &entry.id).or_fail("write into", layout.deleted_refs())?;
        }
        self.log(&[Operation::Binned(binned)])?;
        self.remove_refs(&going.iter().map(|entry| entry.id).collect::<Vec<_>>())
    }

    /// Takes the checkpoints of a deletion out of the bin, with their pins. Returns those that were still there.
    pub(crate) fn unbin(&self, deletion: &Binned, now: Timestamp) -> Result<Vec<CheckpointId>> {
        // A ref that a killed process left would look like one of this undo.
        self.mend_refs()?;
        let (layout, timeline) = (self.store().layout(), self.timeline()?);
        let there: Vec<&BinnedCheckpoint> =
            deletion.checkpoints.iter().filter(|checkpoint| timeline.is_binned(&checkpoint.id)).collect();
        let ids: Vec<CheckpointId> = there.iter().map(|checkpoint| checkpoint.id).collect();
        self.forget_timeline();
        // They stay hidden until the entry is in the log.
        for checkpoint in there {
            refs::publish(layout, &checkpoint.id).or_fail("publish in", layout.checkpoint_refs())?;
            if checkpoint.pinned {
                refs::pin(layout, &checkpoint.id).or_fail("pin in", layout.pinned_refs())?;
            }
        }
        let sequence = timeline.next_sequence();
        self.log(&[Operation::Unbinned(Unbinned { sequence, ids: ids.clone(), time: now.as_millisecond() })])?;
        self.forget_timeline();
        refs::remove(layout, &ids, Removed::Bin).or_fail("remove from", layout.deleted_refs())?;
        Ok(ids)
    }

    /// Removes checkpoints from the bin for good. Their space is reclaimed by compacting.
    pub(crate) fn empty_bin(&self, ids: &[CheckpointId]) -> Result<()> {
        if ids.is_empty() {
            return Ok(());
        }
        self.mend_refs()?;
        self.log(&[Operation::Emptied { ids: ids.to_vec() }])?;
        self.forget_timeline();
        let layout = self.store().layout();
        self.with_room(|| refs::remove(layout, ids, Removed::Bin)).or_fail("remove from", layout.deleted_refs())
    }
}
