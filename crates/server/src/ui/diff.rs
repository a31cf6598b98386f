//! The differences between two checkpoints, or between one and the files on disk.

use backtrail::{Change, ChangeStatus, Diff, PatchLimits, Precious, Workspace, json::SkippedJson};
use serde::Serialize;

use super::{answers::Reply, desk::Desk, query::Query};
use crate::{
    access::{self, Purpose},
    answers::{self, Notes, ShownChange},
    failure::Failure,
    running::Call,
};

/// The maximum size of a patch, and of one file's part in it. One file may be asked for alone, in full.
const MAX_PATCH_BYTES: usize = 16 << 20;
const MAX_FILE_BYTES: usize = 4 << 20;
/// The maximum size of all hunks.
const MAX_HUNK_BYTES: usize = 8 << 20;
const MAX_CHANGES: usize = 2_000;
const MAX_CONTEXT: u64 = 1_000_000;

#[derive(Serialize)]
struct Shown {
    from: Option<String>,
    to: Option<String>,
    changes: Vec<ShownChange>,
    added_files: Vec<String>,
    modified_files: Vec<String>,
    deleted_files: Vec<String>,
    patch: String,
    skipped: Vec<SkippedJson>,
    changes_total: u64,
    /// Changed paths whose contents the patch does not show, because they are precious.
    hidden_files: Vec<String>,
    /// Changed paths of which the patch shows only a part.
    cut_files: Vec<String>,
    truncated: Vec<String>,
}

/// Compares two sides. Without `from`, `to` is compared with the checkpoint before it. `hunks=0` leaves out the hunks.
pub(super) fn diff(desk: &Desk, call: &Call, query: &Query) -> Result<Reply, Failure> {
    let (workspace, precious) = desk.open(Purpose::Scan, call)?;
    let paths = query.all("path");
    let context = query.number("context")?.map(|lines| lines.min(MAX_CONTEXT) as u32);
    let limits = PatchLimits {
        hide: Some(&precious),
        max_bytes: Some(MAX_PATCH_BYTES),
        max_file_bytes: (paths.len() != 1).then_some(MAX_FILE_BYTES),
        hunks: query.get("hunks") != Some("0"),
        context,
    };
    let found = compare(&workspace, query, &paths, &limits, call)?;
    Reply::json(&shown(found, &precious))
}

fn compare(
    workspace: &Workspace,
    query: &Query,
    paths: &[String],
    limits: &PatchLimits<'_>,
    call: &Call,
) -> Result<Diff, Failure> {
    let scope = access::scope(workspace, paths)?;
    let from = query.checkpoint("from", workspace, &call.now)?;
    let to = query.checkpoint("to", workspace, &call.now)?;
    Ok(match (from, to) {
        (None, None) => workspace.diff_within(workspace.current()?, None, &scope, limits)?,
        (None, Some(to)) => workspace.diff_of(&to, &scope, limits)?,
        (from, to) => workspace.diff_within(from, to, &scope, limits)?,
    })
}

fn shown(diff: Diff, precious: &Precious) -> Shown {
    let mut notes = Notes::default();
    let mut paths = |name: &str, fits: fn(ChangeStatus) -> bool| {
        let fitting = diff.changes.iter().filter(|change| fits(change.status));
        let mut paths: Vec<String> = fitting.map(Change::display_path).collect();
        notes.cut_list(name, &mut paths, MAX_CHANGES, String::len);
        paths
    };
    let added_files = paths("added_files", |status| status == ChangeStatus::Added);
    let modified_files =
        paths("modified_files", |status| !matches!(status, ChangeStatus::Added | ChangeStatus::Deleted));
    let deleted_files = paths("deleted_files", |status| status == ChangeStatus::Deleted);
    let mut changes = answers::changes(&diff.changes, MAX_CHANGES, precious, &mut notes);
    answers::limit_hunks(&mut changes, MAX_HUNK_BYTES, &mut notes);
    if diff.is_cut {
        notes.add("patch: the rest is not shown; choose one file");
    }
    let texts = |paths: &[backtrail::WorkspacePath]| {
        paths.iter().take(MAX_CHANGES).map(|path| path.to_text().into_owned()).collect()
    };
    Shown {
        from: diff.from.map(|id| id.to_string()),
        to: diff.to.map(|id| id.to_string()),
        changes,
        added_files,
        modified_files,
        deleted_files,
        patch: diff.patch,
        skipped: answers::skipped("skipped", &diff.uncaptured, &mut notes),
        changes_total: diff.changes.len() as u64,
        hidden_files: texts(&diff.hidden),
        cut_files: texts(&diff.cut_files),
        truncated: notes.into_inner(),
    }
}
