//! The requests that write: plans of restores and reverts, their execution, undo, redo, save and pin.
//!
//! Planning only reads. Only a plan that this server has shown can be applied, and only as long as it holds.

use backtrail::{
    Change, ChosenChanges, Conflict, Dropped, HunkChoice, Moved, OnConflict, Precious, RestoreOutcome, RestorePlan,
    RestoreRequest, RevertOutcome, RevertPlan, RevertRequest, SaveRequest, Skipped, Workspace,
    json::{ConflictJson, MovedFileJson, MovedJson, SavedJson, SkippedJson},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{answers::Reply, desk::Desk};
use crate::{
    access::{self, Purpose, RevertWords, limited},
    answers::{self, BoundedCheckpoint, Detail, Notes, ShownChange},
    failure::Failure,
    plans::Planned,
    running::Call,
};

const MAX_CHANGES: usize = 2_000;
const MAX_HUNK_BYTES: usize = 8 << 20;
const MAX_HUNKS: usize = 10_000;
const MAX_WORD_BYTES: usize = 1_000;
const MAX_MESSAGE_BYTES: usize = 4_000;

/// The changes that are chosen from a plan.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RestorePlanBody {
    checkpoint: String,
    paths: Option<Vec<String>>,
    /// The ids of the only hunks that are wanted.
    hunks: Option<Vec<String>>,
    /// With `hunks`: files whose whole change is wanted, too.
    files: Option<Vec<String>>,
    exact: Option<bool>,
    skip_conflicts: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RevertPlanBody {
    what: Option<String>,
    /// The N-th last prompt.
    turn: Option<u64>,
    session: Option<String>,
    paths: Option<Vec<String>>,
    hunks: Option<Vec<String>>,
    files: Option<Vec<String>>,
    skip_conflicts: Option<bool>,
    markers: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplyBody {
    plan: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SaveBody {
    message: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinBody {
    checkpoint: String,
    pinned: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoBody {}

/// The answer about a restore: a plan, or its outcome.
#[derive(Serialize)]
struct RestoreAnswer {
    plan: Option<String>,
    changes: Vec<ShownChange>,
    applied: bool,
    safety: Option<String>,
    conflicts: Vec<ConflictJson>,
    stays: Vec<ConflictJson>,
    not_restored: Vec<SkippedJson>,
    git: Option<MovedJson>,
    #[serde(flatten)]
    revert: Option<RevertFacts>,
    changes_total: u64,
    truncated: Vec<String>,
}

/// The part of an answer that only a revert has.
#[derive(Serialize)]
struct RevertFacts {
    reverted: Vec<String>,
    merged: Vec<String>,
    shared: Vec<String>,
    moved: Vec<MovedFileJson>,
}

impl RevertFacts {
    fn new(
        reverted: &[backtrail::CheckpointId],
        merged: &[backtrail::WorkspacePath],
        shared: &[backtrail::WorkspacePath],
        moved: &[Moved],
    ) -> Self {
        let texts = |paths: &[backtrail::WorkspacePath]| {
            paths.iter().take(MAX_CHANGES).map(|path| path.to_text().into_owned()).collect()
        };
        Self {
            reverted: reverted.iter().take(MAX_CHANGES).map(ToString::to_string).collect(),
            merged: texts(merged),
            shared: texts(shared),
            moved: moved.iter().take(MAX_CHANGES).map(MovedFileJson::from).collect(),
        }
    }
}

impl RestoreAnswer {
    fn new(changes: &[Change], conflicts: &[Conflict], stays: &[Conflict], precious: &Precious) -> Self {
        let mut notes = Notes::default();
        let mut shown = answers::changes(changes, MAX_CHANGES, precious, &mut notes);
        answers::limit_hunks(&mut shown, MAX_HUNK_BYTES, &mut notes);
        Self {
            plan: None,
            changes: shown,
            applied: false,
            safety: None,
            conflicts: answers::conflicts("conflicts", conflicts, precious, &mut notes),
            stays: answers::conflicts("stays", stays, precious, &mut notes),
            not_restored: Vec::new(),
            git: None,
            revert: None,
            changes_total: changes.len() as u64,
            truncated: notes.into_inner(),
        }
    }

    fn planned(plan: &RestorePlan, precious: &Precious) -> Self {
        let new = Self::new(&plan.changes, &plan.conflicts, &plan.stays(), precious);
        Self { plan: Some(plan.hash.clone()), git: plan.git().map(MovedJson::from), ..new }
    }

    fn done(done: &RestoreOutcome, precious: &Precious) -> Self {
        Self {
            plan: Some(done.plan.clone()),
            applied: done.applied,
            safety: done.safety.map(|safety| safety.to_string()),
            git: done.git.as_ref().map(MovedJson::from),
            ..Self::new(&done.changes, &done.conflicts, &done.stays, precious)
        }
    }

    fn without(self, lacking: &[Dropped]) -> Self {
        let mut notes = Notes::default();
        let lacking: Vec<_> =
            lacking.iter().map(|dropped| Skipped { path: dropped.path.clone(), reason: dropped.reason }).collect();
        let not_restored = answers::skipped("not_restored", &lacking, &mut notes);
        let truncated = self.truncated.into_iter().chain(notes.into_inner()).collect();
        Self { not_restored, truncated, ..self }
    }
}

pub(super) fn plan_restore(desk: &Desk, call: &Call, body: &[u8]) -> Result<Reply, Failure> {
    let body: RestorePlanBody = parsed(body)?;
    let (workspace, precious) = desk.open(Purpose::Scan, call)?;
    let target = access::checkpoint(&workspace, &body.checkpoint, &call.now)?;
    let request = RestoreRequest {
        scope: access::scope(&workspace, body.paths.as_deref().unwrap_or_default())?,
        exact: body.exact.unwrap_or(false),
        skip_conflicts: body.skip_conflicts.unwrap_or(false),
        hunks: choice(&workspace, body.hunks, body.files)?,
        ..RestoreRequest::whole(target)
    };
    let plan = workspace.plan_restore(&request)?;
    let lacking = lacking(&workspace, &request)?;
    desk.plans.remember_restore(&plan.hash, request);
    Reply::json(&RestoreAnswer::planned(&plan, &precious).without(&lacking))
}

pub(super) fn plan_revert(desk: &Desk, call: &Call, body: &[u8]) -> Result<Reply, Failure> {
    let body: RevertPlanBody = parsed(body)?;
    let (workspace, precious) = desk.open(Purpose::Scan, call)?;
    let words = RevertWords { what: body.what, turn: body.turn, session: body.session };
    let target = words.target(&workspace, &call.now)?;
    let on_conflict = match (body.skip_conflicts.unwrap_or(false), body.markers.unwrap_or(false)) {
        (true, true) => return Err(Failure::usage("skip_conflicts and markers are mutually exclusive")),
        (true, false) => OnConflict::Skip,
        (false, true) => OnConflict::Markers,
        (false, false) => OnConflict::Refuse,
    };
    let request = RevertRequest {
        scope: access::scope(&workspace, body.paths.as_deref().unwrap_or_default())?,
        on_conflict,
        hunks: choice(&workspace, body.hunks, body.files)?,
        ..RevertRequest::whole(target)
    };
    let RevertPlan { restore, reverted, shared } = &workspace.plan_revert(&request)?;
    desk.plans.remember_revert(&restore.hash, request);
    let facts = RevertFacts::new(reverted, &restore.merged, shared, &restore.moved);
    Reply::json(&RestoreAnswer { revert: Some(facts), ..RestoreAnswer::planned(restore, &precious) })
}

pub(super) fn apply(desk: &Desk, call: &Call, body: &[u8]) -> Result<Reply, Failure> {
    let ApplyBody { plan } = parsed(body)?;
    let planned = desk.plans.any(&plan)?;
    let (workspace, precious) = desk.open(Purpose::Restore, call)?;
    let now = call.now.timestamp();
    Reply::json(&match planned {
        Planned::Restore(request) => {
            let lacking = lacking(&workspace, &request)?;
            RestoreAnswer::done(&workspace.restore(&request, now)?, &precious).without(&lacking)
        }
        Planned::Revert(request) => {
            let RevertOutcome { restore, reverted, shared } = &workspace.revert(&request, now)?;
            let facts = RevertFacts::new(reverted, &restore.merged, shared, &restore.moved);
            RestoreAnswer { revert: Some(facts), ..RestoreAnswer::done(restore, &precious) }
        }
        Planned::Adopt(_) => return Err(Failure::usage("this plan can't be applied here")),
    })
}

pub(super) fn undo(desk: &Desk, call: &Call, body: &[u8]) -> Result<Reply, Failure> {
    let NoBody {} = parsed(body)?;
    let (workspace, precious) = desk.open(Purpose::Restore, call)?;
    taken_back(workspace.undo(call.now.timestamp())?, &precious)
}

pub(super) fn redo(desk: &Desk, call: &Call, body: &[u8]) -> Result<Reply, Failure> {
    let NoBody {} = parsed(body)?;
    let (workspace, precious) = desk.open(Purpose::Restore, call)?;
    taken_back(workspace.redo(call.now.timestamp())?, &precious)
}

fn taken_back(done: Option<RestoreOutcome>, precious: &Precious) -> Result<Reply, Failure> {
    Reply::json(&match done {
        Some(done) => RestoreAnswer::done(&done, precious),
        None => RestoreAnswer::new(&[], &[], &[], precious),
    })
}

pub(super) fn save(desk: &Desk, call: &Call, body: &[u8]) -> Result<Reply, Failure> {
    let SaveBody { message } = parsed(body)?;
    limited("message", message.as_deref().unwrap_or_default(), MAX_MESSAGE_BYTES)?;
    let (workspace, _) = desk.open(Purpose::Save, call)?;
    let message = message.filter(|message| !message.trim().is_empty());
    let saved = workspace.save(&SaveRequest { message, ..SaveRequest::default() }, call.now.timestamp())?;
    Reply::json(&SavedJson::from(&saved))
}

#[derive(Serialize)]
struct Pinned {
    checkpoint: BoundedCheckpoint,
}

pub(super) fn pin(desk: &Desk, call: &Call, body: &[u8]) -> Result<Reply, Failure> {
    let PinBody { checkpoint, pinned } = parsed(body)?;
    let (workspace, _) = desk.open(Purpose::Restore, call)?;
    let id = access::checkpoint(&workspace, &checkpoint, &call.now)?;
    let now = call.now.timestamp();
    let checkpoint = if pinned { workspace.pin(&id, now)? } else { workspace.unpin(&id, now)? };
    Reply::json(&Pinned { checkpoint: BoundedCheckpoint::new(&checkpoint, Detail::Full) })
}

/// Parses a body. An empty one is an object without fields.
fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    let body = if body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| Failure::usage(format!("the body is not valid: {error}")))
}

/// Returns the chosen changes. Without a choice, all of them, with their hunks.
fn choice(
    workspace: &Workspace,
    hunks: Option<Vec<String>>,
    files: Option<Vec<String>>,
) -> Result<HunkChoice, Failure> {
    let (hunks, files) = match (hunks, files) {
        (None, None) => return Ok(HunkChoice::Listed),
        (hunks, files) => (hunks.unwrap_or_default(), files.unwrap_or_default()),
    };
    if hunks.len() > MAX_HUNKS || files.len() > MAX_HUNKS {
        return Err(Failure::usage(format!("too many hunks or files: the limit is {MAX_HUNKS}")));
    }
    hunks.iter().try_for_each(|hunk| limited("hunk", hunk, MAX_WORD_BYTES))?;
    let paths = files.iter().map(|named| access::path(workspace, named)).collect::<Result<_, _>>()?;
    Ok(HunkChoice::Only(ChosenChanges { hunks, paths }))
}

/// Returns the paths of the request that its checkpoint could not capture, and that stay unchanged.
fn lacking(workspace: &Workspace, request: &RestoreRequest) -> Result<Vec<Dropped>, Failure> {
    let dropped = workspace.unprotected_at(&request.target)?.into_iter();
    Ok(dropped.filter(|dropped| request.scope.contains(&dropped.path)).collect())
}
