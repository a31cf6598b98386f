//! `checkpoint_diff`.

use backtrail::{ChangeStatus, Diff, PatchLimits, Precious, Workspace, json::SkippedJson};
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

pub(super) const ABOUT: &str = "Show the changed lines between two checkpoints, or between one and the files on disk, \
as a unified patch. With neither `from` nor `to`: what changed on disk since the last checkpoint. With only `from`: \
from that to the files on disk. With only `to`: what that checkpoint changed. Contents of precious files, such as \
.env, are not shown.";

const USUAL_BYTES: usize = 50_000;
const MAX_BYTES: usize = 1_000_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DiffArgs {
    /// The older side: an id, a name, @, @~N, latest, step:N, turn:N, before:ID, ago:20m, at:14:30.
    from: Option<String>,
    /// The newer side, named in the same way.
    to: Option<String>,
    /// Only these files and directories, relative to the workspace.
    paths: Option<Vec<String>>,
    /// The maximum length of the patch in bytes, from 1 to 1000000; 50000 by default.
    max_bytes: Option<u64>,
    /// The maximum number of changes to list, from 1 to 1000; 200 by default.
    limit: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DiffAnswer {
    /// The older side; null if there is no earlier checkpoint.
    from: Option<String>,
    /// The newer side; null for the files on disk.
    to: Option<String>,
    /// The changes, sorted by path.
    changes: Vec<ShownChange>,
    /// The total number of changes.
    changes_total: u64,
    /// The added paths.
    added_files: Vec<String>,
    /// The paths that changed in content, type or mode.
    modified_files: Vec<String>,
    /// The deleted paths.
    deleted_files: Vec<String>,
    /// A unified patch. It is complete unless `truncated` mentions it. Binary files are only named.
    patch: String,
    /// Changed paths whose contents the patch does not show, because they are precious.
    hidden_files: Vec<String>,
    /// Paths that the older side holds and that a checkpoint of the files on disk would skip, with the reasons.
    skipped: Vec<SkippedJson>,
    /// Notes on truncated parts of this answer; empty if nothing was truncated.
    truncated: Vec<String>,
}

pub(super) fn run(shared: &Shared, call: &Call, args: DiffArgs) -> Result<DiffAnswer, Failure> {
    let limit = count("limit", args.limit, USUAL_CHANGES, MAX_CHANGES)?;
    let max_bytes = count("max_bytes", args.max_bytes, USUAL_BYTES, MAX_BYTES)?;
    let (workspace, precious) = shared.open(Purpose::Scan, call)?;
    let limits = PatchLimits { hide: Some(&precious), max_bytes: Some(max_bytes), ..PatchLimits::default() };
    let diff = compare(&workspace, &args, &limits, call)?;
    Ok(answer(diff, limit, &precious))
}

fn compare(workspace: &Workspace, args: &DiffArgs, limits: &PatchLimits<'_>, call: &Call) -> Result<Diff, Failure> {
    let named =
        |word: &Option<String>| word.as_ref().map(|word| access::checkpoint(workspace, word, &call.now)).transpose();
    let scope = access::scope(workspace, args.paths.as_deref().unwrap_or_default())?;
    Ok(match (named(&args.from)?, named(&args.to)?) {
        (None, None) => workspace.diff_within(workspace.current()?, None, &scope, limits)?,
        (None, Some(to)) => workspace.diff_of(&to, &scope, limits)?,
        (from, to) => workspace.diff_within(from, to, &scope, limits)?,
    })
}

fn answer(diff: Diff, limit: usize, precious: &Precious) -> DiffAnswer {
    let mut notes = Notes::default();
    let mut paths = |name: &str, fits: fn(ChangeStatus) -> bool| {
        let fitting = diff.changes.iter().filter(|change| fits(change.status));
        let mut paths: Vec<String> = fitting.map(backtrail::Change::display_path).collect();
        notes.cut_list(name, &mut paths, limit, String::len);
        paths
    };
    let added_files = paths("added_files", |status| status == ChangeStatus::Added);
    let modified_files =
        paths("modified_files", |status| !matches!(status, ChangeStatus::Added | ChangeStatus::Deleted));
    let deleted_files = paths("deleted_files", |status| status == ChangeStatus::Deleted);
    let mut hidden_files: Vec<String> = diff.hidden.iter().map(|path| path.to_text().into_owned()).collect();
    notes.cut_list("hidden_files", &mut hidden_files, limit, String::len);
    let changes = answers::changes(&diff.changes, limit, precious, &mut notes);
    let mut patch = diff.patch;
    if diff.is_cut {
        notes.add("patch: the rest is not shown; narrow it with paths, or raise max_bytes");
        patch.push_str(CUT_MARK);
    }
    DiffAnswer {
        from: diff.from.map(|id| id.to_string()),
        to: diff.to.map(|id| id.to_string()),
        changes_total: diff.changes.len() as u64,
        changes,
        added_files,
        modified_files,
        deleted_files,
        patch,
        hidden_files,
        skipped: answers::skipped("skipped", &diff.uncaptured, &mut notes),
        truncated: notes.into_inner(),
    }
}

/// The last line of a truncated patch.
pub(crate) const CUT_MARK: &str = "[truncated]\n";
