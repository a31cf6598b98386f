//! What the operations answer.

use serde::Serialize;

use super::{ChangeJson, CheckpointJson, SkippedJson};
use crate::{
    model::{Change, ChangeStatus, Checkpoint, Conflict, Dropped, GitState, Skipped, WorkspacePath},
    operations::{
        diff::Diff,
        history::Version,
        restore::{RestoreOutcome, RestorePlan},
        save::Saved,
        show::Shown,
        status::Status,
        step::Stepped,
    },
};

/// What `save` answers.
#[derive(Debug, Clone, Serialize)]
pub struct SavedJson {
    /// Was one made? Otherwise the checkpoint is the one that the workspace stands on.
    pub created: bool,
    /// The checkpoint.
    pub checkpoint: CheckpointJson,
    /// What was left out, ignored paths aside.
    pub skipped: Vec<SkippedJson>,
    /// Paths that the checkpoint before it held, that are still on disk, and that are not captured any more.
    pub dropped: Vec<SkippedJson>,
}

impl From<&Saved> for SavedJson {
    fn from(saved: &Saved) -> Self {
        Self {
            created: saved.created,
            checkpoint: CheckpointJson::from(&saved.checkpoint),
            skipped: saved.skipped.iter().map(SkippedJson::from).collect(),
            dropped: saved.dropped.iter().map(SkippedJson::from).collect(),
        }
    }
}

/// What `step` answers.
#[derive(Debug, Clone, Serialize)]
pub struct SteppedJson {
    /// Its number in its session, from 1.
    pub step: u64,
    /// Was a checkpoint taken?
    pub created: bool,
    /// That checkpoint.
    pub checkpoint: Option<CheckpointJson>,
    /// Paths that the checkpoint before it held, that are still on disk, and that are not captured any more.
    pub dropped: Vec<SkippedJson>,
}

impl From<&Stepped> for SteppedJson {
    fn from(stepped: &Stepped) -> Self {
        Self {
            step: stepped.step,
            created: stepped.saved.is_some(),
            checkpoint: stepped.checkpoint().map(CheckpointJson::from),
            dropped: stepped.saved.iter().flat_map(|saved| &saved.dropped).map(SkippedJson::from).collect(),
        }
    }
}

/// What `list` answers.
#[derive(Debug, Clone, Serialize)]
pub struct TimelineJson {
    /// Newest first.
    pub checkpoints: Vec<CheckpointJson>,
}

impl From<&[Checkpoint]> for TimelineJson {
    fn from(checkpoints: &[Checkpoint]) -> Self {
        Self { checkpoints: checkpoints.iter().map(CheckpointJson::from).collect() }
    }
}

/// What `show` answers.
#[derive(Debug, Clone, Serialize)]
pub struct ShownJson {
    /// The checkpoint.
    pub checkpoint: CheckpointJson,
    /// What changed against the one that it followed.
    pub changes: Vec<ChangeJson>,
    /// What was done for it, where it is that of a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_changes: Option<Vec<ChangeJson>>,
}

impl From<&Shown> for ShownJson {
    fn from(shown: &Shown) -> Self {
        Self {
            checkpoint: CheckpointJson::from(&shown.checkpoint),
            changes: changes(&shown.changes),
            turn_changes: shown.turn_changes.as_deref().map(changes),
        }
    }
}

/// What `status` answers.
#[derive(Debug, Clone, Serialize)]
pub struct StatusJson {
    /// What it was compared with; null before the first checkpoint.
    pub checkpoint: Option<CheckpointJson>,
    /// What changed since.
    pub changes: Vec<ChangeJson>,
    /// What the checkpoint holds and a new one would leave out; absent where there is nothing of the kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedJson>,
}

impl From<&Status> for StatusJson {
    fn from(status: &Status) -> Self {
        Self {
            checkpoint: status.checkpoint.as_ref().map(CheckpointJson::from),
            changes: changes(&status.changes),
            skipped: status.uncaptured.iter().map(SkippedJson::from).collect(),
        }
    }
}

/// What `diff` answers.
#[derive(Debug, Clone, Serialize)]
pub struct DiffJson {
    /// The older side; null where nothing was saved yet.
    pub from: Option<String>,
    /// The newer side; null for the files on disk.
    pub to: Option<String>,
    /// What differs, in the order of the paths.
    pub changes: Vec<ChangeJson>,
    /// The paths that came.
    pub added_files: Vec<String>,
    /// The paths that are other than before.
    pub modified_files: Vec<String>,
    /// The paths that went.
    pub deleted_files: Vec<String>,
    /// A unified patch that `git apply` takes.
    pub patch: String,
    /// What the older side holds and a checkpoint of the files on disk would leave out; absent where there is nothing of
    /// the kind.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedJson>,
}

/// Takes the difference whole: its patch may be long.
impl From<Diff> for DiffJson {
    fn from(diff: Diff) -> Self {
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
            skipped: diff.uncaptured.iter().map(SkippedJson::from).collect(),
            patch: diff.patch,
        }
    }
}

/// What `restore`, `rewind`, `undo` and `redo` answer.
#[derive(Debug, Clone, Serialize)]
pub struct RestoreJson {
    /// The hash of the plan; null where there was nothing to take back.
    pub plan: Option<String>,
    /// What happened to the workspace, or would.
    pub changes: Vec<ChangeJson>,
    /// Was it done?
    pub applied: bool,
    /// What the workspace was before; null where nothing had to change.
    pub safety: Option<String>,
    /// What stood in the way, or changed meanwhile.
    pub conflicts: Vec<ConflictJson>,
    /// What should go, and stays, or would; absent where there is nothing of the kind. It keeps nobody from restoring.
    /// After a restore, only what is git's own is here, and the rest is with the conflicts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<ConflictJson>,
    /// Paths on disk that could not be captured by the time of the checkpoint, and are left as they are; absent if there
    /// are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_restored: Vec<SkippedJson>,
    /// Where the user's repository stands after it was to be moved; null where it was left alone.
    pub git: Option<MovedJson>,
}

/// Where the user's repository stands, or would.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Moved"))]
pub struct MovedJson {
    /// The commit.
    pub commit: Option<String>,
    /// The branch; null where HEAD is detached.
    pub branch: Option<String>,
}

impl From<&GitState> for MovedJson {
    fn from(git: &GitState) -> Self {
        Self { commit: git.commit.clone(), branch: git.branch.clone() }
    }
}

impl RestoreJson {
    /// There was nothing to take back.
    pub fn nothing() -> Self {
        Self {
            plan: None,
            changes: Vec::new(),
            applied: false,
            safety: None,
            conflicts: Vec::new(),
            stays: Vec::new(),
            not_restored: Vec::new(),
            git: None,
        }
    }
}

impl RestoreJson {
    /// Adds the paths that the checkpoint could not hold.
    pub fn without(self, dropped: &[Dropped]) -> Self {
        let skipped = |dropped: &Dropped| Skipped { path: dropped.path.clone(), reason: dropped.reason };
        let not_restored = dropped.iter().map(|dropped| SkippedJson::from(&skipped(dropped))).collect();
        Self { not_restored, ..self }
    }
}

impl From<&RestoreOutcome> for RestoreJson {
    fn from(done: &RestoreOutcome) -> Self {
        Self {
            plan: Some(done.plan.clone()),
            changes: changes(&done.changes),
            applied: done.applied,
            safety: done.safety.map(|safety| safety.to_string()),
            conflicts: done.conflicts.iter().map(ConflictJson::from).collect(),
            stays: done.stays.iter().map(ConflictJson::from).collect(),
            not_restored: Vec::new(),
            git: done.git.as_ref().map(MovedJson::from),
        }
    }
}

impl From<&RestorePlan> for RestoreJson {
    fn from(plan: &RestorePlan) -> Self {
        Self {
            plan: Some(plan.hash.clone()),
            changes: changes(&plan.changes),
            applied: false,
            safety: None,
            conflicts: plan.conflicts.iter().map(ConflictJson::from).collect(),
            stays: plan.stays().iter().map(ConflictJson::from).collect(),
            not_restored: Vec::new(),
            git: plan.git().map(MovedJson::from),
        }
    }
}

/// `Conflict`: something that a restore did not do, and why.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Conflict"))]
pub struct ConflictJson {
    /// Relative to the workspace.
    pub path: String,
    /// In words.
    pub reason: String,
    /// The bytes that somebody else had written there, as a blob of the store.
    pub kept: Option<String>,
}

impl From<&Conflict> for ConflictJson {
    fn from(conflict: &Conflict) -> Self {
        Self {
            path: conflict.path.to_text().into_owned(),
            reason: conflict.reason.clone(),
            kept: conflict.kept.map(|kept| kept.to_string()),
        }
    }
}

/// What `history` answers.
#[derive(Debug, Clone, Serialize)]
pub struct HistoryJson {
    /// Relative to the workspace.
    pub path: String,
    /// Newest first.
    pub versions: Vec<VersionJson>,
}

impl HistoryJson {
    /// The versions of a path.
    pub fn new(path: &WorkspacePath, versions: &[Version]) -> Self {
        Self { path: path.to_text().into_owned(), versions: versions.iter().map(VersionJson::from).collect() }
    }
}

/// One version of a path.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Version"))]
pub struct VersionJson {
    /// The checkpoint that has it first.
    pub checkpoint: String,
    /// What happened to the path there.
    pub status: ChangeStatus,
    /// How many bytes it has; null where it is gone or a directory.
    pub bytes: Option<u64>,
    /// Lines that came.
    pub insertions: u64,
    /// Lines that went.
    pub deletions: u64,
    /// Are the bytes no text?
    pub binary: bool,
    /// Is it that of a safety checkpoint, taken of unsaved work before a restore?
    pub safety: bool,
}

impl From<&Version> for VersionJson {
    fn from(version: &Version) -> Self {
        Self {
            checkpoint: version.checkpoint.to_string(),
            status: version.status,
            bytes: version.bytes,
            insertions: version.insertions,
            deletions: version.deletions,
            binary: version.binary,
            safety: version.safety,
        }
    }
}

fn changes(changes: &[Change]) -> Vec<ChangeJson> {
    changes.iter().map(ChangeJson::from).collect()
}
