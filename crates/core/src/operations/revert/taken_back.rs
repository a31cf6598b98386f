//! Tells which checkpoints are taken back by reverts, and sums up the work for each prompt.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    iter::Peekable,
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
    work: RefCell<WorkByPrompt<'t>>,
}

/// The session and the number of a prompt.
type Prompt = (Option<String>, u64);

/// The agent's work for each prompt, as far as it was asked for. The steps of a prompt are newer than its checkpoint:
/// the timeline is read from its end, no further than needed.
struct WorkByPrompt<'t> {
    unread: Peekable<Box<dyn Iterator<Item = &'t TimelineEntry> + 't>>,
    found: HashMap<Prompt, (HashSet<WorkspacePath>, WorkTotals)>,
}

impl<'t> WorkByPrompt<'t> {
    fn of(timeline: &'t Timeline) -> Self {
        let unread: Box<dyn Iterator<Item = &'t TimelineEntry> + 't> = Box::new(timeline.entries().iter().rev());
        Self { unread: unread.peekable(), found: HashMap::new() }
    }

    fn for_prompt(&mut self, entry: &TimelineEntry) -> WorkTotals {
        while let Some(newer) = self.unread.next_if(|unread| unread.sequence > entry.sequence) {
            self.add(newer);
        }
        let found = prompt_of(entry).and_then(|prompt| self.found.get(&prompt));
        found
            .map(|(paths, totals)| WorkTotals { files: totals.files + paths.len() as u64, ..*totals })
            .unwrap_or_default()
    }

    fn add(&mut self, step: &TimelineEntry) {
        let Some(record) = step.record().filter(|record| record.author() == Some(Author::Agent)) else { return };
        let Some(prompt) = prompt_of(step) else { return };
        let (paths, totals) = self.found.entry(prompt).or_default();
        paths.extend(record.changed.here().iter().cloned());
        // A list that is too long for the record is not read: its paths may be counted twice.
        totals.files += record.changed.len() - record.changed.here().len() as u64;
        totals.insertions += record.insertions;
        totals.deletions += record.deletions;
    }
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
        Self { timeline, reverted, work: RefCell::new(WorkByPrompt::of(timeline)) }
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
        Some(self.work.borrow_mut().for_prompt(entry))
    }
}

fn prompt_of(entry: &TimelineEntry) -> Option<Prompt> {
    let record = entry.record()?;
    record.origin.turn.map(|turn| (record.origin.session.clone(), turn))
}
