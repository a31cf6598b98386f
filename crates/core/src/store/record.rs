//! The record of a checkpoint: a line of JSON at the end of its commit's message.

use jiff::Timestamp;

use crate::model::{
    Attachment, Author, CallBeside, Checkpoint, CheckpointId, Context, FeatureState, GitState, Kind, ModeDefaults,
    Origin, Scope, WorkTotals, WorkspacePath,
};

const TRAILER: &str = "Backtrail-Record: ";
/// The version that this program writes.
const VERSION: u32 = 1;

/// The record of one checkpoint. Fields that this version does not know are kept.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Record {
    #[serde(rename = "v")]
    pub(crate) version: u32,
    #[serde(rename = "seq")]
    pub(crate) sequence: u64,
    pub(crate) kind: Kind,
    /// Milliseconds since 1970.
    pub(crate) time: i64,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<CheckpointId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(flatten, serialize_with = "without_nulls")]
    pub(crate) origin: Origin,
    /// The files that the tool call behind the checkpoint names. Recorded only if calls of other sessions were running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) named: Vec<WorkspacePath>,
    /// The calls of other sessions that were running when the checkpoint was taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) beside: Vec<CallBeside>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) git: Option<RecordedGit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) features: Option<FeatureState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<Context>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) attachments: Vec<Attachment>,
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub(crate) metadata: serde_json::Map<String, serde_json::Value>,
    #[serde(default, skip_serializing_if = "is_whole")]
    pub(crate) scope: Scope,
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub(crate) complete: bool,
    #[serde(default)]
    pub(crate) insertions: u64,
    #[serde(default)]
    pub(crate) deletions: u64,
    #[serde(default)]
    pub(crate) changed: RecordedPaths,
    /// The number of paths that the previous checkpoint held and that were not captured although they are still on
    /// disk.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) dropped: u64,
    /// The number of paths that the state lists as dropped by this checkpoint or earlier ones and not captured again
    /// since.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) unprotected: u64,
    /// Paths that were captured on request although a rule skips them. Later checkpoints continue to capture them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) included: Vec<WorkspacePath>,
    /// The agent's own files among the captured ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) state_files: Vec<WorkspacePath>,
    #[serde(default)]
    pub(crate) modes: ModeDefaults,
    #[serde(flatten)]
    pub(crate) unknown: serde_json::Map<String, serde_json::Value>,
}

/// The position of the user's repository: its commit, branch and dirty files.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct RecordedGit {
    pub(crate) commit: Option<String>,
    pub(crate) branch: Option<String>,
    pub(crate) dirty_files: RecordedPaths,
}

/// Paths in the record, or their number if they are too many and the state holds them.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub(crate) enum RecordedPaths {
    Here(Vec<WorkspacePath>),
    InState { in_state: u64 },
}

/// The maximum number of paths in a record. More are kept in the state, because every command reads all records.
const MAX_RECORDED_PATHS: usize = 100;

impl RecordedPaths {
    /// Returns the paths for the record and the paths for the state.
    pub(crate) fn split(paths: Vec<WorkspacePath>) -> (Self, Vec<WorkspacePath>) {
        if paths.len() > MAX_RECORDED_PATHS {
            (Self::InState { in_state: paths.len() as u64 }, paths)
        } else {
            (Self::Here(paths), Vec::new())
        }
    }

    /// Returns the number of paths.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Here(paths) => paths.len() as u64,
            Self::InState { in_state } => *in_state,
        }
    }

    /// Returns the paths: those in the record, or `in_state` if the state holds them.
    pub(crate) fn or_in_state(self, in_state: Vec<WorkspacePath>) -> Vec<WorkspacePath> {
        match self {
            Self::Here(paths) => paths,
            Self::InState { .. } => in_state,
        }
    }

    /// Returns the paths in the record. The result is empty if the state holds them.
    pub(crate) fn here(&self) -> &[WorkspacePath] {
        match self {
            Self::Here(paths) => paths,
            Self::InState { .. } => &[],
        }
    }
}

impl Default for RecordedPaths {
    fn default() -> Self {
        Self::Here(Vec::new())
    }
}

/// Serializes an origin without the keys that it has no value for.
fn without_nulls<S: serde::Serializer>(origin: &Origin, serializer: S) -> Result<S::Ok, S::Error> {
    let mut value = serde_json::to_value(origin).map_err(serde::ser::Error::custom)?;
    if let Some(keys) = value.as_object_mut() {
        keys.retain(|_, value| !value.is_null());
    }
    serde::Serialize::serialize(&value, serializer)
}

fn yes() -> bool {
    true
}

fn is_yes(value: &bool) -> bool {
    *value
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn is_whole(scope: &Scope) -> bool {
    *scope == Scope::Whole
}

impl Record {
    /// Creates a record with only a sequence number, a kind, a time and a message.
    pub(crate) fn new(sequence: u64, kind: Kind, time: Timestamp, message: String) -> Self {
        Self {
            version: VERSION,
            sequence,
            kind,
            time: time.as_millisecond(),
            message,
            parent: None,
            name: None,
            description: None,
            origin: Origin::default(),
            named: Vec::new(),
            beside: Vec::new(),
            git: None,
            features: None,
            context: None,
            attachments: Vec::new(),
            metadata: serde_json::Map::new(),
            scope: Scope::Whole,
            complete: true,
            insertions: 0,
            deletions: 0,
            changed: RecordedPaths::default(),
            dropped: 0,
            unprotected: 0,
            included: Vec::new(),
            state_files: Vec::new(),
            modes: ModeDefaults::default(),
            unknown: serde_json::Map::new(),
        }
    }

    /// Returns the message of the commit: the text for people, then the record.
    pub(super) fn to_commit_message(&self) -> Result<String, serde_json::Error> {
        let json = serde_json::to_string(self)?;
        // Git's own tools end a message at a NUL. The record keeps the exact text.
        let message = self.message.replace('\0', "\u{fffd}");
        let description = self.description.as_deref().unwrap_or_default().replace('\0', "\u{fffd}");
        let gap = if description.is_empty() { "" } else { "\n\n" };
        Ok(format!("{message}{gap}{description}\n\n{TRAILER}{json}\n"))
    }

    /// Parses the record in a commit's message. Returns `None` if there is none, or if it can't be parsed.
    pub(super) fn from_commit_message(message: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(message).ok()?;
        let line = text.lines().rev().find_map(|line| line.strip_prefix(TRAILER))?;
        serde_json::from_str(line).ok()
    }

    /// Returns the time at which the checkpoint was taken.
    pub(crate) fn timestamp(&self) -> Timestamp {
        Timestamp::from_millisecond(self.time).unwrap_or_default()
    }

    /// Returns the author of the changes against the parent. Older records do not name it: then it follows from the
    /// kind, and from the event that the hook recorded. Returns `None` if it is not known.
    pub(crate) fn author(&self) -> Option<Author> {
        let derived = || match (self.kind, self.metadata.get("event").and_then(|event| event.as_str())) {
            (Kind::Session | Kind::Turn, _) | (Kind::Step, Some("before tool")) => Some(Author::Other),
            (Kind::Step, Some("after tool" | "subagent end" | "turn end" | "session end")) => Some(Author::Agent),
            _ => None,
        };
        self.origin.author.or_else(derived)
    }

    /// Returns whether the checkpoint was taken while an agent without hooks ran. Who made its changes is not known.
    pub(crate) fn is_of_wrapped_agent(&self) -> bool {
        self.kind == Kind::Step && self.metadata.get("event").is_some_and(|event| event == "wrapped")
    }

    /// Converts the record to the [`Checkpoint`] that callers see. `changed` and `dirty_files` are the paths, even if
    /// the record only has their number.
    pub(crate) fn into_checkpoint(
        self,
        id: CheckpointId,
        pinned: bool,
        changed: Vec<WorkspacePath>,
        dirty_files: Vec<WorkspacePath>,
    ) -> Checkpoint {
        let time = self.timestamp();
        let author = self.author();
        let git = self.git.map(|git| GitState {
            commit: git.commit,
            branch: git.branch,
            dirty_files,
            dirty_count: git.dirty_files.len(),
        });
        Checkpoint {
            id,
            sequence: self.sequence,
            name: self.name,
            message: self.message,
            description: self.description,
            kind: self.kind,
            time,
            parent: self.parent,
            changed: self.changed.len(),
            files_changed: changed,
            insertions: self.insertions,
            deletions: self.deletions,
            origin: Origin { author, ..self.origin },
            git,
            feature_state: self.features,
            context: self.context,
            attachments: self.attachments,
            metadata: self.metadata,
            pinned,
            complete: self.complete,
            dropped: self.dropped,
            scope: self.scope,
            reverted: false,
            work: (self.kind == Kind::Turn).then(WorkTotals::default),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_message_comes_back_exactly_and_unknown_fields_survive() {
        for message in ["x", "a|b", "line one\n\nline three\n", "Backtrail-Record: {}", "nul\0inside", "日本語 🎉", ""]
        {
            let mut record = Record::new(7, Kind::Step, Timestamp::UNIX_EPOCH, message.to_owned());
            record.unknown.insert("later".into(), serde_json::json!({"a": [1, 2]}));
            // A less exact parser returns some of these with another last digit.
            record
                .metadata
                .insert("score".into(), serde_json::json!([0.1, 2.0 / 3.0, 9.999_999_999_999_999e-5, 1e300]));
            record.metadata.insert("odd".into(), serde_json::json!(71.202_351_451_671));
            let text = record.to_commit_message().unwrap();
            assert!(!text.contains('\0'));
            assert_eq!(Record::from_commit_message(text.as_bytes()), Some(record), "{message:?}");
        }
    }
}
