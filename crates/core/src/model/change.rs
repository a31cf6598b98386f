//! Differences between two snapshots, path by path.

use super::{ContentId, Hunk, Mode, WorkspacePath};

/// The kind of a difference.
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
    /// Returns the word that JSON uses.
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

/// The file, symlink or directory on one side of a [`Change`].
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
    /// A directory. It is a change of its own only if it is empty or its permission bits differ.
    Directory {
        /// Its permission bits.
        mode: Mode,
    },
}

impl Side {
    /// Returns whether this is a directory.
    pub fn is_directory(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }

    /// Returns the content of a file, or the target of a symlink. Returns `None` for a directory.
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
    /// The path.
    pub path: WorkspacePath,
    /// The kind of the difference.
    pub status: ChangeStatus,
    /// The old side. `None` if the path was added.
    pub old: Option<Side>,
    /// The new side. `None` if the path was deleted.
    pub new: Option<Side>,
    /// The number of added lines.
    pub insertions: u64,
    /// The number of deleted lines.
    pub deletions: u64,
    /// Set if the bytes are not text.
    pub binary: bool,
    /// The hunks of a change of text, if they were asked for.
    pub hunks: Option<Vec<Hunk>>,
}

impl Change {
    /// Creates a change whose lines have not been counted yet.
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
        Self { path, status, old, new, insertions: 0, deletions: 0, binary: false, hunks: None }
    }

    /// Returns whether this is a directory that was added or deleted, or whose permission bits changed.
    pub fn is_directory(&self) -> bool {
        matches!(self.new.or(self.old), Some(Side::Directory { .. }))
    }

    /// Returns the path as it is shown to people and in JSON: a directory ends in `/`.
    pub fn display_path(&self) -> String {
        let mut text = self.path.to_text().into_owned();
        if self.is_directory() {
            text.push('/');
        }
        text
    }
}
