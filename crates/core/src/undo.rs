//! Taking back a restore, and taking that back.
//!
//! Two stacks, replayed from the log of operations. Each undo and redo is itself a journaled restore with a safety
//! checkpoint of its own, so that edits in between are never lost.

use jiff::Timestamp;

use crate::{
    error::Result,
    model::{CheckpointId, Scope},
    restore::{Intent, Only, RestoreOutcome, RestoreRequest},
    store::{Direction, Restored},
    workspace::Workspace,
};

impl Workspace {
    /// Takes back the last restore; none where there is nothing to take back.
    pub fn undo(&self, now: Timestamp) -> Result<Option<RestoreOutcome>> {
        self.walk(Direction::Undo, now)
    }

    /// Takes back the last undo; none where there is nothing to take back.
    pub fn redo(&self, now: Timestamp) -> Result<Option<RestoreOutcome>> {
        self.walk(Direction::Redo, now)
    }

    fn walk(&self, direction: Direction, now: Timestamp) -> Result<Option<RestoreOutcome>> {
        if self.store()?.is_none() {
            return Ok(None);
        }
        let (writer, _) = self.writer(now)?;
        let timeline = writer.timeline()?;
        let stacks = timeline.operations.stacks();
        let last = match direction {
            Direction::Undo => stacks.undo.last(),
            _ => stacks.redo.last(),
        };
        let Some(last) = last.filter(|last| last.is_reachable(&timeline)) else { return Ok(None) };
        let intent = Takeable::of(last).way_back(direction);
        self.restore_locked(&writer, &intent, now).map(Some)
    }
}

/// A restore that can be taken back.
#[derive(Debug, Clone)]
struct Takeable {
    /// What the workspace was before it; none where it changed nothing but where the workspace stands.
    safety: Option<CheckpointId>,
    target: CheckpointId,
    scope: Scope,
    before: Option<CheckpointId>,
}

impl Takeable {
    fn of(done: &Restored) -> Self {
        Self { safety: done.safety, target: done.target, scope: done.scope.clone(), before: done.before }
    }

    fn way_back(&self, direction: Direction) -> Intent {
        // Where nothing was changed the files are those of the checkpoint it stood on, or edits since: an empty scope
        // leaves them alone and only moves the workspace back.
        let (target, scope) = match self.safety {
            Some(safety) => (safety, self.scope.clone()),
            None => (self.before.unwrap_or(self.target), Scope::Paths(Vec::new())),
        };
        let request =
            RestoreRequest { target, scope, only: Only::All, exact: true, skip_conflicts: true, git: true, plan: None };
        Intent { request, direction, after: self.before, made_by: Some(self.target) }
    }
}
