//! Prompts of an agent's session: what was done for one, and how to get to before it.

use crate::{
    diff::{Checkpoints, LineSource, count_lines},
    error::Result,
    model::{Change, Checkpoint, CheckpointId, Kind, Scope},
    store::{Restored, Timeline, TimelineEntry},
    workspace::Workspace,
};

impl Workspace {
    /// The checkpoints of prompts on the line that leads to where the workspace stands, newest first.
    ///
    /// Where a restore led to one of them and nothing changed since, that one is left out: it is taken back already. One
    /// that was just given is the last one, also while nothing was done for it.
    pub fn turns_behind(&self) -> Result<Vec<Checkpoint>> {
        let Some(store) = self.store()? else { return Ok(Vec::new()) };
        let timeline = store.timeline()?;
        let Some(current) = timeline.current() else { return Ok(Vec::new()) };
        let is_taken_back =
            current.kind == Kind::Turn && came_by_restore(&timeline) && self.status(None)?.changes.is_empty();
        let line = std::iter::successors(Some(current), |entry| timeline.nearest(entry.parent?));
        let turns = line.filter(|entry| entry.kind == Kind::Turn).skip(usize::from(is_taken_back));
        turns.map(|entry| store.checkpoint(entry)).collect()
    }

    /// What was done for a prompt, from the moment that it was given to the last checkpoint of its work.
    ///
    /// None where the checkpoint is not that of a prompt.
    pub fn turn_changes(&self, id: &CheckpointId) -> Result<Option<Vec<Change>>> {
        let Some(store) = self.store()? else { return Ok(None) };
        let timeline = store.timeline()?;
        let Some(turn) = timeline.get(id).filter(|entry| entry.kind == Kind::Turn) else { return Ok(None) };
        let work = |entry: &TimelineEntry| {
            entry.record().map(|record| (record.session.clone(), record.turn)).filter(|(_, turn)| turn.is_some())
        };
        let of_turn = work(turn);
        let is_of_turn =
            |entry: &&TimelineEntry| entry.kind == Kind::Step && of_turn.is_some() && work(entry) == of_turn;
        let last = timeline.entries().iter().rev().find(is_of_turn).map(|entry| entry.id);
        let Some(last) = last else { return Ok(Some(Vec::new())) };
        let checkpoints = Checkpoints::on(&store, timeline);
        let (given, last) = (checkpoints.get(id)?, checkpoints.get(&last)?);
        let mut changes = checkpoints.changes_between(Some(&given), &last, &Scope::Whole)?;
        count_lines(&mut changes, &LineSource::stored(&store))?;
        Ok(Some(changes))
    }
}

/// Does the workspace stand where it does because of a restore, rather than because a checkpoint was taken there?
///
/// After an undo, that is as it was before what was undone.
fn came_by_restore(timeline: &Timeline) -> bool {
    let stacks = timeline.operations.stacks();
    // A restore of some paths leaves the workspace where it stood.
    let has_led = |done: &&&Restored| done.scope == Scope::Whole || done.before != done.after;
    let Some(last) = stacks.undo.iter().rev().find(has_led) else { return false };
    let is_newest = timeline.newest().is_none_or(|newest| newest.sequence < last.sequence);
    is_newest && timeline.current().is_some_and(|current| last.after == Some(current.id))
}
