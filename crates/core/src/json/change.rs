//! `Change` and `Skipped`.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Serialize;

use crate::model::{Change, ChangeStatus, Hunk, Skipped};

/// `Change`: a path that differs, and the kind of change.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Change"))]
pub struct ChangeJson {
    /// The path, relative to the workspace. A directory ends in `/`.
    pub path: String,
    /// The kind of change.
    pub status: ChangeStatus,
    /// The number of inserted lines.
    pub insertions: u64,
    /// The number of deleted lines.
    pub deletions: u64,
    /// True if the content is not text.
    pub binary: bool,
    /// The exact bytes of a path that is not UTF-8; absent for other paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
    /// The hunks of a change of text; absent if they were not asked for, and for other changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hunks: Option<Vec<Hunk>>,
}

impl From<&Change> for ChangeJson {
    fn from(change: &Change) -> Self {
        Self {
            path: change.display_path(),
            status: change.status,
            insertions: change.insertions,
            deletions: change.deletions,
            binary: change.binary,
            path_base64: exact_path(change),
            hunks: change.hunks.clone(),
        }
    }
}

/// Returns the exact bytes of a path that is not UTF-8. Returns `None` for other paths.
fn exact_path(change: &Change) -> Option<String> {
    if change.path.to_utf8().is_some() {
        return None;
    }
    let mut bytes = change.path.as_bytes().to_vec();
    if change.is_directory() {
        bytes.push(b'/');
    }
    Some(BASE64_STANDARD.encode(bytes))
}

/// A path that was skipped, and the reason.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Skipped"))]
pub struct SkippedJson {
    /// The path, relative to the workspace.
    pub path: String,
    /// The reason, as text.
    pub reason: String,
}

impl From<&Skipped> for SkippedJson {
    fn from(skipped: &Skipped) -> Self {
        Self { path: skipped.path.to_text().into_owned(), reason: skipped.reason.as_str().to_owned() }
    }
}
