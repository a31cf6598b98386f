//! The JSON answers of the operations.

use serde::Serialize;
use serde_json::Value;

use super::{ChangeJson, CheckpointJson, SkippedJson};
use crate::{
    model::{Change, ChangeStatus, Checkpoint, CheckpointId, Conflict, Dropped, GitState, Skipped, WorkspacePath},
    operations::{
        captured_later::CapturedLater,
        diff::Diff,
        history::Version,
        restore::{Moved, RestoreOutcome, RestorePlan},
        revert::{RevertOutcome, RevertPlan},
        save::Saved,
        show::Shown,
        status::Status,
        step::Stepped,
    },
    store::Direction,
};

/// The JSON answer of `save`.
#[derive(Debug, Clone, Serialize)]
pub struct SavedJson {
    /// True if a checkpoint was created. Otherwise `checkpoint` is the one that the workspace stands on.
    pub created: bool,
    /// The checkpoint.
    pub checkpoint: CheckpointJson,
    /// Paths that were skipped. Does not include ignored paths.
    pub skipped: Vec<SkippedJson>,
    /// Paths that the previous checkpoint held, that are still on disk, and that are not captured any more.
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

/// The JSON answer of `step`.
#[derive(Debug, Clone, Serialize)]
pub struct SteppedJson {
    /// The number of the step in its session, from 1.
    pub step: u64,
    /// True if a checkpoint was created.
    pub created: bool,
    /// The created checkpoint; null if there is none.
    pub checkpoint: Option<CheckpointJson>,
    /// Paths that the previous checkpoint held, that are still on disk, and that are not captured any more.
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

/// The JSON answer of `list`.
#[derive(Debug, Clone, Serialize)]
pub struct TimelineJson {
    /// The checkpoints, newest first.
    pub checkpoints: Vec<CheckpointJson>,
}

impl TimelineJson {
    /// Returns the answer without the lists of paths in each checkpoint.
    pub fn brief(&self) -> serde_json::Result<Value> {
        let mut answer = serde_json::to_value(self)?;
        for checkpoint in answer["checkpoints"].as_array_mut().into_iter().flatten() {
            checkpoint.as_object_mut().map(|keys| keys.remove("files_changed"));
            checkpoint["git"].as_object_mut().map(|keys| keys.remove("dirty_files"));
        }
        Ok(answer)
    }
}

impl From<&[Checkpoint]> for TimelineJson {
    fn from(checkpoints: &[Checkpoint]) -> Self {
        Self { checkpoints: checkpoints.iter().map(CheckpointJson::from).collect() }
    }
}

/// The JSON answer of `show`.
#[derive(Debug, Clone, Serialize)]
pub struct ShownJson {
    /// The checkpoint.
    pub checkpoint: CheckpointJson,
    /// The changes against the previous checkpoint.
    pub changes: Vec<ChangeJson>,
    /// The changes from a prompt to the end of the work for it; absent if this is not the checkpoint of a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_changes: Option<Vec<ChangeJson>>,
    /// What the agent did for a prompt; absent if this is not the checkpoint of a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub work: Option<Vec<ChangeJson>>,
    /// The patch, for a prompt that of `work`; absent if it was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<String>,
}

impl From<&Shown> for ShownJson {
    fn from(shown: &Shown) -> Self {
        Self {
            checkpoint: CheckpointJson::from(&shown.checkpoint),
            changes: changes(&shown.changes),
            turn_changes: shown.turn_changes.as_deref().map(changes),
            work: shown.work.as_deref().map(changes),
            patch: None,
        }
    }
}

impl ShownJson {
    /// Adds a patch, if there is one.
    pub fn with_patch(self, patch: Option<String>) -> Self {
        Self { patch, ..self }
    }
}

/// The JSON answer of `status`.
#[derive(Debug, Clone, Serialize)]
pub struct StatusJson {
    /// The checkpoint that the files were compared with; null before the first checkpoint.
    pub checkpoint: Option<CheckpointJson>,
    /// The changes since that checkpoint.
    pub changes: Vec<ChangeJson>,
    /// Paths that the checkpoint holds and that a new one would skip; absent if there are none.
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

/// The JSON answer of `diff`.
#[derive(Debug, Clone, Serialize)]
pub struct DiffJson {
    /// The older side; null before the first checkpoint.
    pub from: Option<String>,
    /// The newer side; null for the files on disk.
    pub to: Option<String>,
    /// The changes, sorted by path.
    pub changes: Vec<ChangeJson>,
    /// The added paths.
    pub added_files: Vec<String>,
    /// The paths that changed in content, type or mode.
    pub modified_files: Vec<String>,
    /// The deleted paths.
    pub deleted_files: Vec<String>,
    /// A unified patch that `git apply` accepts; null if only the sums were asked for.
    pub patch: Option<String>,
    /// Paths that the older side holds and that a checkpoint of the files on disk would skip; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedJson>,
}

/// Takes the diff by value, because its patch may be long.
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
            patch: Some(diff.patch),
        }
    }
}

impl DiffJson {
    /// Leaves out the patch.
    pub fn without_patch(self) -> Self {
        Self { patch: None, ..self }
    }
}

/// The JSON answer of `restore`, `rewind`, `undo` and `redo`.
#[derive(Debug, Clone, Serialize)]
pub struct RestoreJson {
    /// The hash of the plan; null if there was nothing to take back.
    pub plan: Option<String>,
    /// The changes that the restore made to the workspace, or would make.
    pub changes: Vec<ChangeJson>,
    /// True if the restore was carried out; false for a plan.
    pub applied: bool,
    /// The safety checkpoint; null if nothing had to change.
    pub safety: Option<String>,
    /// The checkpoint that the workspace stands on afterwards; null before the first checkpoint.
    pub checkpoint: Option<String>,
    /// Paths that were not restored, because something was in the way or another process changed them meanwhile.
    pub conflicts: Vec<ConflictJson>,
    /// Paths that should be removed but stay, or would stay; absent if there are none. They do not prevent the restore.
    /// After a restore, only git's own files are listed here. All other such paths are in `conflicts`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stays: Vec<ConflictJson>,
    /// Paths on disk that the checkpoint could not capture, and that are left unchanged; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_restored: Vec<SkippedJson>,
    /// Changed files that the checkpoint does not hold and that come from later ones; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<CapturedLaterJson>,
    /// The position that the user's repository has after the restore, or would have; null if the restore is not to move
    /// it.
    pub git: Option<MovedJson>,
    /// The deleted checkpoints that `undo` brought back, or would bring back; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undeleted: Vec<String>,
    /// The checkpoints that `redo` deleted again, or would delete; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deleted: Vec<String>,
}

fn texts(ids: &[CheckpointId]) -> Vec<String> {
    ids.iter().map(CheckpointId::to_string).collect()
}

/// `CapturedLater`: a file that a rule skips, and that a step captured before a tool changed it.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "CapturedLater"))]
pub struct CapturedLaterJson {
    /// The path.
    pub path: String,
    /// The checkpoint that it comes from.
    pub checkpoint: String,
    /// True if no earlier tool call can have created the file; false if that is not known.
    pub certain: bool,
}

impl From<&CapturedLater> for CapturedLaterJson {
    fn from(also: &CapturedLater) -> Self {
        let path = also.path.to_text().into_owned();
        Self { path, checkpoint: also.checkpoint.to_string(), certain: also.is_certain }
    }
}

/// The position of the user's repository after a restore.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Moved"))]
pub struct MovedJson {
    /// The commit.
    pub commit: Option<String>,
    /// The branch; null if HEAD is detached.
    pub branch: Option<String>,
}

impl From<&GitState> for MovedJson {
    fn from(git: &GitState) -> Self {
        Self { commit: git.commit.clone(), branch: git.branch.clone() }
    }
}

impl RestoreJson {
    /// Returns the answer for an undo or redo without a restore to take back. The workspace stands on `current`.
    pub fn nothing(current: Option<CheckpointId>) -> Self {
        Self {
            plan: None,
            changes: Vec::new(),
            applied: false,
            safety: None,
            checkpoint: current.map(|id| id.to_string()),
            conflicts: Vec::new(),
            stays: Vec::new(),
            not_restored: Vec::new(),
            also: Vec::new(),
            git: None,
            undeleted: Vec::new(),
            deleted: Vec::new(),
        }
    }

    /// Adds the checkpoints that the plan of an undo would bring back, or that of a redo would delete again.
    pub fn concerning(self, deleted: &[CheckpointId], direction: Direction) -> Self {
        match direction {
            Direction::Redo => Self { deleted: texts(deleted), ..self },
            _ => Self { undeleted: texts(deleted), ..self },
        }
    }
}

impl RestoreJson {
    /// Adds the paths that the checkpoint could not capture.
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
            checkpoint: done.stands_on.map(|id| id.to_string()),
            conflicts: done.conflicts.iter().map(ConflictJson::from).collect(),
            stays: done.stays.iter().map(ConflictJson::from).collect(),
            not_restored: Vec::new(),
            also: done.also.iter().map(CapturedLaterJson::from).collect(),
            git: done.git.as_ref().map(MovedJson::from),
            undeleted: texts(&done.undeleted),
            deleted: texts(&done.deleted),
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
            checkpoint: plan.stands_on.map(|id| id.to_string()),
            conflicts: plan.conflicts.iter().map(ConflictJson::from).collect(),
            stays: plan.stays().iter().map(ConflictJson::from).collect(),
            not_restored: Vec::new(),
            also: plan.also.iter().map(CapturedLaterJson::from).collect(),
            git: plan.git().map(MovedJson::from),
            undeleted: Vec::new(),
            deleted: Vec::new(),
        }
    }
}

/// The JSON answer of `revert`.
#[derive(Debug, Clone, Serialize)]
pub struct RevertJson {
    /// The same as for a restore.
    #[serde(flatten)]
    pub restore: RestoreJson,
    /// The checkpoints whose changes were taken back, or would be, newest first.
    pub reverted: Vec<String>,
    /// The changed paths whose lines were merged with later edits.
    pub merged: Vec<String>,
    /// Paths that stay because another session may have changed them at the same time.
    pub shared: Vec<String>,
    /// Files that were changed at the paths to which they were moved since; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedFileJson>,
}

/// A file that was moved since the change that is taken back.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "MovedFile"))]
pub struct MovedFileJson {
    /// Its path in the change.
    pub from: String,
    /// Its path on disk.
    pub to: String,
}

impl From<&Moved> for MovedFileJson {
    fn from(moved: &Moved) -> Self {
        Self { from: moved.from.to_text().into_owned(), to: moved.to.to_text().into_owned() }
    }
}

impl RevertJson {
    fn new(
        restore: RestoreJson,
        reverted: &[CheckpointId],
        merged: &[WorkspacePath],
        shared: &[WorkspacePath],
        moved: &[Moved],
    ) -> Self {
        let texts = |paths: &[WorkspacePath]| paths.iter().map(|path| path.to_text().into_owned()).collect();
        Self {
            restore,
            reverted: reverted.iter().map(CheckpointId::to_string).collect(),
            merged: texts(merged),
            shared: texts(shared),
            moved: moved.iter().map(MovedFileJson::from).collect(),
        }
    }
}

/// The JSON answer of `adopt`.
#[derive(Debug, Clone, Serialize)]
pub struct AdoptJson {
    /// The same as for a restore.
    #[serde(flatten)]
    pub restore: RestoreJson,
    /// The changed paths whose lines were merged with edits in the workspace.
    pub merged: Vec<String>,
    /// Always empty: the files of a fork belong to no other session.
    pub shared: Vec<String>,
    /// Files that were changed at the paths to which they were moved; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedFileJson>,
}

impl AdoptJson {
    fn new(restore: RestoreJson, merged: &[WorkspacePath], moved: &[Moved]) -> Self {
        let merged = merged.iter().map(|path| path.to_text().into_owned()).collect();
        Self { restore, merged, shared: Vec::new(), moved: moved.iter().map(MovedFileJson::from).collect() }
    }
}

impl From<&RestorePlan> for AdoptJson {
    fn from(plan: &RestorePlan) -> Self {
        Self::new(RestoreJson::from(plan), &plan.merged, &plan.moved)
    }
}

impl From<&RestoreOutcome> for AdoptJson {
    fn from(done: &RestoreOutcome) -> Self {
        Self::new(RestoreJson::from(done), &done.merged, &done.moved)
    }
}

impl From<&RevertPlan> for RevertJson {
    fn from(plan: &RevertPlan) -> Self {
        let RevertPlan { restore, reverted, shared } = plan;
        Self::new(RestoreJson::from(restore), reverted, &restore.merged, shared, &restore.moved)
    }
}

impl From<&RevertOutcome> for RevertJson {
    fn from(done: &RevertOutcome) -> Self {
        let RevertOutcome { restore, reverted, shared } = done;
        Self::new(RestoreJson::from(restore), reverted, &restore.merged, shared, &restore.moved)
    }
}

/// `Conflict`: a path that a restore left alone, and the reason.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Conflict"))]
pub struct ConflictJson {
    /// The path, relative to the workspace.
    pub path: String,
    /// The reason, as text.
    pub reason: String,
    /// The blob in the store that keeps the bytes that another process wrote there during the restore, or the content
    /// from before an interrupted restore; null if there is none.
    pub kept: Option<String>,
    /// The lines of the file on disk that a revert can't decide about, counted from 1: the first and the last of each
    /// run; absent for other conflicts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<[u64; 2]>,
}

impl From<&Conflict> for ConflictJson {
    fn from(conflict: &Conflict) -> Self {
        Self {
            path: conflict.path.to_text().into_owned(),
            reason: conflict.reason.clone(),
            kept: conflict.kept.map(|kept| kept.to_string()),
            lines: conflict.lines.clone(),
        }
    }
}

/// The JSON answer of `history`.
#[derive(Debug, Clone, Serialize)]
pub struct HistoryJson {
    /// The path, relative to the workspace.
    pub path: String,
    /// The versions, newest first.
    pub versions: Vec<VersionJson>,
}

impl HistoryJson {
    /// Returns the answer for the versions of a path.
    pub fn new(path: &WorkspacePath, versions: &[Version]) -> Self {
        Self { path: path.to_text().into_owned(), versions: versions.iter().map(VersionJson::from).collect() }
    }
}

/// One version of a path.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "Version"))]
pub struct VersionJson {
    /// The first checkpoint that has this version.
    pub checkpoint: String,
    /// The change to the path in that checkpoint.
    pub status: ChangeStatus,
    /// The size in bytes; null if the path was deleted or is a directory.
    pub bytes: Option<u64>,
    /// The number of inserted lines.
    pub insertions: u64,
    /// The number of deleted lines.
    pub deletions: u64,
    /// True if the content is not text.
    pub binary: bool,
    /// True if the checkpoint is a safety checkpoint, which a restore took of unsaved work.
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
