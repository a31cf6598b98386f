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
}
