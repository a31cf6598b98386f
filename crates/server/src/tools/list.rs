//! `checkpoint_list`.

use backtrail::{Kind, ListFilter, Workspace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Shared, count};
use crate::{
    access::{self, Purpose, limited},
    answers::{BoundedCheckpoint, Detail},
    failure::Failure,
    running::Call,
};

pub(super) const ABOUT: &str = "List the checkpoints of the workspace, newest first: who took each, why, and which \
paths it changed. Long timelines come in pages: pass next_cursor as cursor to get the next one.";

const USUAL_LIMIT: usize = 20;
const MAX_LIMIT: usize = 100;
const MAX_TEXT_BYTES: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArgs {
    /// The maximum number of checkpoints to list, from 1 to 100; 20 by default.
    limit: Option<u64>,
    /// The next_cursor of the previous page.
    cursor: Option<String>,
    /// Only checkpoints of this kind.
    kind: Option<Kind>,
    /// Only checkpoints of this agent session.
    session: Option<String>,
    /// Only checkpoints in which this file, or a file in this directory, changed.
    path: Option<String>,
    /// Only checkpoints with this text in the message, name or prompt.
    grep: Option<String>,
    /// Only checkpoints taken since then: a duration such as 20m, or a time such as 13:45 or 2026-11-15T14:30.
    since: Option<String>,
}

/// A page of the timeline.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListAnswer {
    /// The checkpoints, newest first.
    checkpoints: Vec<BoundedCheckpoint>,
    /// The checkpoint that the workspace stands on; null before the first checkpoint.
    current: Option<String>,
    /// The cursor for the next page; null on the last page.
    next_cursor: Option<String>,
}

pub(super) fn run(shared: &Shared, call: &Call, args: ListArgs) -> Result<ListAnswer, Failure> {
    let limit = count("limit", args.limit, USUAL_LIMIT, MAX_LIMIT)?;
    for (name, text) in [("session", &args.session), ("grep", &args.grep), ("cursor", &args.cursor)] {
        limited(name, text.as_deref().unwrap_or_default(), MAX_TEXT_BYTES)?;
    }
    let (workspace, _) = shared.open(Purpose::Look, call)?;
    let filter = ListFilter {
        kind: args.kind,
        session: args.session,
        path: args.path.map(|path| access::path(&workspace, &path)).transpose()?,
        grep: args.grep,
        since: args.since.map(|text| access::moment(&text, &call.now)).transpose()?,
        before_sequence: args.cursor.map(|cursor| sequence(&cursor)).transpose()?,
        ..ListFilter::default()
    };
    page(&workspace, filter, limit)
}

/// Returns the newest checkpoints.
pub(crate) fn timeline(shared: &Shared, call: &Call, limit: usize) -> Result<ListAnswer, Failure> {
    let (workspace, _) = shared.open(Purpose::Look, call)?;
    page(&workspace, ListFilter::default(), limit)
}

fn page(workspace: &Workspace, filter: ListFilter, limit: usize) -> Result<ListAnswer, Failure> {
    // One more than the limit, to find out whether there is a next page.
    let found = workspace.list(&ListFilter { limit: Some(limit + 1), ..filter })?;
    let page = &found[..found.len().min(limit)];
    let next = page.last().filter(|_| found.len() > limit);
    Ok(ListAnswer {
        checkpoints: page.iter().map(|checkpoint| BoundedCheckpoint::new(checkpoint, Detail::InList)).collect(),
        current: workspace.current()?.map(|id| id.to_string()),
        next_cursor: next.map(|last| last.sequence.to_string()),
    })
}

/// Parses a cursor: the sequence number of a checkpoint in the timeline.
fn sequence(cursor: &str) -> Result<u64, Failure> {
    cursor.parse().map_err(|_| {
        Failure::usage(format!("{cursor:?} is not a cursor")).with_hint("pass the next_cursor of the previous page")
    })
}
