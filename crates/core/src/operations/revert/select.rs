//! Selects the stretches of the timeline that a revert takes back.

use std::collections::HashSet;

use crate::{
    error::{Error, Result},
    model::{Author, CheckpointId, Kind, WorkspacePath},
    store::{Timeline, TimelineEntry},
};

/// The changes that a revert takes back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RevertTarget {
    /// The changes of a checkpoint against its parent. For the checkpoint of a prompt: all the agent's work for it.
    Checkpoint(CheckpointId),
    /// Everything that changed between two checkpoints.
    Range {
        /// The older one.
        from: CheckpointId,
        /// The newer one.
        to: CheckpointId,
    },
    /// All the agent's work in a session.
    Session(String),
}

/// The selected stretches, newest first.
pub(super) struct Selection {
    pub(super) spans: Vec<Span>,
    /// The checkpoints whose changes are taken back, newest first.
    pub(super) reverted: Vec<CheckpointId>,
    /// The newest of them. For a prompt without work, its own checkpoint.
    pub(super) newest: CheckpointId,
}

/// Consecutive checkpoints.
pub(super) struct Span {
    /// The parent of the first one.
    pub(super) before: CheckpointId,
    pub(super) first: CheckpointId,
    /// The last one.
    pub(super) after: CheckpointId,
}

impl Span {
    /// Returns whether the change at a path is taken back. Notes the path if another session may have made the change.
    pub(super) fn takes(&self, _path: &WorkspacePath, _shared: &mut Vec<WorkspacePath>) -> bool {
        true
    }
}

impl Selection {
    pub(super) fn of(timeline: &Timeline, target: &RevertTarget) -> Result<Self> {
        match target {
            RevertTarget::Checkpoint(id) => {
                let entry = timeline.require(id)?;
                match entry.kind {
                    Kind::Turn => Self::joined(timeline, work_of_turn(timeline, entry), *id),
                    _ => Self::joined(timeline, vec![entry], *id),
                }
            }
            RevertTarget::Range { from, to } => Self::range(timeline, *from, *to),
            RevertTarget::Session(session) => {
                let work = work_of_session(timeline, session)?;
                let newest = work.last().map(|entry| entry.id).or(timeline.newest().map(|entry| entry.id));
                let newest = newest.ok_or_else(|| Error::UnknownSession { session: session.clone() })?;
                Self::joined(timeline, work, newest)
            }
        }
    }

    fn range(timeline: &Timeline, from: CheckpointId, to: CheckpointId) -> Result<Self> {
        let (first, last) = (timeline.require(&from)?, timeline.require(&to)?);
        let line_from =
            |entry| std::iter::successors(Some(entry), |entry: &&TimelineEntry| timeline.nearest(entry.parent?));
        if from != to && line_from(first).any(|entry| entry.id == to) {
            return Err(Error::BackwardRange { from, to });
        }
        let reverted: Vec<&TimelineEntry> = line_from(last).take_while(|entry| entry.id != from).collect();
        let is_on_line = line_from(last).any(|entry| entry.id == from);
        let reverted = if is_on_line { reverted } else { vec![last] };
        let reverted: Vec<CheckpointId> = reverted.iter().map(|entry| entry.id).collect();
        let oldest = reverted.last().copied().unwrap_or(to);
        let spans = if from == to { Vec::new() } else { vec![Span { before: from, first: oldest, after: to }] };
        Ok(Self { spans, reverted, newest: to })
    }

    /// Joins checkpoints that follow each other. They are given oldest first.
    fn joined(timeline: &Timeline, entries: Vec<&TimelineEntry>, newest: CheckpointId) -> Result<Self> {
        let mut spans: Vec<Span> = Vec::new();
        for entry in &entries {
            match spans.last_mut() {
                Some(span) if entry.parent == Some(span.after) => span.after = entry.id,
                _ => spans.push(Span { before: parent_of(timeline, entry)?, first: entry.id, after: entry.id }),
            }
        }
        spans.reverse();
        let reverted: Vec<CheckpointId> = entries.iter().rev().map(|entry| entry.id).collect();
        Ok(Self { spans, newest: reverted.first().copied().unwrap_or(newest), reverted })
    }
}

fn parent_of(timeline: &Timeline, entry: &TimelineEntry) -> Result<CheckpointId> {
    let parent = entry.parent.ok_or(Error::FirstCheckpoint { id: entry.id })?;
    if timeline.get(&parent).is_none() {
        let before = timeline.nearest(parent).map(|entry| entry.id);
        return Err(Error::ParentDeleted { id: entry.id, before });
    }
    Ok(parent)
}

/// Returns the checkpoints of the agent's work for a prompt, oldest first.
pub(super) fn work_of_turn<'t>(timeline: &'t Timeline, turn: &TimelineEntry) -> Vec<&'t TimelineEntry> {
    let Some(record) = turn.record() else { return Vec::new() };
    let of_turn = (record.origin.session.clone(), record.origin.turn);
    if of_turn.1.is_none() {
        return Vec::new();
    }
    agent_work(timeline, |session, number| session == of_turn.0.as_deref() && number == of_turn.1)
}

/// Returns the checkpoints of the agent's work in a session, oldest first.
fn work_of_session<'t>(timeline: &'t Timeline, session: &str) -> Result<Vec<&'t TimelineEntry>> {
    let is_of_session =
        |entry: &TimelineEntry| entry.record().is_some_and(|record| record.origin.session.as_deref() == Some(session));
    if !timeline.entries().iter().any(is_of_session) {
        return Err(Error::UnknownSession { session: session.to_owned() });
    }
    Ok(agent_work(timeline, |found, _| found == Some(session)))
}

/// Returns the agent's work that fits, oldest first. If some of it leads to the checkpoint that the workspace stands on,
/// the rest was taken back by a restore and is omitted.
fn agent_work<'t>(timeline: &'t Timeline, fits: impl Fn(Option<&str>, Option<u64>) -> bool) -> Vec<&'t TimelineEntry> {
    let is_work = |entry: &&TimelineEntry| {
        entry.record().is_some_and(|record| {
            record.author() == Some(Author::Agent) && fits(record.origin.session.as_deref(), record.origin.turn)
        })
    };
    let work: Vec<&TimelineEntry> = timeline.entries().iter().filter(is_work).collect();
    let line = std::iter::successors(timeline.current(), |entry| timeline.nearest(entry.parent?));
    let line: HashSet<CheckpointId> = line.map(|entry| entry.id).collect();
    let is_behind = |entry: &&&TimelineEntry| line.contains(&entry.id);
    if work.iter().any(|entry| is_behind(&entry)) { work.iter().filter(is_behind).copied().collect() } else { work }
}
