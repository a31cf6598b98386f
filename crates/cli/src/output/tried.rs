//! Output of `try`, for users and programs.

use backtrail::{
    CheckpointId, GitPosition, RestoreOutcome, WorkspacePath,
    json::{ConflictJson, SkippedJson},
};
use serde::Serialize;

use super::{changes::summary, visible::visible};
use crate::failure::Failure;

/// Returns a sentence about a successful rollback.
pub(crate) fn rolled_back_sentence(done: &RestoreOutcome) -> String {
    if done.changes.is_empty() {
        return "rolled back: no file had to change".to_owned();
    }
    format!("rolled back: {}; bring the changes back with: backtrail undo", summary(&done.changes))
}

/// The maximum number of paths that are named one by one.
const MAX_NAMED: usize = 5;

/// Names the paths that a rollback did not take back. Returns `None` if there are none.
pub(crate) fn not_taken_back_sentence(paths: &[WorkspacePath]) -> Option<String> {
    if paths.is_empty() {
        return None;
    }
    let name = |path: &WorkspacePath| if path.is_root() { ".".into() } else { visible(path.as_bytes()) };
    let named: Vec<String> = paths.iter().take(MAX_NAMED).map(name).collect();
    let more = match paths.len() - named.len() {
        0 => String::new(),
        more => format!(", and {more} more (list all with --json)"),
    };
    Some(format!("still changed by the command: {}{more}", named.join(", ")))
}

/// Reports that a command moved HEAD of the user's repository. Returns `None` if it did not.
pub(crate) fn moved_head_sentence(
    before: Option<&GitPosition>,
    after: Option<&GitPosition>,
    checkpoint: CheckpointId,
) -> Option<String> {
    let (before, after) = (before?, after?);
    if before == after || before.top != after.top {
        return None;
    }
    let (from, to) = (position_words(before), position_words(after));
    let back = format!("backtrail restore --git {}", checkpoint.short());
    Some(format!("HEAD of your git repository moved from {from} to {to}, and stays there; to move it back: {back}"))
}

fn position_words(position: &GitPosition) -> String {
    let commit = position.commit.as_deref().map(|commit| &commit[..commit.len().min(8)]);
    match (position.branch.as_deref(), commit) {
        (Some(branch), Some(commit)) => format!("{} ({commit})", visible(branch)),
        (Some(branch), None) => format!("{} (no commit)", visible(branch)),
        (None, Some(commit)) => commit.to_owned(),
        (None, None) => "no commit".to_owned(),
    }
}

/// Returns the next step if the changes of a failed command are still there.
pub(crate) fn way_to_take_back(checkpoint: CheckpointId) -> String {
    format!("restore the workspace with: backtrail restore {}", checkpoint.short())
}

/// Returns the reason why the changes of a failed command are still there, and the next step.
pub(crate) fn not_rolled_back_sentence(failure: &Failure) -> String {
    let hint = failure.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("not rolled back: {}{hint}", failure.message())
}

/// Reports that the checkpoint to go back to stays pinned.
pub(crate) fn stays_pinned_sentence(checkpoint: CheckpointId) -> String {
    let short = checkpoint.short();
    format!("checkpoint {short} stays pinned; unpin it with: backtrail unpin {short}")
}

/// The reason why a rollback failed.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct RollbackErrorJson {
    code: &'static str,
    message: String,
    hint: Option<String>,
}

impl From<&Failure> for RollbackErrorJson {
    fn from(failure: &Failure) -> Self {
        Self { code: failure.code().as_str(), message: failure.message(), hint: failure.hint() }
    }
}

/// The JSON answer of `wrap`.
#[derive(Serialize)]
pub(crate) struct WrappedJson {
    pub(crate) session: String,
    /// The checkpoints that were taken, oldest first.
    pub(crate) checkpoints: Vec<String>,
    pub(crate) exit_code: u8,
}

/// The JSON answer of `try`.
#[derive(Serialize)]
pub(crate) struct TriedJson {
    pub(crate) checkpoint: String,
    pub(crate) exit_code: u8,
    pub(crate) rolled_back: bool,
    /// Paths that earlier checkpoints held and that this one could not capture.
    pub(crate) dropped: Vec<SkippedJson>,
    /// Paths that the command changed and that the rollback did not take back. Empty without a rollback.
    pub(crate) not_taken_back: Vec<String>,
    /// Conflicts of the rollback.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conflicts: Vec<ConflictJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rollback_error: Option<RollbackErrorJson>,
}
