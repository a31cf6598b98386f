//! The JSON answer about all workspaces.

use std::path::Path;

use serde::Serialize;

use super::timestamp;
use crate::operations::workspaces::WorkspaceEntry;

/// The JSON answer of `workspaces`.
#[derive(Debug, Clone, Serialize)]
pub struct WorkspacesJson {
    /// The workspaces, sorted by path.
    pub workspaces: Vec<WorkspaceJson>,
}

/// A workspace that has a store.
#[derive(Debug, Clone, Serialize)]
pub struct WorkspaceJson {
    /// The directory.
    pub path: String,
    /// True if the directory is there.
    pub exists: bool,
    /// Its current path, if it was renamed; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
    /// Its store.
    pub store: String,
    /// The size of the store in bytes.
    pub bytes: u64,
    /// The number of checkpoints.
    pub checkpoints: usize,
    /// The time of the newest checkpoint; null if there is none.
    pub newest: Option<String>,
}

impl From<&[WorkspaceEntry]> for WorkspacesJson {
    fn from(entries: &[WorkspaceEntry]) -> Self {
        Self { workspaces: entries.iter().map(WorkspaceJson::from).collect() }
    }
}

impl From<&WorkspaceEntry> for WorkspaceJson {
    fn from(entry: &WorkspaceEntry) -> Self {
        Self {
            path: text(&entry.path),
            exists: entry.exists,
            moved_to: entry.moved_to.as_deref().map(text),
            store: text(&entry.store),
            bytes: entry.bytes,
            checkpoints: entry.checkpoints,
            newest: entry.newest.map(timestamp),
        }
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
