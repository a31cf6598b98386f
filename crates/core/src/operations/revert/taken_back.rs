//! Tells which checkpoints are taken back by reverts.

use std::collections::HashSet;

use super::select::work_of_turn;
use crate::{
    model::{Checkpoint, CheckpointId, Kind, Scope},
    store::{Direction, Timeline, TimelineEntry},
};

/// The checkpoints whose changes are taken back. The checkpoint of a prompt counts if all the agent's work for it is.
pub(crate) struct TakenBackChanges<'t> {
    timeline: &'t Timeline,
    reverted: HashSet<CheckpointId>,
}

impl<'t> TakenBackChanges<'t> {
    pub(crate) fn of(timeline: &'t Timeline) -> Self {
        let mut reverted = HashSet::new();
        for done in timeline.operations.stacks().undoable_restores() {
            if !done.partial {
                reverted.extend(done.reverted.iter().copied());
            }
            // A restore of the whole tree brings back whatever its checkpoint has.
            if done.reverted.is_empty() && done.scope == Scope::Whole && done.direction == Direction::Forward {
                reverted.clear();
            }
        }
        Self { timeline, reverted }
    }

    fn contains(&self, entry: &TimelineEntry) -> bool {
        if self.reverted.is_empty() || entry.kind != Kind::Turn {
            return self.reverted.contains(&entry.id);
        }
        let work = work_of_turn(self.timeline, entry);
        !work.is_empty() && work.iter().all(|entry| self.reverted.contains(&entry.id))
    }

    /// Returns the checkpoint with the mark that tells whether its changes are taken back.
    pub(crate) fn mark(&self, entry: &TimelineEntry, checkpoint: Checkpoint) -> Checkpoint {
        Checkpoint { reverted: self.contains(entry), ..checkpoint }
    }
}
