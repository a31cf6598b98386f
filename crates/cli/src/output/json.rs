//! The answers for programs, key by key as the contract writes them down.

use std::path::Path;

use backtrail::{
    Change, ChangeStatus, Checkpoint, Damage, Diff, FeatureState, GitState, Saved, Shown, Skipped, Status,
    Verification, WorkspacePath,
};
use base64::{Engine, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};

/// `Checkpoint`.
#[derive(Serialize)]
pub(crate) struct CheckpointJson<'a> {
    id: String,
    short_id: String,
    name: Option<&'a str>,
    message: &'a str,
    description: Option<&'a str>,
    kind: &'static str,
    timestamp: String,
    parent: Option<String>,
    files_changed: Vec<String>,
    insertions: u64,
    deletions: u64,
    step: Option<u64>,
    session: Option<&'a str>,
    agent: Option<&'a str>,
    turn: Option<u64>,
    prompt: Option<&'a str>,
    tool: Option<&'a str>,
    git: Option<GitJson<'a>>,
    feature_state: Option<FeatureStateJson<'a>>,
    context: Option<ContextJson>,
    attachments: Vec<AttachmentJson<'a>>,
    metadata: &'a Map<String, Value>,
    pinned: bool,
    complete: bool,
    scope: Option<Vec<String>>,
}

impl<'a> From<&'a Checkpoint> for CheckpointJson<'a> {
    fn from(checkpoint: &'a Checkpoint) -> Self {
        Self {
            id: checkpoint.id.to_string(),
            short_id: checkpoint.id.short(),
            name: checkpoint.name.as_deref(),
            message: &checkpoint.message,
            description: checkpoint.description.as_deref(),
            kind: checkpoint.kind.as_str(),
            timestamp: timestamp(checkpoint.time),
            parent: checkpoint.parent.map(|parent| parent.to_string()),
            files_changed: texts(&checkpoint.files_changed),
            insertions: checkpoint.insertions,
            deletions: checkpoint.deletions,
            step: checkpoint.step,
            session: checkpoint.session.as_deref(),
            agent: checkpoint.agent.as_deref(),
            turn: checkpoint.turn,
            prompt: checkpoint.prompt.as_deref(),
            tool: checkpoint.tool.as_deref(),
            git: checkpoint.git.as_ref().map(GitJson::from),
            feature_state: checkpoint.feature_state.as_ref().map(FeatureStateJson::from),
            context: checkpoint.context.as_ref().map(|context| ContextJson {
                session_number: context.session_number,
                token_usage: context.token_usage,
            }),
            attachments: checkpoint
                .attachments
                .iter()
                .map(|attachment| AttachmentJson { name: &attachment.name, bytes: attachment.bytes })
                .collect(),
            metadata: &checkpoint.metadata,
            pinned: checkpoint.pinned,
            complete: checkpoint.complete,
            scope: checkpoint.scope.paths().map(texts),
        }
    }
}

#[derive(Serialize)]
struct GitJson<'a> {
    commit: Option<&'a str>,
    branch: Option<&'a str>,
    dirty_files: Vec<String>,
}

impl<'a> From<&'a GitState> for GitJson<'a> {
    fn from(git: &'a GitState) -> Self {
        Self { commit: git.commit.as_deref(), branch: git.branch.as_deref(), dirty_files: texts(&git.dirty_files) }
    }
}

#[derive(Serialize)]
struct FeatureStateJson<'a> {
    current: Option<&'a str>,
    completed: &'a [String],
}

impl<'a> From<&'a FeatureState> for FeatureStateJson<'a> {
    fn from(state: &'a FeatureState) -> Self {
        Self { current: state.current.as_deref(), completed: &state.completed }
    }
}

#[derive(Serialize)]
struct ContextJson {
    session_number: Option<u64>,
    token_usage: Option<u64>,
}

#[derive(Serialize)]
struct AttachmentJson<'a> {
    name: &'a str,
    bytes: u64,
}

/// `Change`.
#[derive(Serialize)]
pub(crate) struct ChangeJson {
    path: String,
    status: &'static str,
    insertions: u64,
    deletions: u64,
    binary: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    path_base64: Option<String>,
}

impl From<&Change> for ChangeJson {
    fn from(change: &Change) -> Self {
        Self {
            path: change.display_path(),
            status: change.status.as_str(),
            insertions: change.insertions,
            deletions: change.deletions,
            binary: change.binary,
            path_base64: exact_path(change),
        }
    }
}

/// The bytes of a path whose text does not tell them.
fn exact_path(change: &Change) -> Option<String> {
    if change.path.to_utf8().is_some() {
        return None;
    }
    let mut bytes = change.path.as_bytes().to_vec();
    if change.is_directory() {
        bytes.push(b'/');
    }
    Some(BASE64_STANDARD.encode(bytes))
}

#[derive(Serialize)]
struct SkippedJson {
    path: String,
    reason: &'static str,
}

impl From<&Skipped> for SkippedJson {
    fn from(skipped: &Skipped) -> Self {
        Self { path: skipped.path.to_text().into_owned(), reason: skipped.reason.as_str() }
    }
}

/// What `init` answers.
#[derive(Serialize)]
pub(crate) struct InitJson {
    workspace: String,
    store: String,
    created: bool,
}

impl InitJson {
    pub(crate) fn new(workspace: &Path, store: &Path, created: bool) -> Self {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        Self { workspace: text(workspace), store: text(store), created }
    }
}

/// What `save` answers.
#[derive(Serialize)]
pub(crate) struct SavedJson<'a> {
    created: bool,
    checkpoint: CheckpointJson<'a>,
    skipped: Vec<SkippedJson>,
}

impl<'a> From<&'a Saved> for SavedJson<'a> {
    fn from(saved: &'a Saved) -> Self {
        Self {
            created: saved.created,
            checkpoint: CheckpointJson::from(&saved.checkpoint),
            skipped: saved.skipped.iter().map(SkippedJson::from).collect(),
        }
    }
}

/// What `list` answers.
#[derive(Serialize)]
pub(crate) struct TimelineJson<'a> {
    checkpoints: Vec<CheckpointJson<'a>>,
}

impl<'a> From<&'a [Checkpoint]> for TimelineJson<'a> {
    fn from(checkpoints: &'a [Checkpoint]) -> Self {
        Self { checkpoints: checkpoints.iter().map(CheckpointJson::from).collect() }
    }
}

/// What `show` answers.
#[derive(Serialize)]
pub(crate) struct ShownJson<'a> {
    checkpoint: CheckpointJson<'a>,
    changes: Vec<ChangeJson>,
}

impl<'a> From<&'a Shown> for ShownJson<'a> {
    fn from(shown: &'a Shown) -> Self {
        Self { checkpoint: CheckpointJson::from(&shown.checkpoint), changes: changes(&shown.changes) }
    }
}

/// What `status` answers.
#[derive(Serialize)]
pub(crate) struct StatusJson<'a> {
    checkpoint: Option<CheckpointJson<'a>>,
    changes: Vec<ChangeJson>,
}

impl<'a> From<&'a Status> for StatusJson<'a> {
    fn from(status: &'a Status) -> Self {
        Self { checkpoint: status.checkpoint.as_ref().map(CheckpointJson::from), changes: changes(&status.changes) }
    }
}

/// What `diff` answers.
#[derive(Serialize)]
pub(crate) struct DiffJson<'a> {
    from: Option<String>,
    to: Option<String>,
    changes: Vec<ChangeJson>,
    added_files: Vec<String>,
    modified_files: Vec<String>,
    deleted_files: Vec<String>,
    patch: &'a str,
}

impl<'a> From<&'a Diff> for DiffJson<'a> {
    fn from(diff: &'a Diff) -> Self {
        let paths = |fits: fn(ChangeStatus) -> bool| {
            let fitting = diff.changes.iter().filter(|change| fits(change.status));
            fitting.map(Change::display_path).collect()
        };
        Self {
            from: diff.from.map(|id| id.to_string()),
            to: diff.to.map(|id| id.to_string()),
            changes: changes(&diff.changes),
            added_files: paths(|status| status == ChangeStatus::Added),
            modified_files: paths(|status| !matches!(status, ChangeStatus::Added | ChangeStatus::Deleted)),
            deleted_files: paths(|status| status == ChangeStatus::Deleted),
            patch: &diff.patch,
        }
    }
}

/// What `verify` answers.
#[derive(Serialize)]
pub(crate) struct VerifyJson<'a> {
    ok: bool,
    checkpoints: usize,
    damaged: Vec<DamageJson<'a>>,
}

#[derive(Serialize)]
struct DamageJson<'a> {
    id: &'a str,
    reason: &'a str,
}

impl<'a> From<&'a Verification> for VerifyJson<'a> {
    fn from(found: &'a Verification) -> Self {
        let damage = |damage: &'a Damage| DamageJson { id: &damage.id, reason: &damage.reason };
        Self {
            ok: found.damaged.is_empty(),
            checkpoints: found.checkpoints,
            damaged: found.damaged.iter().map(damage).collect(),
        }
    }
}

fn changes(changes: &[Change]) -> Vec<ChangeJson> {
    changes.iter().map(ChangeJson::from).collect()
}

/// RFC 3339 in UTC, always to the millisecond.
pub(super) fn timestamp(time: Timestamp) -> String {
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
