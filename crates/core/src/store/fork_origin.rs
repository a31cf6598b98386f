//! The file in the store of a fork that says what the fork was made of.

use std::{io, path::Path};

use super::{
    ExactText, Layout,
    checksummed_lines::{self, Lines},
};
use crate::{
    disk::private::{self, Durability},
    error::{Result, While},
    model::{CheckpointId, WorkspacePath},
};

/// The workspace that a fork was made of.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct ForkOrigin {
    /// The path that the workspace had then.
    pub(crate) workspace: ExactText,
    /// Its store.
    pub(crate) store: ExactText,
    /// The fork point. `None` until it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) checkpoint: Option<CheckpointId>,
    /// Links in the fork to directories that the workspace skips.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) links: Vec<ForkLink>,
    /// Set once the fork has all its files.
    #[serde(default)]
    pub(crate) finished: bool,
}

/// A symlink in a fork that stands for a directory which the workspace skips. It is never captured.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct ForkLink {
    pub(crate) path: WorkspacePath,
    pub(crate) target: ExactText,
}

impl ForkOrigin {
    /// Returns the origin of a fork that has begun.
    pub(crate) fn begun(workspace: &Path, store: &Path) -> Self {
        let (workspace, store) = (ExactText::of_path(workspace), ExactText::of_path(store));
        Self { workspace, store, checkpoint: None, links: Vec::new(), finished: false }
    }

    /// Returns the fork point, if the fork is finished.
    pub(crate) fn point(&self) -> Option<CheckpointId> {
        self.checkpoint.filter(|_| self.finished)
    }

    /// Reads the file. Returns `None` if the store is not that of a fork, or if the file is damaged.
    pub(crate) fn read(layout: &Layout) -> Result<Option<Self>> {
        let bytes = private::read(&layout.origin()).or_fail("read", layout.origin())?.unwrap_or_default();
        Ok(Lines::of(&bytes).sound.last().and_then(|line| serde_json::from_str(line).ok()))
    }

    /// Replaces the file durably.
    pub(crate) fn write(&self, layout: &Layout) -> Result<()> {
        let write = || -> io::Result<()> {
            let text = checksummed_lines::seal(&serde_json::to_string(self)?);
            private::replace(&layout.origin(), text.as_bytes(), Durability::Synced)
        };
        write().or_fail("write", layout.origin())
    }
}
