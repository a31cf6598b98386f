//! What differs between two snapshots, path by path.

use super::{ContentId, Mode, WorkspacePath};

/// How a path differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ChangeStatus {
    /// It was not there before.
    Added,
    /// Its bytes differ; its permission bits may, too.
    Modified,
    /// It is no longer there.
    Deleted,
    /// A file became a symlink, or the other way round.
    TypeChanged,
    /// Only its permission bits differ.
    ModeChanged,
}

impl ChangeStatus {
    /// The word in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Modified => "modified",
            Self::Deleted => "deleted",
            Self::TypeChanged => "type_changed",
            Self::ModeChanged => "mode_changed",
        }
    }
}

/// What a path holds on one side of a [`Change`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Side {
    /// A file with these bytes.
    File {
        /// Its content.
        content: ContentId,
        /// Its permission bits.
        mode: Mode,
    },
    /// A symlink with this target.
    Symlink {
        /// Its target.
        target: ContentId,
    },
    /// A directory; as a change of its own only where it is empty or its permission bits differ.
    Directory {
        /// Its permission bits.
        mode: Mode,
    },
}

impl Side {
    /// Is it a directory?
    pub fn is_directory(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }

    /// The stored bytes of a file or symlink.
    pub fn content(&self) -> Option<ContentId> {
        match self {
            Self::File { content, .. } => Some(*content),
            Self::Symlink { target } => Some(*target),
            Self::Directory { .. } => None,
        }
    }
}

/// One path that differs between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Where.
    pub path: WorkspacePath,
    /// How.
    pub status: ChangeStatus,
    /// What was there.
    pub old: Option<Side>,
    /// What is there now.
    pub new: Option<Side>,
    /// Lines that came.
    pub insertions: u64,
    /// Lines that went.
    pub deletions: u64,
    /// Are the bytes no text?
    pub binary: bool,
}

impl Change {
    /// A change whose lines have not been counted yet.
    pub fn between(path: WorkspacePath, old: Option<Side>, new: Option<Side>) -> Self {
        let status =
            match (&old, &new) {
                (None, _) => ChangeStatus::Added,
                (_, None) => ChangeStatus::Deleted,
                (Some(Side::File { content: before, .. }), Some(Side::File { content: after, .. })) => {
                    if before == after { ChangeStatus::ModeChanged } else { ChangeStatus::Modified }
                }
                (Some(Side::Symlink { .. }), Some(Side::Symlink { .. })) => ChangeStatus::Modified,
                (Some(Side::Directory { .. }), Some(Side::Directory { .. })) => ChangeStatus::ModeChanged,
                _ => ChangeStatus::TypeChanged,
            };
        Self { path, status, old, new, insertions: 0, deletions: 0, binary: false }
    }

    /// Is it a directory that comes, goes, or has other permission bits?
    pub fn is_directory(&self) -> bool {
        matches!(self.new.or(self.old), Some(Side::Directory { .. }))
    }

    /// The path as people and JSON have it: a directory ends in `/`.
    pub fn display_path(&self) -> String {
        let mut text = self.path.to_text().into_owned();
        if self.is_directory() {
            text.push('/');
        }
        text
    }
}
