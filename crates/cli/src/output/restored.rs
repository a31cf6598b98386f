//! What restores tell people and programs.

use backtrail::{Checkpoint, Conflict, Direction, RestoreOutcome, RestorePlan, Version, WorkspacePath};
use serde::Serialize;

use super::{
    Paint,
    changes::{change_list, summary},
    json::ChangeJson,
    visible::visible,
    wording::{plural, title},
};

/// No more changes than this are named one by one after the fact.
const MAX_NAMED: usize = 20;

/// What `restore`, `rewind`, `undo` and `redo` answer.
#[derive(Serialize)]
pub(crate) struct RestoreJson {
    plan: Option<String>,
    changes: Vec<ChangeJson>,
    applied: bool,
    safety: Option<String>,
    conflicts: Vec<ConflictJson>,
}

#[derive(Serialize)]
struct ConflictJson {
    path: String,
    reason: String,
    kept: Option<String>,
}

impl From<&Conflict> for ConflictJson {
    fn from(conflict: &Conflict) -> Self {
        Self {
            path: conflict.path.to_text().into_owned(),
            reason: conflict.reason.clone(),
            kept: conflict.kept.map(|kept| kept.to_string()),
        }
    }
}

impl RestoreJson {
    /// There was nothing to take back.
    pub(crate) fn nothing() -> Self {
        Self { plan: None, changes: Vec::new(), applied: false, safety: None, conflicts: Vec::new() }
    }
}

impl From<&RestoreOutcome> for RestoreJson {
    fn from(done: &RestoreOutcome) -> Self {
        Self {
            plan: Some(done.plan.clone()),
            changes: done.changes.iter().map(ChangeJson::from).collect(),
            applied: done.applied,
            safety: done.safety.map(|safety| safety.to_string()),
            conflicts: done.conflicts.iter().map(ConflictJson::from).collect(),
        }
    }
}

impl From<&RestorePlan> for RestoreJson {
    fn from(plan: &RestorePlan) -> Self {
        Self {
            plan: Some(plan.hash.clone()),
            changes: plan.changes.iter().map(ChangeJson::from).collect(),
            applied: false,
            safety: None,
            conflicts: plan.conflicts.iter().map(ConflictJson::from).collect(),
        }
    }
}

/// What would happen.
pub(crate) fn plan_text(plan: &RestorePlan, target: &Checkpoint, paint: Paint) -> String {
    if plan.changes.is_empty() && plan.conflicts.is_empty() {
        return format!("nothing to do: the files are those of {}\n", title(target));
    }
    let mut text = format!("restoring {} would change:\n{}", title(target), change_list(&plan.changes, paint));
    for conflict in &plan.conflicts {
        text.push_str(&format!("  in the way  {}: {}\n", visible(conflict.path.as_bytes()), conflict.reason));
    }
    text
}

/// What was done, in a sentence, with the paths where they are few.
pub(crate) fn restored_text(done: &RestoreOutcome, direction: Direction, target: &Checkpoint, paint: Paint) -> String {
    let named = title(target);
    if done.changes.is_empty() {
        return match direction {
            Direction::Forward if !target.complete => {
                format!("nothing to bring back; {named} is incomplete, so nothing was removed (--exact would)")
            }
            Direction::Forward => format!("nothing to do: the files are those of {named}"),
            Direction::Undo | Direction::Redo => "done: no file had to change".to_owned(),
        };
    }
    let sum = summary(&done.changes);
    let mut text = match direction {
        Direction::Forward => format!("restored {} to {named}: {sum}", plural(done.changes.len(), "path")),
        Direction::Undo => format!("took back the last restore: {sum}"),
        Direction::Redo => format!("took back the last undo: {sum}"),
    };
    if done.changes.len() <= MAX_NAMED {
        text.push('\n');
        text.push_str(change_list(&done.changes, paint).trim_end_matches('\n'));
    }
    text
}

/// The command that takes it back.
pub(crate) fn way_back(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward | Direction::Redo => "take it back with: backtrail undo",
        Direction::Undo => "take that back with: backtrail redo",
    }
}

/// What people should know beside that.
pub(crate) fn restored_warnings(done: &RestoreOutcome) -> Vec<String> {
    done.conflicts
        .iter()
        .map(|conflict| {
            let kept = conflict.kept.map(|kept| format!(" (kept as {kept})")).unwrap_or_default();
            format!("not restored: {}: {}{kept}", visible(conflict.path.as_bytes()), conflict.reason)
        })
        .collect()
}

/// What `recover` answers.
#[derive(Serialize)]
pub(crate) struct RecoverJson {
    pub(crate) recovered: bool,
    pub(crate) outcome: &'static str,
}

/// What `export` answers.
#[derive(Serialize)]
pub(crate) struct ExportJson {
    pub(crate) directory: String,
    pub(crate) files: u64,
}

/// What `history` answers.
#[derive(Serialize)]
pub(crate) struct HistoryJson {
    path: String,
    versions: Vec<VersionJson>,
}

#[derive(Serialize)]
struct VersionJson {
    checkpoint: String,
    status: &'static str,
    bytes: Option<u64>,
}

impl HistoryJson {
    pub(crate) fn new(path: &WorkspacePath, versions: &[Version]) -> Self {
        let version = |version: &Version| VersionJson {
            checkpoint: version.checkpoint.to_string(),
            status: version.status.as_str(),
            bytes: version.bytes,
        };
        Self { path: path.to_text().into_owned(), versions: versions.iter().map(version).collect() }
    }
}
