//! The JSON answer about forks.

use std::path::Path;

use serde::Serialize;

use crate::operations::fork::{Fork, ForkChanges, Forked};

/// The JSON answer of `fork` and `forks`.
#[derive(Debug, Clone, Serialize)]
pub struct ForksJson {
    /// The forks that were made, or all forks of the workspace.
    pub forks: Vec<ForkJson>,
}

/// One fork.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Fork"))]
pub struct ForkJson {
    /// Its directory.
    pub path: String,
    /// True if the directory is there.
    pub exists: bool,
    /// The id of the fork point.
    pub checkpoint: String,
    /// The number of prompts that were given there.
    pub prompts: usize,
    /// The number of files that changed since the fork point; null if it was deleted there.
    pub files: Option<usize>,
    /// The number of lines that were inserted since then; null likewise.
    pub insertions: Option<u64>,
    /// The number of lines that were deleted since then; null likewise.
    pub deletions: Option<u64>,
}

impl From<&[Fork]> for ForksJson {
    fn from(forks: &[Fork]) -> Self {
        let fork = |fork: &Fork| ForkJson {
            path: text(&fork.path),
            exists: fork.exists,
            checkpoint: fork.checkpoint.to_string(),
            prompts: fork.prompts,
            files: fork.changes.map(|changes| changes.files),
            insertions: fork.changes.map(|changes| changes.insertions),
            deletions: fork.changes.map(|changes| changes.deletions),
        };
        Self { forks: forks.iter().map(fork).collect() }
    }
}

impl From<&[Forked]> for ForksJson {
    fn from(forked: &[Forked]) -> Self {
        let new = |forked: &Forked| Fork {
            path: forked.path.clone(),
            exists: true,
            checkpoint: forked.checkpoint,
            prompts: 0,
            changes: Some(ForkChanges::default()),
        };
        Self::from(forked.iter().map(new).collect::<Vec<_>>().as_slice())
    }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
