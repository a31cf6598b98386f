//! `revert_plan`, which only reads, and `revert`, which makes exactly the changes of a plan.

use backtrail::{CheckpointId, Moved, OnConflict, RevertRequest, WorkspacePath, json::MovedFileJson};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Shared, count,
    restore::{RestoreAnswer, hunk_choice},
    show::{MAX_CHANGES, USUAL_CHANGES},
};
use crate::{
    access::{self, Purpose, RevertWords},
    answers::Notes,
    failure::Failure,
    running::Call,
};

pub(super) const ABOUT_PLAN: &str = "Show what taking back one thing would do to the files on disk, and change nothing. \
Later work stays: each file is merged with the edits that came after. Name exactly one of `what`, `turn` and `session`. \
To do it, call revert with the `plan` of this answer. It is refused if `conflicts` is not empty; then plan again with \
skip_conflicts or markers.";

pub(super) const ABOUT_APPLY: &str = "Do what revert_plan showed, if the files have not changed since. A safety \
checkpoint is taken first, so nothing is lost, and `undo` takes the revert back. Needs the `plan` of revert_plan's \
answer. Ask the user before you take back work that is not yours.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanArgs {
    /// The checkpoint whose own changes are taken back; turn:N for the agent's work for prompt N; FROM..TO for
    /// everything between two checkpoints.
    what: Option<String>,
    /// The agent's work for the prompt that is this far from the last, from 1.
    turn: Option<u64>,
    /// All the agent's work in this session; next to turn:N, the session of that prompt.
    session: Option<String>,
    /// Only these files and directories, relative to the workspace; everything by default.
    paths: Option<Vec<String>>,
    /// Leave files with conflicts as they are, instead of refusing the whole revert.
    skip_conflicts: Option<bool>,
    /// Write overlapping lines into the files with conflict markers, instead of refusing.
    markers: Option<bool>,
    /// Only these hunks: ids from the answer of the tool hunks, for the same changes.
    hunks: Option<Vec<String>>,
    /// The maximum number of changes to list, from 1 to 1000; 200 by default.
    limit: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplyArgs {
    /// The `plan` from the answer of revert_plan.
    plan: String,
}

/// The answer of `revert_plan` and `revert`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct RevertAnswer {
    #[serde(flatten)]
    restore: RestoreAnswer,
    /// The checkpoints whose changes are taken back, newest first.
    reverted: Vec<String>,
    /// The changed paths whose lines are merged with later edits.
    merged: Vec<String>,
    /// Paths that stay as they are because another session may have changed them at the same time.
    shared: Vec<String>,
    /// Files that are changed at the paths to which they were moved.
    moved: Vec<MovedFileJson>,
}

pub(super) fn plan(shared: &Shared, call: &Call, args: PlanArgs) -> Result<RevertAnswer, Failure> {
    let limit = count("limit", args.limit, USUAL_CHANGES, MAX_CHANGES)?;
    let (workspace, precious) = shared.open(Purpose::Scan, call)?;
    let words = RevertWords { what: args.what, turn: args.turn, session: args.session };
    let request = RevertRequest {
        scope: access::scope(&workspace, args.paths.as_deref().unwrap_or_default())?,
        on_conflict: on_conflict(args.skip_conflicts, args.markers)?,
        hunks: hunk_choice(args.hunks)?,
        ..RevertRequest::whole(words.target(&workspace, &call.now)?)
    };
    let plan = workspace.plan_revert(&request)?;
    shared.plans.remember_revert(&plan.restore.hash, request);
    let restore = RestoreAnswer::planned(&plan.restore, &[], limit, &precious).about(plan.reverted.first().copied());
    let (merged, moved) = (&plan.restore.merged, &plan.restore.moved);
    Ok(RevertAnswer::new(restore, &plan.reverted, merged, &plan.shared, moved))
}

pub(super) fn apply(shared: &Shared, call: &Call, args: ApplyArgs) -> Result<RevertAnswer, Failure> {
    let request = shared.plans.revert(&args.plan)?;
    let (workspace, precious) = shared.open(Purpose::Restore, call)?;
    let done = workspace.revert(&request, call.now.timestamp())?;
    let restore = RestoreAnswer::done(&done.restore, &[], &precious).about(done.reverted.first().copied());
    Ok(RevertAnswer::new(restore, &done.reverted, &done.restore.merged, &done.shared, &done.restore.moved))
}

impl RevertAnswer {
    fn new(
        mut restore: RestoreAnswer,
        reverted: &[CheckpointId],
        merged: &[WorkspacePath],
        shared: &[WorkspacePath],
        moved: &[Moved],
    ) -> Self {
        let mut notes = Notes::default();
        let mut reverted: Vec<String> = reverted.iter().map(ToString::to_string).collect();
        notes.cut_list("reverted", &mut reverted, MAX_CHANGES, String::len);
        let merged = paths("merged", merged, &mut notes);
        let shared = paths("shared", shared, &mut notes);
        let moved = moved_files(moved, &mut notes);
        restore.truncated.extend(notes.into_inner());
        Self { restore, reverted, merged, shared, moved }
    }
}

/// Returns the first of some paths. `name` is the name of the list in the answer.
pub(super) fn paths(name: &str, paths: &[WorkspacePath], notes: &mut Notes) -> Vec<String> {
    let mut told: Vec<String> = paths.iter().map(|path| path.to_text().into_owned()).collect();
    notes.cut_list(name, &mut told, MAX_CHANGES, String::len);
    told
}

/// Returns the first of the files that are changed at other paths.
pub(super) fn moved_files(moved: &[Moved], notes: &mut Notes) -> Vec<MovedFileJson> {
    let mut told: Vec<MovedFileJson> = moved.iter().map(MovedFileJson::from).collect();
    notes.cut_list("moved", &mut told, MAX_CHANGES, |moved| moved.from.len() + moved.to.len());
    told
}

/// Returns the treatment of conflicts that the arguments ask for.
pub(super) fn on_conflict(skip: Option<bool>, markers: Option<bool>) -> Result<OnConflict, Failure> {
    match (skip.unwrap_or(false), markers.unwrap_or(false)) {
        (true, true) => Err(Failure::usage("skip_conflicts and markers are mutually exclusive")),
        (true, false) => Ok(OnConflict::Skip),
        (false, true) => Ok(OnConflict::Markers),
        (false, false) => Ok(OnConflict::Refuse),
    }
}
