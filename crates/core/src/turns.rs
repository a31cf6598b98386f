//! Prompts of an agent's session: what was done for one, and how to get to before it.

use crate::{
    diff::{Checkpoints, LineSource, count_lines},
    error::Result,
    model::{Change, Checkpoint, CheckpointId, Kind, Scope},
    store::TimelineEntry,
    workspace::Workspace,
};

impl Workspace {
    /// The checkpoints of prompts on the line that leads to where the workspace stands, newest first.
    ///
    /// Where it stands on one of them and nothing changed since, that one is left out: there is nothing to go back from.
    pub fn turns_behind(&self) -> Result<Vec<Checkpoint>> {
        let Some(store) = self.store()? else { return Ok(Vec::new()) };
        let timeline = store.timeline()?;
        let Some(current) = timeline.current() else { return Ok(Vec::new()) };
        let is_at_a_turn = current.kind == Kind::Turn && self.status(None)?.changes.is_empty();
        let line = std::iter::successors(Some(current), |entry| timeline.nearest(entry.parent?));
        let turns = line.filter(|entry| entry.kind == Kind::Turn).skip(usize::from(is_at_a_turn));
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
