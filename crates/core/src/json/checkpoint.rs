//! `Checkpoint`.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::model::{Checkpoint, FeatureState, GitState, Kind, WorkspacePath};

/// `Checkpoint`: a snapshot of the workspace with what was said about it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Checkpoint"))]
pub struct CheckpointJson {
    /// Forty hexadecimal digits.
    pub id: String,
    /// The first digits of the id, as people see them.
    pub short_id: String,
    /// A name that it can be addressed by.
    pub name: Option<String>,
    /// What it is, in the words of whoever took it.
    pub message: String,
    /// More about it.
    pub description: Option<String>,
    /// Why it was taken, which decides how long it is kept.
    pub kind: Kind,
    /// RFC 3339, in UTC, to the millisecond.
    pub timestamp: String,
    /// The checkpoint that the workspace stood on.
    pub parent: Option<String>,
    /// The paths that differ from the parent.
    pub files_changed: Vec<String>,
    /// Lines that came against the parent.
    pub insertions: u64,
    /// Lines that went against the parent.
    pub deletions: u64,
    /// The agent's step.
    pub step: Option<u64>,
    /// The agent's session.
    pub session: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// The number of the prompt in its session.
    pub turn: Option<u64>,
    /// The prompt.
    pub prompt: Option<String>,
    /// The tool that was about to run, or had run.
    pub tool: Option<String>,
    /// Where the user's own repository stood.
    pub git: Option<GitJson>,
    /// What the feature list said.
    pub feature_state: Option<FeatureStateJson>,
    /// What the agent said about its session.
    pub context: Option<ContextJson>,
    /// What is kept beside the files.
    pub attachments: Vec<AttachmentJson>,
    /// Free words of whoever took it.
    pub metadata: Map<String, Value>,
    /// Is it kept from retention?
    pub pinned: bool,
    /// Does it hold everything that should be in it?
    pub complete: bool,
    /// The number of paths that its parent held, that were still on disk, and that it could not capture.
    pub dropped: u64,
    /// The paths that a safety checkpoint covers; null for the whole workspace.
    pub scope: Option<Vec<String>>,
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
            insertions: checkpoint.insertions,
            deletions: checkpoint.deletions,
            step: checkpoint.step,
            session: checkpoint.session.clone(),
            agent: checkpoint.agent.clone(),
            turn: checkpoint.turn,
            prompt: checkpoint.prompt.clone(),
            tool: checkpoint.tool.clone(),
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
        }
    }
}

/// Where the user's own repository stood.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "GitState"))]
pub struct GitJson {
    /// The commit that was checked out; null before the first.
    pub commit: Option<String>,
    /// The branch; null where HEAD is detached.
    pub branch: Option<String>,
    /// Tracked files that differ from the index, and paths that are staged; the first thousand.
    pub dirty_files: Vec<String>,
}

impl From<&GitState> for GitJson {
    fn from(git: &GitState) -> Self {
        Self { commit: git.commit.clone(), branch: git.branch.clone(), dirty_files: texts(&git.dirty_files) }
    }
}

/// What a feature list said.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "FeatureState"))]
pub struct FeatureStateJson {
    /// The feature under work.
    pub current: Option<String>,
    /// Those that are done.
    pub completed: Vec<String>,
}

impl From<&FeatureState> for FeatureStateJson {
    fn from(state: &FeatureState) -> Self {
        Self { current: state.current.clone(), completed: state.completed.clone() }
    }
}

/// What an agent said about its session.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "SessionContext"))]
pub struct ContextJson {
    /// Which session this is.
    pub session_number: Option<u64>,
    /// Tokens used so far.
    pub token_usage: Option<u64>,
}

/// Something that is kept beside the files.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Attachment"))]
pub struct AttachmentJson {
    /// Its name.
    pub name: String,
    /// How many bytes it has.
    pub bytes: u64,
}

/// RFC 3339 in UTC, always to the millisecond.
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
