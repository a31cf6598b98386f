//! What `try` tells people and programs.

use backtrail::{RestoreOutcome, json::ConflictJson};
use serde::Serialize;

use super::changes::summary;

/// What became of a failed command's work, in a sentence.
pub(crate) fn rolled_back_sentence(done: &RestoreOutcome) -> String {
    if done.changes.is_empty() {
        return "rolled back: no file had to change".to_owned();
    }
    format!("rolled back: {}; bring it back with: backtrail undo", summary(&done.changes))
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
}
