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
    /// Before a restore.
    Safety,
}

/// The word names no kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a kind of checkpoint; kinds are {kinds}", kinds = Kind::ALL.map(Kind::as_str).join(", "))]
pub struct UnknownKind(pub String);

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] =
        [Self::Manual, Self::Automatic, Self::Feature, Self::Session, Self::Turn, Self::Step, Self::Safety];

    /// The word in records and in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Automatic => "automatic",
            Self::Feature => "feature",
            Self::Session => "session",
            Self::Turn => "turn",
            Self::Step => "step",
            Self::Safety => "safety",
        }
    }

    /// How long it is kept, as a rank: an unchanged save makes a new checkpoint only where that would be kept longer.
    pub fn permanence(self) -> u8 {
        match self {
            Self::Feature => 6,
            Self::Manual => 5,
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

/// Where the user's own repository stood.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct GitState {
    /// The commit that was checked out; none before the first.
    pub commit: Option<String>,
    /// The branch; none where HEAD is detached.
    pub branch: Option<String>,
    /// Tracked files that differ from the index, and paths that are staged; the first thousand.
    pub dirty_files: Vec<WorkspacePath>,
}

/// What differs in the user's own repository.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct GitChanges {
    /// The commit that is checked out.
    pub commit: Option<String>,
    /// Paths in which the index differs from the commit.
    pub staged: Vec<WorkspacePath>,
    /// Tracked files that differ from the index.
    pub unstaged: Vec<WorkspacePath>,
}

/// What a feature list said.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct FeatureState {
    /// The feature under work.
    pub current: Option<String>,
    /// Those that are done.
    pub completed: Vec<String>,
}

/// What an agent said about its session.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Context {
    /// Which session this is.
    pub session_number: Option<u64>,
    /// Tokens used so far.
    pub token_usage: Option<u64>,
}

/// Bytes that were handed over to be kept beside the files.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Attachment {
    /// Its name.
    pub name: String,
    /// How many bytes it has.
    pub bytes: u64,
}

/// A snapshot on the timeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Its id.
    pub id: CheckpointId,
    /// Its place in the order of the timeline.
    pub sequence: u64,
    /// A name that it can be addressed by.
    pub name: Option<String>,
    /// What it is, in the words of whoever took it.
    pub message: String,
    /// More about it.
    pub description: Option<String>,
    /// Why it was taken.
    pub kind: Kind,
    /// When.
    pub time: Timestamp,
    /// The checkpoint that the workspace stood on.
    pub parent: Option<CheckpointId>,
    /// The paths that differ from the parent.
    pub files_changed: Vec<WorkspacePath>,
    /// How many they are, also where a list of checkpoints leaves them out.
    pub changed: u64,
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
    pub git: Option<GitState>,
    /// What the feature list said.
    pub feature_state: Option<FeatureState>,
    /// What the agent said about its session.
    pub context: Option<Context>,
    /// What is kept beside the files.
    pub attachments: Vec<Attachment>,
    /// Free words of the caller.
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// Is it kept from retention?
    pub pinned: bool,
    /// Does it hold everything that should be in it?
    pub complete: bool,
    /// The number of paths that the one before it held, that were still on disk, and that it could not capture.
    pub dropped: u64,
    /// What a safety checkpoint covers.
    pub scope: Scope,
}
