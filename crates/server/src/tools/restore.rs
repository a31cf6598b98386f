//! `restore_plan`, which only reads, and `restore_apply`, which makes exactly the changes of a plan.

use backtrail::{
    Change, CheckpointId, ChosenChanges, Conflict, HunkChoice, Only, Precious, RestoreOutcome, RestorePlan,
    RestoreRequest, Skipped, Workspace,
    json::{ConflictJson, MovedJson, SkippedJson},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Shared, count,
    show::{MAX_CHANGES, USUAL_CHANGES},
};
use crate::{
    access::{self, Purpose},
    answers::{self, Notes, ShownChange},
    failure::Failure,
    running::Call,
};

pub(super) const ABOUT_PLAN: &str = "Show what a restore would do to the files on disk, but change nothing. `changes` \
lists the effects: a file that comes back is added, a file that is removed is deleted. To do it, call restore_apply \
with the `plan` of this answer. Only files that the checkpoint holds are restored. Files that it skipped never change.";

pub(super) const ABOUT_APPLY: &str = "Do what restore_plan showed, if the files have not changed since. A safety \
checkpoint is taken first, so nothing is lost, and `undo` takes the restore back. Needs the `plan` of \
restore_plan's answer. Ask the user before you take back work that is not yours.";

/// The maximum number of hunks in one plan.
const MAX_HUNKS: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanArgs {
    /// The checkpoint: an id or its first 4 or more characters, a name, @ (the one that the workspace stands on), @~N
    /// (N steps back, also from any other), latest, step:N, turn:N, before:ID, ago:20m, at:14:30.
    checkpoint: String,
    /// Only these files and directories, relative to the workspace; everything by default.
    paths: Option<Vec<String>>,
    /// `all` (the default), `files` (without the agent's own state files), or `state` (only the state files).
    only: Option<OnlyWord>,
    /// Also remove files that an incomplete checkpoint does not have.
    exact: Option<bool>,
    /// Skip paths with conflicts instead of refusing the whole restore.
    skip_conflicts: Option<bool>,
    /// Only these hunks: ids from the answer of the tool hunks, for the same checkpoint.
    hunks: Option<Vec<String>>,
    /// The maximum number of changes to list, from 1 to 1000; 200 by default.
    limit: Option<u64>,
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OnlyWord {
    All,
    Files,
    State,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplyArgs {
    /// The `plan` from the answer of restore_plan.
    plan: String,
}

/// The answer of `restore_plan`, `restore_apply` and `undo`, and a part of the answers of `revert` and `adopt`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RestoreAnswer {
    /// The hash of the plan; null if there was nothing to take back.
    plan: Option<String>,
    /// The checkpoint that is restored, or the newest one whose changes a revert takes back; null for an adoption, and if
    /// there was nothing to take back.
    checkpoint: Option<String>,
    /// The changes that the restore made to the workspace, or would make.
    changes: Vec<ShownChange>,
    /// The total number of changes.
    changes_total: u64,
    /// True if the restore was carried out; false for a plan.
    applied: bool,
    /// The safety checkpoint, which has the files from before the restore; null if nothing had to change.
    safety: Option<String>,
    /// Paths that were not restored, because something was in the way or another process changed them meanwhile.
    conflicts: Vec<ConflictJson>,
    /// Paths that should be removed but stay, or would stay, such as git's own directory. They do not prevent the
    /// restore.
    stays: Vec<ConflictJson>,
    /// Paths on disk that the checkpoint could not capture, although an earlier one held them. They can't be restored.
    not_restored: Vec<SkippedJson>,
    /// The position that the user's repository was moved to; null if it was left alone. Only `undo` of the user's own
    /// restore moves it.
    git: Option<MovedJson>,
    /// Notes on truncated parts of this answer; empty if nothing was truncated.
    pub(super) truncated: Vec<String>,
}

pub(super) fn plan(shared: &Shared, call: &Call, args: PlanArgs) -> Result<RestoreAnswer, Failure> {
    let limit = count("limit", args.limit, USUAL_CHANGES, MAX_CHANGES)?;
    let (workspace, precious) = shared.open(Purpose::Scan, call)?;
    let target = access::checkpoint(&workspace, &args.checkpoint, &call.now)?;
    let request = RestoreRequest {
        scope: access::scope(&workspace, args.paths.as_deref().unwrap_or_default())?,
        only: match args.only {
            None | Some(OnlyWord::All) => Only::All,
            Some(OnlyWord::Files) => Only::Files,
            Some(OnlyWord::State) => Only::State,
        },
        exact: args.exact.unwrap_or(false),
        skip_conflicts: args.skip_conflicts.unwrap_or(false),
        hunks: hunk_choice(args.hunks)?,
        ..RestoreRequest::whole(target)
    };
    let plan = workspace.plan_restore(&request)?;
    let lacking = lacking(&workspace, &request)?;
    shared.plans.remember_restore(&plan.hash, request);
    let answer = RestoreAnswer::planned(&plan, &lacking, limit, &precious);
    Ok(answer.about(Some(target)))
}

pub(super) fn apply(shared: &Shared, call: &Call, args: ApplyArgs) -> Result<RestoreAnswer, Failure> {
    let request = shared.plans.restore(&args.plan)?;
    let (workspace, precious) = shared.open(Purpose::Restore, call)?;
    let lacking = lacking(&workspace, &request)?;
    let done = workspace.restore(&request, call.now.timestamp())?;
    Ok(RestoreAnswer::done(&done, &lacking, &precious))
}

/// Returns the paths of the request that its checkpoint could not capture, and that stay unchanged.
fn lacking(workspace: &Workspace, request: &RestoreRequest) -> Result<Vec<Skipped>, Failure> {
    let dropped = workspace.unprotected_at(&request.target)?.into_iter();
    let dropped = dropped.filter(|dropped| request.scope.contains(&dropped.path));
    Ok(dropped.map(|dropped| Skipped { path: dropped.path, reason: dropped.reason }).collect())
}

/// Returns the hunks that a plan is limited to.
pub(super) fn hunk_choice(ids: Option<Vec<String>>) -> Result<HunkChoice, Failure> {
    match ids {
        None => Ok(HunkChoice::All),
        Some(hunks) if hunks.is_empty() || hunks.len() > MAX_HUNKS => {
            let message = format!("hunks has {} ids, but must have 1 to {MAX_HUNKS}", hunks.len());
            Err(Failure::usage(message).with_hint("leave out hunks for all changes"))
        }
        Some(hunks) => Ok(HunkChoice::Only(ChosenChanges { hunks, paths: Vec::new() })),
    }
}

/// The contents of an answer.
struct Facts<'a> {
    changes: &'a [Change],
    conflicts: &'a [Conflict],
    stays: &'a [Conflict],
    lacking: &'a [Skipped],
    limit: usize,
    precious: &'a Precious,
}

impl RestoreAnswer {
    fn of(facts: &Facts<'_>) -> Self {
        let mut notes = Notes::default();
        let changes = answers::changes(facts.changes, facts.limit, facts.precious, &mut notes);
        Self {
            plan: None,
            checkpoint: None,
            changes,
            changes_total: facts.changes.len() as u64,
            applied: false,
            safety: None,
            conflicts: answers::conflicts("conflicts", facts.conflicts, facts.precious, &mut notes),
            stays: answers::conflicts("stays", facts.stays, facts.precious, &mut notes),
            not_restored: answers::skipped("not_restored", facts.lacking, &mut notes),
            git: None,
            truncated: notes.into_inner(),
        }
    }

    /// Returns the answer for a plan, without its checkpoint.
    pub(super) fn planned(plan: &RestorePlan, lacking: &[Skipped], limit: usize, precious: &Precious) -> Self {
        let RestorePlan { hash, changes, conflicts, .. } = plan;
        let facts = Facts { changes, conflicts, stays: &plan.stays(), lacking, limit, precious };
        Self { plan: Some(hash.clone()), ..Self::of(&facts) }
    }

    /// Returns the answer for a restore that was carried out.
    pub(super) fn done(done: &RestoreOutcome, lacking: &[Skipped], precious: &Precious) -> Self {
        let RestoreOutcome { changes, conflicts, stays, .. } = done;
        let facts = Facts { changes, conflicts, stays, lacking, limit: USUAL_CHANGES, precious };
        Self {
            plan: Some(done.plan.clone()),
            checkpoint: Some(done.target.to_string()),
            applied: done.applied,
            safety: done.safety.map(|safety| safety.to_string()),
            git: done.git.as_ref().map(MovedJson::from),
            ..Self::of(&facts)
        }
    }

    /// Replaces the checkpoint that the answer is about.
    pub(super) fn about(self, checkpoint: Option<CheckpointId>) -> Self {
        Self { checkpoint: checkpoint.map(|id| id.to_string()), ..self }
    }

    /// Returns the answer for an undo without a restore to take back.
    pub(super) fn nothing(precious: &Precious) -> Self {
        Self::of(&Facts { changes: &[], conflicts: &[], stays: &[], lacking: &[], limit: USUAL_CHANGES, precious })
    }
}
