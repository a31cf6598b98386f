//! Prompts of an agent's session: the changes made for one, and the way back to before it.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    error::Result,
    model::{Author, Change, Checkpoint, CheckpointId, Kind, Scope, WorkspacePath},
    operations::{
        diff::{Checkpoints, LineSource, count_lines},
        show::ListFilter,
    },
    store::{Restored, Timeline, TimelineEntry},
    workspace::Workspace,
};

impl Workspace {
    /// Returns the checkpoints of prompts on the line that leads to the checkpoint that the workspace stands on, newest
    /// first.
    ///
    /// If a restore led to one of them and nothing changed since, that one is omitted: it is taken back already. A
    /// prompt that was just given counts as the last one even if nothing was done for it yet.
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

    /// Returns the checkpoint of the prompt that a checkpoint belongs to: the checkpoint itself, the prompt of its step,
    /// or else the last prompt before it.
    pub fn turn_of(&self, id: &CheckpointId) -> Result<Option<Checkpoint>> {
        let checkpoint = self.get(id)?;
        if checkpoint.kind == Kind::Turn {
            return Ok(Some(checkpoint));
        }
        let turns = self.list(&ListFilter { kind: Some(Kind::Turn), brief: true, ..ListFilter::default() })?;
        let is_own = |turn: &&Checkpoint| {
            turn.origin.session == checkpoint.origin.session && turn.origin.turn == checkpoint.origin.turn
        };
        let own = turns.iter().find(|turn| checkpoint.origin.turn.is_some() && is_own(turn));
        let earlier = || turns.iter().find(|turn| turn.sequence < checkpoint.sequence);
        Ok(own.or_else(earlier).cloned())
    }

    /// Returns the changes made for a prompt, from the moment that it was given to the last checkpoint of its work.
    ///
    /// Returns `None` if the checkpoint is not that of a prompt.
    pub fn turn_changes(&self, id: &CheckpointId) -> Result<Option<Vec<Change>>> {
        let Some(store) = self.store()? else { return Ok(None) };
        let timeline = store.timeline()?;
        let Some(turn) = timeline.get(id).filter(|entry| entry.kind == Kind::Turn) else { return Ok(None) };
        let work = |entry: &TimelineEntry| {
            entry
                .record()
                .map(|record| (record.origin.session.clone(), record.origin.turn))
                .filter(|(_, turn)| turn.is_some())
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

/// The work that going back to before a prompt takes along although it is not the work of that prompt's session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OthersWork {
    /// The number of files that each other session changed.
    pub sessions: BTreeMap<String, usize>,
    /// The number of files that a person or another program changed.
    pub by_hand: usize,
}

impl Workspace {
    /// Returns the work of other sessions, and the edits by hand, since the checkpoint of a prompt, within a scope.
    pub fn others_work_since(&self, turn: &CheckpointId, scope: &Scope) -> Result<OthersWork> {
        let store = self.existing_store()?;
        let timeline = store.timeline()?;
        let session = timeline.require(turn)?.record().and_then(|record| record.origin.session.clone());
        let (mut sessions, mut by_hand): (BTreeMap<String, BTreeSet<WorkspacePath>>, BTreeSet<WorkspacePath>) =
            Default::default();
        let line = std::iter::successors(timeline.current(), |entry| timeline.nearest(entry.parent?));
        for entry in line.take_while(|entry| entry.id != *turn) {
            let mut checkpoint = store.checkpoint(entry)?;
            checkpoint.files_changed.retain(|path| scope.contains(path));
            match (checkpoint.origin.author, &checkpoint.origin.session) {
                (Some(Author::Agent), found) if *found == session => {}
                (Some(Author::Agent), Some(other)) => {
                    sessions.entry(other.clone()).or_default().extend(checkpoint.files_changed);
                }
                _ => by_hand.extend(checkpoint.files_changed),
            }
        }
        let sessions = sessions.into_iter().map(|(session, files)| (session, files.len()));
        Ok(OthersWork { sessions: sessions.filter(|(_, files)| *files > 0).collect(), by_hand: by_hand.len() })
    }
}

/// Returns whether a restore led the workspace to its checkpoint, rather than a save that took the checkpoint there.
///
/// After an undo, the answer is the one from before the undone restore.
fn came_by_restore(timeline: &Timeline) -> bool {
    let stacks = timeline.operations.stacks();
    // A restore of some paths leaves the workspace at the same checkpoint.
    let has_led = |done: &&Restored| done.scope == Scope::Whole || done.before != done.after;
    let Some(last) = stacks.undoable_restores().rev().find(has_led) else { return false };
    let is_newest = timeline.newest().is_none_or(|newest| newest.sequence < last.sequence);
    is_newest && timeline.current().is_some_and(|current| last.after == Some(current.id))
}
