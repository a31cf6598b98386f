//! `checkpoint_show`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Shared, count};
use crate::{
    access::{self, Purpose},
    answers::{self, BoundedCheckpoint, Detail, Notes, ShownChange},
    failure::Failure,
    running::Call,
};

pub(super) const ABOUT: &str = "Show one checkpoint and its changes against the one before it. For the changed \
lines, use checkpoint_diff with `to`.";

pub(super) const USUAL_CHANGES: usize = 200;
pub(super) const MAX_CHANGES: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowArgs {
    /// The checkpoint: an id or its first 4 or more characters, a name, @ (the one that the workspace stands on), @~N
    /// (N steps back, also from any other), latest, step:N, turn:N, before:ID, ago:20m, at:14:30.
    checkpoint: String,
    /// The maximum number of changes to list, from 1 to 1000; 200 by default.
    limit: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ShowAnswer {
    /// The checkpoint.
    checkpoint: BoundedCheckpoint,
    /// The changes against the previous checkpoint.
    changes: Vec<ShownChange>,
    /// The total number of changes.
    changes_total: u64,
    /// Notes on truncated parts of this answer; empty if nothing was truncated.
    truncated: Vec<String>,
}

pub(super) fn run(shared: &Shared, call: &Call, args: ShowArgs) -> Result<ShowAnswer, Failure> {
    let limit = count("limit", args.limit, USUAL_CHANGES, MAX_CHANGES)?;
    let (workspace, precious) = shared.open(Purpose::Look, call)?;
    let shown = workspace.show(&access::checkpoint(&workspace, &args.checkpoint, &call.now)?)?;
    let mut notes = Notes::default();
    Ok(ShowAnswer {
        checkpoint: BoundedCheckpoint::new(&shown.checkpoint, Detail::Full),
        changes: answers::changes(&shown.changes, limit, &precious, &mut notes),
        changes_total: shown.changes.len() as u64,
        truncated: notes.into_inner(),
    })
}
