//! What `try` tells people and programs.

use backtrail::{CheckpointId, RestoreOutcome, json::ConflictJson};
use serde::Serialize;

use super::changes::summary;
use crate::failure::Failure;

/// What became of a failed command's work, in a sentence.
pub(crate) fn rolled_back_sentence(done: &RestoreOutcome) -> String {
    if done.changes.is_empty() {
        return "rolled back: no file had to change".to_owned();
    }
    format!("rolled back: {}; bring it back with: backtrail undo", summary(&done.changes))
}

/// The next step, where a failed command's work is still there.
pub(crate) fn way_to_take_back(checkpoint: CheckpointId) -> String {
    format!("take it back with: backtrail restore {}", checkpoint.short())
}

/// Why a failed command's work is still there, and the next step, in a sentence.
pub(crate) fn not_rolled_back_sentence(failure: &Failure) -> String {
    let hint = failure.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("not rolled back: {}{hint}", failure.message())
}

/// What becomes of the way back meanwhile.
pub(crate) fn stays_pinned_sentence(checkpoint: CheckpointId) -> String {
    let short = checkpoint.short();
    format!("checkpoint {short} stays pinned until you let go of it: backtrail unpin {short}")
}

/// Why what a command did could not be taken back.
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

/// What `try` answers.
#[derive(Serialize)]
pub(crate) struct TriedJson {
    pub(crate) checkpoint: String,
    pub(crate) exit_code: u8,
    pub(crate) rolled_back: bool,
    /// What could not be taken back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conflicts: Vec<ConflictJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rollback_error: Option<RollbackErrorJson>,
}
