//! A checkpoint as callers see it.

use std::{fmt, str::FromStr};

use jiff::Timestamp;

use super::{CheckpointId, Scope, WorkspacePath};

/// Why a checkpoint was taken, which decides how long it is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Kind {
    /// A person or an agent asked for it.
    Manual,
    /// Before a risky operation.
    Automatic,
    /// A feature is complete.
    Feature,
    /// An agent's session begins.
    Session,
    /// A prompt was given to an agent.
    Turn,
    /// Around an agent's tool call.
    Step,
    /// With a state that an agent framework stores in one of its threads.
    Thread,
    /// Before a restore.
    Safety,
}

/// The error for a word that is not a kind of checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a kind of checkpoint; the kinds are {kinds}", kinds = Kind::ALL.map(Kind::as_str).join(", "))]
pub struct UnknownKind(pub String);

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Manual,
        Self::Automatic,
        Self::Feature,
        Self::Session,
        Self::Turn,
        Self::Step,
        Self::Thread,
        Self::Safety,
    ];

    /// Returns the word that records and JSON use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Automatic => "automatic",
            Self::Feature => "feature",
            Self::Session => "session",
            Self::Turn => "turn",
            Self::Step => "step",
            Self::Thread => "thread",
            Self::Safety => "safety",
        }
    }

    /// Returns a rank of how long this kind is kept. A save without changes takes a new checkpoint only if that would
    /// be kept longer than the existing one.
    pub fn permanence(self) -> u8 {
        match self {
            Self::Feature => 7,
            Self::Manual => 6,
            Self::Thread => 5,
            Self::Turn => 4,
            Self::Step => 3,
            Self::Safety => 2,
            Self::Automatic => 1,
            Self::Session => 0,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

/// The position of the user repository.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct GitState {
    /// The commit that was checked out. `None` before the first commit.
    pub commit: Option<String>,
    /// The branch. `None` if HEAD is detached.
    pub branch: Option<String>,
    /// Tracked files that differ from the index, and paths that are staged. Limited to the first thousand.
    pub dirty_files: Vec<WorkspacePath>,
    /// The number of these paths. Set even if a list of checkpoints omits the paths.
    #[serde(default)]
    pub dirty_count: u64,
}

/// The changes in the user repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct GitChanges {
    /// The commit that is checked out.
    pub commit: Option<String>,
    /// Paths whose index entries differ from the commit.
    pub staged: Vec<WorkspacePath>,
    /// Tracked files that differ from the index.
    pub unstaged: Vec<WorkspacePath>,
}

/// The state of a feature list.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct FeatureState {
    /// The feature that is being worked on.
    pub current: Option<String>,
    /// The completed features.
    pub completed: Vec<String>,
}

/// The author of the changes that a checkpoint holds against its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Author {
    /// The agent of the checkpoint's session.
    Agent,
    /// A person, another program or another session.
    Other,
}

impl FromStr for Author {
    type Err = UnknownAuthor;

    fn from_str(text: &str) -> Result<Self, UnknownAuthor> {
        match text {
            "agent" => Ok(Self::Agent),
            "other" => Ok(Self::Other),
            _ => Err(UnknownAuthor(text.to_owned())),
        }
    }
}

/// A word that is not an author.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an author; use agent or other")]
pub struct UnknownAuthor(String);

impl Author {
    /// Returns the word that stands for it in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Other => "other",
        }
    }
}

/// The origin of a checkpoint: the agent, session, prompt and step that it belongs to. A request, a record, a checkpoint
/// and its JSON all contain this.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Origin {
    /// The number of the agent's step.
    pub step: Option<u64>,
    /// The id of the agent's session.
    pub session: Option<String>,
    /// The name of the agent.
    pub agent: Option<String>,
    /// The number of the prompt in its session.
    pub turn: Option<u64>,
    /// The prompt.
    pub prompt: Option<String>,
    /// The tool that was about to run, or had run.
    pub tool: Option<String>,
    /// The command line of that tool, if it was a shell. Secrets in it are masked.
    pub command: Option<String>,
    /// The author of the changes against the parent; null if that is not known.
    pub author: Option<Author>,
}

/// A tool call of another session that was running when a checkpoint was taken.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct CallBeside {
    /// The session.
    pub(crate) session: Option<String>,
    /// The number of the prompt in that session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) turn: Option<u64>,
    /// The files that the call names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) paths: Vec<WorkspacePath>,
}

/// Facts that an agent reported about its session.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Context {
    /// The number of the session.
    pub session_number: Option<u64>,
    /// The number of tokens used so far.
    pub token_usage: Option<u64>,
}

/// Bytes that the caller provided to be kept beside the files.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Attachment {
    /// The name of the attachment.
    pub name: String,
    /// The size in bytes.
    pub bytes: u64,
}

/// A snapshot on the timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// The id of the checkpoint.
    pub id: CheckpointId,
    /// The position in the order of the timeline.
    pub sequence: u64,
    /// A name that it can be addressed by.
    pub name: Option<String>,
    /// The message of the user or agent who took it.
    pub message: String,
    /// Further details.
    pub description: Option<String>,
    /// The reason why it was taken.
    pub kind: Kind,
    /// The time when it was taken.
    pub time: Timestamp,
    /// The checkpoint that the workspace stood on.
    pub parent: Option<CheckpointId>,
    /// The paths that differ from the parent.
    pub files_changed: Vec<WorkspacePath>,
    /// The number of changed paths. Set even if a list of checkpoints omits the paths.
    pub changed: u64,
    /// The number of lines added since the parent.
    pub insertions: u64,
    /// The number of lines deleted since the parent.
    pub deletions: u64,
    /// The agent, prompt and step that it belongs to.
    pub origin: Origin,
    /// The position of the user repository.
    pub git: Option<GitState>,
    /// The state of the feature list.
    pub feature_state: Option<FeatureState>,
    /// Facts that the agent reported about its session.
    pub context: Option<Context>,
    /// The attachments that are kept beside the files.
    pub attachments: Vec<Attachment>,
    /// Arbitrary values of the caller.
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// Set if retention must keep it.
    pub pinned: bool,
    /// Set if it contains everything that should be in it.
    pub complete: bool,
    /// The number of paths that the previous checkpoint held, that were still on disk, and that this one could not
    /// capture.
    pub dropped: u64,
    /// The paths that a safety checkpoint covers.
    pub scope: Scope,
    /// Set if a revert took its changes back. For the checkpoint of a prompt: if the agent's work for it is taken back.
    pub reverted: bool,
    /// The sums of what the agent did for a prompt. `None` if this is not the checkpoint of a prompt.
    pub work: Option<WorkTotals>,
}

/// The sums of what an agent did for a prompt, over its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkTotals {
    /// The number of paths that the steps changed.
    pub files: u64,
    /// The number of lines that the steps added.
    pub insertions: u64,
    /// The number of lines that the steps deleted.
    pub deletions: u64,
}
