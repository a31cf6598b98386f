//! What a restore leaves undone.

use super::{ContentId, WorkspacePath};

/// Something that a restore did not do, and why.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Conflict {
    /// Where.
    pub path: WorkspacePath,
    /// Why.
    pub reason: String,
    /// The bytes that somebody else had written there, as a blob of the store.
    pub kept: Option<ContentId>,
}
