//! `Change`, and what was left out.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde::Serialize;

use crate::model::{Change, ChangeStatus, Skipped};

/// `Change`: a path that differs, and how.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Change"))]
pub struct ChangeJson {
    /// Relative to the workspace; a directory ends in `/`.
    pub path: String,
    /// How it differs.
    pub status: ChangeStatus,
    /// Lines that came.
    pub insertions: u64,
    /// Lines that went.
    pub deletions: u64,
    /// Are the bytes no text?
    pub binary: bool,
    /// The exact bytes of a path that is not UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_base64: Option<String>,
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
        }
    }
}

/// The bytes of a path whose text does not tell them.
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

/// A path that was left out, and why.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Skipped"))]
pub struct SkippedJson {
    /// Relative to the workspace.
    pub path: String,
    /// In words.
    pub reason: String,
}

impl From<&Skipped> for SkippedJson {
    fn from(skipped: &Skipped) -> Self {
        Self { path: skipped.path.to_text().into_owned(), reason: skipped.reason.as_str().to_owned() }
    }
}
