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
    /// Compare with this checkpoint: an id, a name, @~N, latest, step:N, before:ID, ago:20m, at:14:30.
    since: Option<String>,
    /// The maximum number of changes to list, from 1 to 1000; the default is 200.
    limit: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct StatusAnswer {
    /// The directory that is under protection.
    workspace: String,
    /// What it was compared with; null before the first checkpoint: nothing can be brought back yet.
    checkpoint: Option<BoundedCheckpoint>,
    /// What changed since.
    changes: Vec<ShownChange>,
    /// How many changes there are altogether.
    changes_total: u64,
    /// What the checkpoint holds and a new one would leave out, and why.
    skipped: Vec<SkippedJson>,
    /// Paths that were captured once, that are still on disk, and that no checkpoint can capture now: changes to them
    /// can't be taken back.
    unprotected: Vec<SkippedJson>,
    /// Was a restore interrupted? The next call that writes finishes it.
    interrupted_restore: bool,
    /// What of this answer was cut; empty where all is told.
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
