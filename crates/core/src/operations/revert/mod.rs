//! Takes back the changes of checkpoints while all later work stays.
//!
//! Selects stretches of the timeline, merges the way back into the files on disk, and leaves the writing to the phases
//! of a restore. The workspace stands on the same checkpoint afterwards.

mod address;
mod ownership;
mod select;
mod taken_back;

use jiff::Timestamp;

pub use select::RevertTarget;
use select::{Selection, Span};
pub(crate) use select::{WorkStretch, stretches_of_prompt};
pub(crate) use taken_back::TakenBackChanges;

use crate::{
    error::{Error, Result},
    model::{Change, CheckpointId, Conflict, Scope, WorkspacePath},
    operations::{
        diff::Checkpoints,
        merge::{Labels, Overlaps, Purpose, Stretch},
        restore::{HunkChoice, Intent, MergeGoal, Only, RestoreOutcome, RestorePlan, RestoreRequest},
    },
    store::{Store, Timeline},
    workspace::{Workspace, skipped::SkippedByCheckpoint},
};

/// The treatment of conflicts in a revert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnConflict {
    /// The revert is refused, and nothing is written.
    #[default]
    Refuse,
    /// Paths with a conflict stay as they are on disk.
    Skip,
    /// Overlapping lines are written into the file with markers. Other conflicts refuse the revert.
    Markers,
}

/// The parameters of a revert.
#[derive(Debug, Clone)]
pub struct RevertRequest {
    /// The changes to take back.
    pub target: RevertTarget,
    /// All of their paths, or just these.
    pub scope: Scope,
    /// The treatment of conflicts.
    pub on_conflict: OnConflict,
    /// The hash of the expected plan. The revert is refused if the plan is another one by now.
    pub plan: Option<String>,
    /// All changes, or only some hunks.
    pub hunks: HunkChoice,
}

impl RevertRequest {
    /// Returns a request for all paths.
    pub fn whole(target: RevertTarget) -> Self {
        Self { target, scope: Scope::Whole, on_conflict: OnConflict::default(), plan: None, hunks: HunkChoice::All }
    }
}

/// The changes that a revert would make.
#[derive(Debug, Clone)]
pub struct RevertPlan {
    /// The changes to the workspace.
    pub restore: RestorePlan,
    /// The checkpoints whose changes are taken back, newest first.
    pub reverted: Vec<CheckpointId>,
    /// Paths that stay as they are because another session may have changed them at the same time.
    pub shared: Vec<WorkspacePath>,
}

/// The outcome of a revert.
#[derive(Debug, Clone)]
pub struct RevertOutcome {
    /// The changes to the workspace.
    pub restore: RestoreOutcome,
    /// The checkpoints whose changes were taken back, newest first.
    pub reverted: Vec<CheckpointId>,
    /// Paths that stayed as they are because another session may have changed them at the same time.
    pub shared: Vec<WorkspacePath>,
}

impl Workspace {
    /// Returns what a revert would do. If the request names a plan, returns an error if the plan is another one by now.
    /// Only reads.
    pub fn plan_revert(&self, request: &RevertRequest) -> Result<RevertPlan> {
        let store = self.existing_store()?;
        let (intent, shared) = intent_of(&store, &store.timeline()?, request)?;
        let restore = self.plan_intent(&intent)?;
        restore.refuse_if_changed(request.plan.as_deref())?;
        Ok(RevertPlan { restore, reverted: intent.reverted, shared })
    }

    /// Takes back the changes of checkpoints, after taking a safety checkpoint.
    pub fn revert(&self, request: &RevertRequest, now: Timestamp) -> Result<RevertOutcome> {
        let revert = || {
            let (writer, _) = self.writer(now)?;
            let timeline = writer.timeline()?;
            let (intent, shared) = intent_of(writer.store(), &timeline, request)?;
            let restore = self.restore_locked(&writer, &intent, now)?;
            Ok(RevertOutcome { restore, reverted: intent.reverted, shared })
        };
        self.report_failure(revert(), now)
    }
}

/// Returns the intent for a request, and the paths that it leaves to other sessions.
fn intent_of(store: &Store, timeline: &Timeline, request: &RevertRequest) -> Result<(Intent, Vec<WorkspacePath>)> {
    let selection = Selection::of(timeline, &request.target)?;
    let mut shared = Vec::new();
    let mut stretches = Vec::new();
    for span in &selection.spans {
        stretches.push(stretch(store, span, &request.scope, &mut shared)?);
    }
    refuse_unknown_paths(&request.scope, &stretches, selection.newest)?;
    shared.sort();
    shared.dedup();
    let overlaps = match request.on_conflict {
        OnConflict::Markers => Overlaps::Markers,
        OnConflict::Refuse | OnConflict::Skip => Overlaps::Conflict,
    };
    let restore = RestoreRequest {
        target: selection.newest,
        scope: request.scope.clone(),
        only: Only::All,
        exact: true,
        also: Vec::new(),
        skip_conflicts: request.on_conflict == OnConflict::Skip,
        git: false,
        plan: request.plan.clone(),
        hunks: request.hunks.clone(),
    };
    let merge = Some(MergeGoal { stretches, overlaps });
    let partial = request.scope != Scope::Whole || matches!(request.hunks, HunkChoice::Only(_));
    Ok((Intent { merge, reverted: selection.reverted, partial, ..Intent::in_place(restore) }, shared))
}

/// Returns the changes of a span, as the merge sees them.
fn stretch(store: &Store, span: &Span, scope: &Scope, shared: &mut Vec<WorkspacePath>) -> Result<Stretch> {
    let checkpoints = Checkpoints::of(store);
    let (before, after) = (checkpoints.get(&span.before)?, checkpoints.get(&span.after)?);
    let mut left_out = SkippedByCheckpoint::of(store, &span.before)?;
    let mut changes = Vec::new();
    for change in checkpoints.changes_between(Some(&before), &after, scope)? {
        // A path that was merely not captured before was not created by the change.
        if change.old.is_none() && left_out.covers(&change.path, change.is_directory())? {
            continue;
        }
        changes.push(Change::between(change.path, change.new, change.old));
    }
    changes.retain(|change| span.takes(&change.path, shared));
    let labels = Labels {
        now: "now".to_owned(),
        base: format!("after {}", span.after.short()),
        other: format!("before {}", span.first.short()),
    };
    let (base, other) = (store.snapshot(&span.after)?, store.snapshot(&span.before)?);
    Ok(Stretch { base, other, changes, labels, purpose: Purpose::TakeBack })
}

/// Returns an error for a named path that the changes do not concern.
fn refuse_unknown_paths(scope: &Scope, stretches: &[Stretch], newest: CheckpointId) -> Result<()> {
    let changed = |path: &WorkspacePath| {
        let mut changes = stretches.iter().flat_map(|stretch| &stretch.changes);
        path.is_root() || changes.any(|change| change.path.is_within(path) || path.is_within(&change.path))
    };
    match scope.paths().unwrap_or_default().iter().find(|path| !changed(path)) {
        Some(path) => {
            let place = format!("the changes of checkpoint {}", newest.short());
            Err(Error::UnknownPath { path: path.clone(), place })
        }
        None => Ok(()),
    }
}

impl RevertPlan {
    /// Returns the paths with a conflict.
    pub fn conflicts(&self) -> &[Conflict] {
        &self.restore.conflicts
    }
}
