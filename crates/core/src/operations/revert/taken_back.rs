//! Tells which checkpoints are taken back by reverts, and sums up the work for each prompt.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
};

use super::select::work_of_turn;
use crate::{
    model::{Author, Checkpoint, CheckpointId, Kind, Scope, WorkTotals, WorkspacePath},
    store::{Direction, Timeline, TimelineEntry},
};

/// The checkpoints whose changes are taken back. The checkpoint of a prompt counts if all the agent's work for it is.
pub(crate) struct TakenBackChanges<'t> {
    timeline: &'t Timeline,
    reverted: HashSet<CheckpointId>,
    work: OnceCell<HashMap<Prompt, WorkTotals>>,
}

/// The session and the number of a prompt.
type Prompt = (Option<String>, u64);

impl<'t> TakenBackChanges<'t> {
    pub(crate) fn of(timeline: &'t Timeline) -> Self {
        let mut reverted = HashSet::new();
        for done in timeline.operations.stacks().undo {
            if !done.partial {
                reverted.extend(done.reverted.iter().copied());
            }
            // A restore of the whole tree brings back whatever its checkpoint has.
            if done.reverted.is_empty() && done.scope == Scope::Whole && done.direction == Direction::Forward {
                reverted.clear();
            }
        }
        Self { timeline, reverted, work: OnceCell::new() }
    }

    fn contains(&self, entry: &TimelineEntry) -> bool {
        if self.reverted.is_empty() || entry.kind != Kind::Turn {
            return self.reverted.contains(&entry.id);
        }
        let work = work_of_turn(self.timeline, entry);
        !work.is_empty() && work.iter().all(|entry| self.reverted.contains(&entry.id))
    }

    /// Returns the checkpoint with the mark that tells whether its changes are taken back, and for a prompt with the
    /// sums of the work for it.
    pub(crate) fn mark(&self, entry: &TimelineEntry, checkpoint: Checkpoint) -> Checkpoint {
        Checkpoint { reverted: self.contains(entry), work: self.work_for(entry), ..checkpoint }
    }

    fn work_for(&self, entry: &TimelineEntry) -> Option<WorkTotals> {
        if entry.kind != Kind::Turn {
            return None;
        }
        let work = self.work.get_or_init(|| work_by_prompt(self.timeline));
        let prompt = prompt_of(entry);
        Some(prompt.and_then(|prompt| work.get(&prompt).copied()).unwrap_or_default())
    }
}

fn prompt_of(entry: &TimelineEntry) -> Option<Prompt> {
    let record = entry.record()?;
    record.origin.turn.map(|turn| (record.origin.session.clone(), turn))
}

/// Sums up the agent's steps for each prompt.
fn work_by_prompt(timeline: &Timeline) -> HashMap<Prompt, WorkTotals> {
    let mut found: HashMap<Prompt, (HashSet<WorkspacePath>, WorkTotals)> = HashMap::new();
    for entry in timeline.entries() {
        let Some(record) = entry.record().filter(|record| record.author() == Some(Author::Agent)) else { continue };
        let Some(prompt) = prompt_of(entry) else { continue };
        let (paths, totals) = found.entry(prompt).or_default();
        paths.extend(record.changed.here().iter().cloned());
        // A list that is too long for the record is not read: its paths may be counted twice.
        totals.files += record.changed.len() - record.changed.here().len() as u64;
        totals.insertions += record.insertions;
        totals.deletions += record.deletions;
    }
    let total = |(paths, totals): (HashSet<WorkspacePath>, WorkTotals)| WorkTotals {
        files: totals.files + paths.len() as u64,
        ..totals
    };
    found.into_iter().map(|(prompt, work)| (prompt, total(work))).collect()
}
