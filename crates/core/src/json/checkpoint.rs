//! `Checkpoint`.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::{Checkpoint, FeatureState, GitState, Kind, Origin, WorkTotals, WorkspacePath};

/// `Checkpoint`: a snapshot of the workspace with its record.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Checkpoint"))]
pub struct CheckpointJson {
    /// The id, forty hexadecimal digits.
    pub id: String,
    /// The first digits of the id, as messages show them.
    pub short_id: String,
    /// A name by which the checkpoint can be found.
    pub name: Option<String>,
    /// The message that the user or the agent gave, or one that was made of the changed paths.
    pub message: String,
    /// A longer description.
    pub description: Option<String>,
    /// The reason for the checkpoint. It determines how long the checkpoint is kept.
    pub kind: Kind,
    /// The time, as RFC 3339 in UTC, with milliseconds.
    pub timestamp: String,
    /// The checkpoint that the workspace stood on when this one was taken; null for the first.
    pub parent: Option<String>,
    /// The paths that differ from the parent.
    pub files_changed: Vec<String>,
    /// The number of paths that differ from the parent.
    pub changed_count: u64,
    /// The number of inserted lines against the parent.
    pub insertions: u64,
    /// The number of deleted lines against the parent.
    pub deletions: u64,
    /// The agent, prompt and step that it belongs to.
    #[serde(flatten)]
    pub origin: Origin,
    /// The position of the user's repository.
    pub git: Option<GitJson>,
    /// The content of the feature list.
    pub feature_state: Option<FeatureStateJson>,
    /// Facts that the agent gave about its session.
    pub context: Option<ContextJson>,
    /// Data that is kept beside the files.
    pub attachments: Vec<AttachmentJson>,
    /// Key-value pairs that the user or the agent added.
    pub metadata: Map<String, Value>,
    /// True if the checkpoint is pinned: retention must keep it.
    pub pinned: bool,
    /// True if every path that belongs in the checkpoint could be read.
    pub complete: bool,
    /// The number of paths that its parent held, that were still on disk, and that it could not capture.
    pub dropped: u64,
    /// The paths that a safety checkpoint covers; null for the whole workspace.
    pub scope: Option<Vec<String>>,
    /// True if a revert took its changes back. For the checkpoint of a prompt: if the agent's work for it is taken back.
    pub reverted: bool,
    /// The sums of what the agent did for a prompt; null if this is not the checkpoint of a prompt.
    pub work_totals: Option<WorkTotals>,
}

impl From<&Checkpoint> for CheckpointJson {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self {
            id: checkpoint.id.to_string(),
            short_id: checkpoint.id.short(),
            name: checkpoint.name.clone(),
            message: checkpoint.message.clone(),
            description: checkpoint.description.clone(),
            kind: checkpoint.kind,
            timestamp: timestamp(checkpoint.time),
            parent: checkpoint.parent.map(|parent| parent.to_string()),
            files_changed: texts(&checkpoint.files_changed),
            changed_count: checkpoint.changed,
            insertions: checkpoint.insertions,
            deletions: checkpoint.deletions,
            origin: checkpoint.origin.clone(),
            git: checkpoint.git.as_ref().map(GitJson::from),
            feature_state: checkpoint.feature_state.as_ref().map(FeatureStateJson::from),
            context: checkpoint.context.as_ref().map(|context| ContextJson {
                session_number: context.session_number,
                token_usage: context.token_usage,
            }),
            attachments: checkpoint
                .attachments
                .iter()
                .map(|attachment| AttachmentJson { name: attachment.name.clone(), bytes: attachment.bytes })
                .collect(),
            metadata: checkpoint.metadata.clone(),
            pinned: checkpoint.pinned,
            complete: checkpoint.complete,
            dropped: checkpoint.dropped,
            scope: checkpoint.scope.paths().map(texts),
            reverted: checkpoint.reverted,
            work_totals: checkpoint.work,
        }
    }
}

/// The position of the user's repository.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "GitState"))]
pub struct GitJson {
    /// The commit that was checked out; null before the first commit.
    pub commit: Option<String>,
    /// The branch; null if HEAD is detached.
    pub branch: Option<String>,
    /// Tracked files that differ from the index, and staged paths, up to a thousand.
    pub dirty_files: Vec<String>,
    /// The number of these paths.
    pub dirty_count: u64,
}

impl From<&GitState> for GitJson {
    fn from(git: &GitState) -> Self {
        Self {
            commit: git.commit.clone(),
            branch: git.branch.clone(),
            dirty_files: texts(&git.dirty_files),
            dirty_count: git.dirty_count,
        }
    }
}

/// The content of a feature list.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FeatureState"))]
pub struct FeatureStateJson {
    /// The feature that is being worked on.
    pub current: Option<String>,
    /// The completed features.
    pub completed: Vec<String>,
}

impl From<&FeatureState> for FeatureStateJson {
    fn from(state: &FeatureState) -> Self {
        Self { current: state.current.clone(), completed: state.completed.clone() }
    }
}

/// Facts that an agent gave about its session.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SessionContext"))]
pub struct ContextJson {
    /// The number of the session.
    pub session_number: Option<u64>,
    /// The number of tokens used so far.
    pub token_usage: Option<u64>,
}

/// Data that is kept beside the files under a name.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Attachment"))]
pub struct AttachmentJson {
    /// The name.
    pub name: String,
    /// The size in bytes.
    pub bytes: u64,
}

/// Formats a time as RFC 3339 in UTC, always with milliseconds.
pub fn timestamp(time: Timestamp) -> String {
    format!("{time:.3}")
}

fn texts(paths: &[WorkspacePath]) -> Vec<String> {
    paths.iter().map(|path| path.to_text().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_always_have_milliseconds() {
        let text = |milliseconds| timestamp(Timestamp::from_millisecond(milliseconds).unwrap());
        assert_eq!(text(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(text(1_120), "1970-01-01T00:00:01.120Z");
    }
}
