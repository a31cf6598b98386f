//! Selects the stretches of the timeline that a revert takes back.

use std::collections::HashSet;

use super::ownership::{Ownership, SharedCheckpoint, Wanted};
use crate::{
    error::{Error, Result},
    model::{CheckpointId, Kind, WorkspacePath},
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
    /// Tells whose change a path is, if calls of other sessions were running.
    pub(super) claim: Option<SharedCheckpoint>,
}

impl Span {
    /// Returns whether the change at a path is taken back. Notes the path if another session may have made the change.
    pub(super) fn takes(&self, path: &WorkspacePath, shared: &mut Vec<WorkspacePath>) -> bool {
        match self.claim.as_ref().map_or(Ownership::Wanted, |claim| claim.owner_of(path)) {
            Ownership::Wanted => true,
            Ownership::Foreign => false,
            Ownership::Shared => {
                shared.push(path.clone());
                false
            }
        }
    }
}

impl Selection {
    pub(super) fn of(timeline: &Timeline, target: &RevertTarget) -> Result<Self> {
        match target {
            RevertTarget::Checkpoint(id) => {
                let entry = timeline.require(id)?;
                match (entry.kind, Wanted::turn_of(entry)) {
                    (Kind::Turn, Some(turn)) => Self::joined(timeline, agent_work(timeline, &turn), Some(&turn), *id),
                    (Kind::Turn, None) => Self::joined(timeline, Vec::new(), None, *id),
                    _ => Self::joined(timeline, vec![entry], None, *id),
                }
            }
            RevertTarget::Range { from, to } => Self::range(timeline, *from, *to),
            RevertTarget::Session(session) => {
                let work = work_of_session(timeline, session)?;
                let newest = work.last().map(|entry| entry.id).or(timeline.newest().map(|entry| entry.id));
                let newest = newest.ok_or_else(|| Error::UnknownSession { session: session.clone() })?;
                Self::joined(timeline, work, Some(&Wanted::session(session)), newest)
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
        let spans =
            if from == to { Vec::new() } else { vec![Span { before: from, first: oldest, after: to, claim: None }] };
        Ok(Self { spans, reverted, newest: to })
    }

    /// Joins checkpoints that follow each other. They are given oldest first.
    fn joined(
        timeline: &Timeline,
        entries: Vec<&TimelineEntry>,
        wanted: Option<&Wanted>,
        newest: CheckpointId,
    ) -> Result<Self> {
        let mut spans: Vec<Span> = Vec::new();
        for entry in &entries {
            let claim = wanted.and_then(|wanted| SharedCheckpoint::of(entry, wanted));
            match spans.last_mut() {
                Some(span) if entry.parent == Some(span.after) && claim.is_none() && span.claim.is_none() => {
                    span.after = entry.id;
                }
                _ => {
                    let before = parent_of(timeline, entry)?;
                    spans.push(Span { before, first: entry.id, after: entry.id, claim });
                }
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
    Wanted::turn_of(turn).map(|turn| agent_work(timeline, &turn)).unwrap_or_default()
}

/// Consecutive checkpoints of the agent's work for a prompt.
pub(crate) struct WorkStretch {
    /// The checkpoint before the first one. `None` if that was deleted: then `last` is the only one.
    pub(crate) before: Option<CheckpointId>,
    /// The last one.
    pub(crate) last: CheckpointId,
    claim: Option<SharedCheckpoint>,
}

impl WorkStretch {
    /// Returns whether the change at a path is the agent's, and not that of another session.
    pub(crate) fn is_own(&self, path: &WorkspacePath) -> bool {
        self.claim.as_ref().is_none_or(|claim| claim.owner_of(path) == Ownership::Wanted)
    }
}

/// Returns the agent's work for a prompt, oldest first. For readers: unlike a selection for a revert, it does without
/// deleted checkpoints.
pub(crate) fn stretches_of_prompt(timeline: &Timeline, prompt: &TimelineEntry) -> Vec<WorkStretch> {
    let Some(wanted) = Wanted::turn_of(prompt) else { return Vec::new() };
    let mut stretches: Vec<WorkStretch> = Vec::new();
    for entry in agent_work(timeline, &wanted) {
        let claim = SharedCheckpoint::of(entry, &wanted);
        // Without the checkpoint before it, a stretch is one checkpoint that is compared by itself.
        let continued = stretches.last_mut().filter(|stretch| {
            let is_next = entry.parent == Some(stretch.last) && stretch.before.is_some();
            is_next && claim.is_none() && stretch.claim.is_none()
        });
        match continued {
            Some(stretch) => stretch.last = entry.id,
            None => {
                let before = entry.parent.filter(|parent| timeline.get(parent).is_some());
                stretches.push(WorkStretch { before, last: entry.id, claim });
            }
        }
    }
    stretches
}

/// Returns the checkpoints of the agent's work in a session, oldest first.
fn work_of_session<'t>(timeline: &'t Timeline, session: &str) -> Result<Vec<&'t TimelineEntry>> {
    let is_of_session =
        |entry: &TimelineEntry| entry.record().is_some_and(|record| record.origin.session.as_deref() == Some(session));
    if !timeline.entries().iter().any(is_of_session) {
        return Err(Error::UnknownSession { session: session.to_owned() });
    }
    Ok(agent_work(timeline, &Wanted::session(session)))
}

/// Returns the agent's work that fits, oldest first. If some of it leads to the checkpoint that the workspace stands on,
/// the rest was taken back by a restore and is omitted.
fn agent_work<'t>(timeline: &'t Timeline, wanted: &Wanted) -> Vec<&'t TimelineEntry> {
    let is_work = |entry: &&TimelineEntry| entry.record().is_some_and(|record| wanted.has_part_in(&record));
    let work: Vec<&TimelineEntry> = timeline.entries().iter().filter(is_work).collect();
    let line = std::iter::successors(timeline.current(), |entry| timeline.nearest(entry.parent?));
    let line: HashSet<CheckpointId> = line.map(|entry| entry.id).collect();
    let is_behind = |entry: &&&TimelineEntry| line.contains(&entry.id);
    if work.iter().any(|entry| is_behind(&entry)) { work.iter().filter(is_behind).copied().collect() } else { work }
}
