//! A path that a restore left unchanged.

use super::{ContentId, WorkspacePath};

/// A path that a restore left unchanged, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Conflict {
    /// The path.
    pub path: WorkspacePath,
    /// The reason.
    pub reason: String,
    /// The bytes that another process had written there, as a blob of the store.
    pub kept: Option<ContentId>,
    /// The lines of the file on disk that a merge can't decide about, counted from 1: the first and the last of each
    /// run. Empty for other conflicts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<[u64; 2]>,
}

impl Conflict {
    /// Creates a conflict without kept bytes.
    pub fn new(path: WorkspacePath, reason: impl Into<String>) -> Self {
        Self { path, reason: reason.into(), kept: None, lines: Vec::new() }
    }
}
