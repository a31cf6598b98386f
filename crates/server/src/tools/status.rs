//! `workspace_status`.

use backtrail::json::SkippedJson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Shared, count,
    show::{MAX_CHANGES, USUAL_CHANGES},
};
use crate::{
    access::{self, Purpose},
    answers::{self, BoundedCheckpoint, Detail, Notes, ShownChange},
    failure::Failure,
    running::Call,
};

pub(super) const ABOUT: &str = "Show what changed on disk since the checkpoint that the workspace stands on, or since \
another one: added, modified and deleted paths, including those that shell commands changed.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusArgs {
    /// The checkpoint to compare with: an id, a name, @~N, latest, step:N, turn:N, before:ID, ago:20m, at:14:30.
    since: Option<String>,
    /// The maximum number of changes to list, from 1 to 1000; 200 by default.
    limit: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StatusAnswer {
    /// The directory that Backtrail protects.
    workspace: String,
    /// The checkpoint that the files were compared with; null before the first checkpoint: no file can be restored yet.
    checkpoint: Option<BoundedCheckpoint>,
    /// The changes since that checkpoint.
    changes: Vec<ShownChange>,
    /// The total number of changes.
    changes_total: u64,
    /// Paths that the checkpoint holds and that a new one would skip, with the reasons.
    skipped: Vec<SkippedJson>,
    /// Paths that an earlier checkpoint held, that are still on disk, and that can't be captured now. Changes to them
    /// can't be taken back.
    unprotected: Vec<SkippedJson>,
    /// True if a restore was interrupted. The next call that writes finishes it.
    interrupted_restore: bool,
    /// Notes on truncated parts of this answer; empty if nothing was truncated.
    truncated: Vec<String>,
}

pub(super) fn run(shared: &Shared, call: &Call, args: StatusArgs) -> Result<StatusAnswer, Failure> {
    let limit = count("limit", args.limit, USUAL_CHANGES, MAX_CHANGES)?;
    let (workspace, precious) = shared.open(Purpose::Scan, call)?;
    let since = args.since.map(|word| access::checkpoint(&workspace, &word, &call.now)).transpose()?;
    let status = workspace.status(since)?;
    let mut notes = Notes::default();
    Ok(StatusAnswer {
        workspace: workspace.root().to_string_lossy().into_owned(),
        checkpoint: status.checkpoint.map(|checkpoint| BoundedCheckpoint::new(&checkpoint, Detail::InList)),
        changes: answers::changes(&status.changes, limit, &precious, &mut notes),
        changes_total: status.changes.len() as u64,
        skipped: answers::skipped("skipped", &status.uncaptured, &mut notes),
        unprotected: answers::skipped("unprotected", &workspace.unprotected()?, &mut notes),
        interrupted_restore: workspace.has_interrupted_restore()?,
        truncated: notes.into_inner(),
    })
}
