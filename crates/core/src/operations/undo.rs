//! Takes back a restore or a deletion, and takes back an undo.
//!
//! There are two stacks, replayed from the log of operations. Each undo and redo of a restore is itself a journaled
//! restore with a safety checkpoint of its own, so that edits in between are never lost. The undo of a deletion takes
//! the checkpoints out of the bin and changes no file.

use jiff::Timestamp;

use crate::{
    error::{Error, Result},
    events::Event,
    model::{CheckpointId, Kind, Scope, WorkspacePath},
    operations::restore::{ExactPaths, Intent, Landing, RestoreOutcome, RestorePlan, RestoreRequest, TakenBack},
    spans::{operation, read_span, write_span},
    store::{Binned, Direction, Done, ExactText, Restored, Timeline, TimelineEntry, Writer},
    workspace::Workspace,
};

impl Workspace {
    /// Takes back the last restore or deletion. Returns `None` if there is nothing to take back.
    pub fn undo(&self, now: Timestamp) -> Result<Option<RestoreOutcome>> {
        let span = write_span!(self.store_directory(), "undo", target, safety, changes, conflicts, unsaved);
        let done = operation(&span, || self.report_failure(self.walk(Direction::Undo, now), now))?;
        done.iter().for_each(|done| done.note(&span));
        Ok(done)
    }

    /// Takes back the last undo. Returns `None` if there is nothing to take back.
    pub fn redo(&self, now: Timestamp) -> Result<Option<RestoreOutcome>> {
        let span = write_span!(self.store_directory(), "redo", target, safety, changes, conflicts, unsaved);
        let done = operation(&span, || self.report_failure(self.walk(Direction::Redo, now), now))?;
        done.iter().for_each(|done| done.note(&span));
        Ok(done)
    }

    /// Returns what [`Workspace::undo`] would do. Only reads.
    pub fn plan_undo(&self) -> Result<Option<(RestorePlan, TakenBack)>> {
        let span = read_span!(self.store_directory(), "plan_undo", changes, conflicts);
        let planned = operation(&span, || self.plan_walk(Direction::Undo))?;
        planned.iter().for_each(|(plan, _)| plan.note(&span));
        Ok(planned)
    }

    /// Returns what [`Workspace::redo`] would do. Only reads.
    pub fn plan_redo(&self) -> Result<Option<(RestorePlan, TakenBack)>> {
        let span = read_span!(self.store_directory(), "plan_redo", changes, conflicts);
        let planned = operation(&span, || self.plan_walk(Direction::Redo))?;
        planned.iter().for_each(|(plan, _)| plan.note(&span));
        Ok(planned)
    }

    /// Returns what [`Workspace::undo`] or [`Workspace::redo`] would take back. Only reads, and does not look at files.
    pub fn next_taken_back(&self, direction: Direction) -> Result<Option<TakenBack>> {
        let timeline = self.timeline_if_any()?;
        Ok(next(&timeline, direction).map(|done| taken_back(&timeline, done)))
    }

    fn walk(&self, direction: Direction, now: Timestamp) -> Result<Option<RestoreOutcome>> {
        if self.store()?.is_none() {
            return Ok(None);
        }
        let (writer, _) = self.writer(now)?;
        let timeline = writer.timeline()?;
        let Some(last) = next(&timeline, direction) else { return Ok(None) };
        let taken_back = taken_back(&timeline, last);
        let done = match last {
            Done::Restored(last) => {
                let intent = Takeable::of(last, &timeline).way_back(direction, &taken_back);
                self.restore_locked(&writer, &intent, now)?
            }
            Done::Binned(binned) if direction == Direction::Redo => self.delete_again(&writer, binned, now)?,
            Done::Binned(binned) => self.undelete(&writer, binned, now)?,
        };
        let stands_on = writer.timeline()?.current().map(|entry| entry.id);
        Ok(Some(RestoreOutcome { taken_back: Some(taken_back), stands_on, ..done }))
    }

    fn plan_walk(&self, direction: Direction) -> Result<Option<(RestorePlan, TakenBack)>> {
        let Some(store) = self.store()? else { return Ok(None) };
        let timeline = store.timeline()?;
        let Some(last) = next(&timeline, direction) else { return Ok(None) };
        let taken_back = taken_back(&timeline, last);
        let plan = match last {
            Done::Restored(last) => {
                self.plan_intent(&Takeable::of(last, &timeline).way_back(direction, &taken_back))?
            }
            Done::Binned(_) => {
                let stands_on = timeline.current().map(|entry| entry.id);
                RestorePlan { stands_on, ..RestorePlan::of_no_file(&taken_back.deleted) }
            }
        };
        Ok(Some((plan, taken_back)))
    }

    /// Takes the checkpoints of a deletion out of the bin.
    fn undelete(&self, writer: &Writer, binned: &Binned, now: Timestamp) -> Result<RestoreOutcome> {
        let undeleted = writer.unbin(binned, now)?;
        self.emit(writer, Event::CheckpointsUndeleted { checkpoints: undeleted.clone() }, now)?;
        writer.tidy()?;
        let timeline = writer.timeline()?;
        let first = undeleted.first().and_then(|id| timeline.get(id));
        let done = self.without_changes(writer, first, &undeleted)?;
        Ok(RestoreOutcome { undeleted, ..done })
    }

    /// Moves checkpoints to the bin that an undo took out of it.
    fn delete_again(&self, writer: &Writer, binned: &Binned, now: Timestamp) -> Result<RestoreOutcome> {
        let timeline = writer.timeline()?;
        let going: Vec<&TimelineEntry> = binned.ids().filter_map(|id| timeline.get(&id)).collect();
        let deleted: Vec<CheckpointId> = going.iter().map(|entry| entry.id).collect();
        let done = self.without_changes(writer, going.first().copied(), &deleted)?;
        writer.bin(&going, Direction::Redo, now)?;
        for checkpoint in &deleted {
            self.emit(writer, Event::CheckpointDeleted { checkpoint: *checkpoint }, now)?;
        }
        Ok(RestoreOutcome { deleted, ..done })
    }

    /// Returns the outcome of an operation that concerned these checkpoints and changed no file.
    fn without_changes(
        &self,
        writer: &Writer,
        first: Option<&TimelineEntry>,
        ids: &[CheckpointId],
    ) -> Result<RestoreOutcome> {
        let entry = first.ok_or_else(|| Error::Internal("a checkpoint in the bin is not there".into()))?;
        let checkpoint = writer.store().summary(entry)?;
        Ok(RestoreOutcome::of_no_file(checkpoint, RestorePlan::of_no_file(ids).hash))
    }
}

/// Returns the operation to take back next. Returns `None` if there is none, or if what this needs was deleted.
fn next(timeline: &Timeline, direction: Direction) -> Option<Done<'_>> {
    let stacks = timeline.operations.stacks();
    let last = match direction {
        Direction::Undo => stacks.undo.last().copied(),
        _ => stacks.redo.last().copied(),
    };
    last.filter(|last| match (last, direction) {
        (Done::Restored(restored), _) => restored.is_reachable(timeline),
        (Done::Binned(binned), Direction::Undo) => binned.ids().any(|id| timeline.is_binned(&id)),
        (Done::Binned(binned), _) => binned.ids().any(|id| timeline.get(&id).is_some()),
    })
}

/// Returns what the user is told about an operation that is taken back.
fn taken_back(timeline: &Timeline, done: Done<'_>) -> TakenBack {
    let since = |entry: &&TimelineEntry| entry.sequence > done.sequence() && entry.kind != Kind::Safety;
    let saves_since = timeline.entries().iter().filter(since).count();
    match done {
        Done::Restored(restored) => TakenBack { saves_since, ..origin(timeline, restored) },
        Done::Binned(binned) => {
            let is_there = |id: &CheckpointId| timeline.is_binned(id) || timeline.get(id).is_some();
            let deleted: Vec<CheckpointId> = binned.ids().filter(is_there).collect();
            TakenBack {
                target: deleted.first().copied().unwrap_or(binned.checkpoints[0].id),
                time: Timestamp::from_millisecond(binned.time).ok(),
                is_revert: false,
                is_adoption: false,
                deleted,
                saves_since,
            }
        }
    }
}

/// Returns the restore that the user asked for, from which undos and redos led here.
fn origin(timeline: &Timeline, last: &Restored) -> TakenBack {
    let mut done = last;
    while done.direction != Direction::Forward {
        let earlier = timeline.operations.restores().filter(|other| other.sequence < done.sequence);
        // An undo restores the safety checkpoint of the restore that it takes back.
        match earlier.rev().find(|other| other.safety == Some(done.target)) {
            Some(other) => done = other,
            None => break,
        }
    }
    let (is_revert, is_adoption) = (!done.reverted.is_empty(), done.adopted.is_some());
    let (target, time) = (done.target, done.time(timeline));
    TakenBack { target, time, is_revert, is_adoption, deleted: Vec::new(), saves_since: 0 }
}

/// A restore that can be taken back.
#[derive(Debug, Clone)]
struct Takeable {
    /// The safety checkpoint from before the restore. `None` if the restore changed no file, only the checkpoint that
    /// the workspace stands on.
    safety: Option<CheckpointId>,
    target: CheckpointId,
    scope: Scope,
    named: Option<Scope>,
    exact: Option<Vec<WorkspacePath>>,
    before: Option<CheckpointId>,
    made_by: Vec<CheckpointId>,
    reverted: Vec<CheckpointId>,
    partial: bool,
    adopted: Option<ExactText>,
}

impl Takeable {
    fn of(done: &Restored, timeline: &Timeline) -> Self {
        let is_revert = done.direction == Direction::Forward && !done.reverted.is_empty();
        // A revert brings files from before the changes that it takes back.
        let parents = done.reverted.iter().filter_map(|id| timeline.get(id)?.parent);
        let made_by = match is_revert {
            true => parents.collect(),
            false => std::iter::once(done.target).chain(done.also_from.iter().copied()).collect(),
        };
        let (scope, named, exact) = (done.scope.clone(), done.named.clone(), done.exact.clone());
        let (safety, target, before, reverted) = (done.safety, done.target, done.before, done.reverted.clone());
        let (named, adopted, partial) = (named.filter(|_| exact.is_none()), done.adopted.clone(), done.partial);
        Self { safety, target, scope, named, exact, before, made_by, reverted, partial, adopted }
    }

    fn way_back(&self, direction: Direction, origin: &TakenBack) -> Intent {
        // If no file was changed, the files are those of the checkpoint that the workspace stood on, or edits since. An
        // empty scope leaves them alone, and only moves the workspace back to that checkpoint.
        let (target, scope, named) = match self.safety {
            Some(safety) => (safety, self.scope.clone(), self.named.clone()),
            None => (self.before.unwrap_or(self.target), Scope::Paths(Vec::new()), None),
        };
        let options = RestoreRequest { exact: true, skip_conflicts: true, git: true, ..RestoreRequest::whole(target) };
        let request = RestoreRequest { scope, ..options };
        // A merge never moves the workspace to another checkpoint, and neither does its undo.
        let is_merge = !self.reverted.is_empty() || self.adopted.is_some();
        let landing = if is_merge { Landing::Stays } else { Landing::On(self.before) };
        Intent {
            named,
            exact: self.exact.clone().map(ExactPaths::of),
            direction,
            landing,
            made_by: self.made_by.clone(),
            origin: Some(origin.target),
            reverted: self.reverted.clone(),
            partial: self.partial,
            adopted: self.adopted.clone(),
            ..Intent::in_place(request)
        }
    }
}
