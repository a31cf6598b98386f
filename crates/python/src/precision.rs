//! The requests and answers of reverts, forks and adoptions.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use backtrail::{
    AdoptRequest, ChosenChanges, Fork, ForkRequest, Forked, Hunk, HunkChoice, LeftOut, Moved, OnConflict,
    RestoreOutcome, RestorePlan, Result, RevertOutcome, RevertPlan, RevertRequest, Workspace, WorkspacePath,
};
use jiff::Zoned;
use pyo3::{prelude::*, types::PyDict};

use crate::{
    plain::{PlainRestored, file, path, paths},
    request::{resolve, scope, usage, wanted},
};

/// A request to revert. Its target and its paths are not resolved yet.
pub(crate) struct RevertWords {
    what: Option<String>,
    turn: Option<u64>,
    session: Option<String>,
    paths: Option<Vec<PathBuf>>,
    on_conflict: OnConflict,
    plan: Option<String>,
    hunks: HunkChoice,
}

impl RevertWords {
    pub(crate) fn of(words: &Bound<'_, PyDict>) -> PyResult<Self> {
        Ok(Self {
            what: wanted(words, "what")?,
            turn: wanted(words, "turn")?,
            session: wanted(words, "session")?,
            paths: wanted(words, "paths")?,
            on_conflict: on_conflict(words)?,
            plan: wanted(words, "plan")?,
            hunks: hunks(words)?,
        })
    }

    pub(crate) fn request(&self, workspace: &Workspace) -> Result<RevertRequest> {
        let (what, session) = (self.what.as_deref(), self.session.as_deref());
        Ok(RevertRequest {
            target: workspace.revert_target(what, self.turn, session, &Zoned::now())?,
            scope: scope(workspace, self.paths.as_deref())?,
            on_conflict: self.on_conflict,
            plan: self.plan.clone(),
            hunks: self.hunks.clone(),
        })
    }
}

/// A request to make forks. Its checkpoint is not resolved yet.
pub(crate) struct ForkWords {
    word: Option<String>,
    directories: Vec<PathBuf>,
    left_out: LeftOut,
}

impl ForkWords {
    pub(crate) fn of(words: &Bound<'_, PyDict>) -> PyResult<Self> {
        let is_copied = wanted(words, "with_left_out")?.unwrap_or_default();
        Ok(Self {
            word: wanted(words, "word")?,
            directories: wanted(words, "directories")?.unwrap_or_default(),
            left_out: if is_copied { LeftOut::Copied } else { LeftOut::Linked },
        })
    }

    pub(crate) fn request(&self, workspace: &Workspace, stores: &Path) -> Result<ForkRequest> {
        Ok(ForkRequest {
            from: self.word.as_deref().map(|word| resolve(workspace, word)).transpose()?,
            directories: self.directories.clone(),
            stores: stores.to_owned(),
            left_out: self.left_out,
            may_hold_git: false,
        })
    }
}

/// Reads a request to adopt.
pub(crate) fn adopt_request(words: &Bound<'_, PyDict>) -> PyResult<AdoptRequest> {
    Ok(AdoptRequest {
        directory: wanted(words, "directory")?.unwrap_or_default(),
        on_conflict: on_conflict(words)?,
        plan: wanted(words, "plan")?,
    })
}

fn on_conflict(words: &Bound<'_, PyDict>) -> PyResult<OnConflict> {
    let skip = wanted(words, "skip_conflicts")?.unwrap_or_default();
    match (skip, wanted(words, "markers")?.unwrap_or_default()) {
        (true, true) => Err(usage(words.py(), "skip_conflicts and markers are mutually exclusive".to_owned())),
        (true, false) => Ok(OnConflict::Skip),
        (false, true) => Ok(OnConflict::Markers),
        (false, false) => Ok(OnConflict::Refuse),
    }
}

/// Reads the hunks that a restore or revert is limited to.
pub(crate) fn hunks(words: &Bound<'_, PyDict>) -> PyResult<HunkChoice> {
    let is_listed = wanted(words, "list_hunks")?.unwrap_or_default();
    Ok(match wanted::<Vec<String>>(words, "hunks")? {
        Some(hunks) => HunkChoice::Only(ChosenChanges { hunks, paths: Vec::new() }),
        None if is_listed => HunkChoice::Listed,
        None => HunkChoice::All,
    })
}

/// The answer of a revert or an adoption.
#[derive(IntoPyObject)]
pub(crate) struct PlainMerged {
    restored: PlainRestored,
    reverted: Vec<String>,
    merged: Vec<OsString>,
    shared: Vec<OsString>,
    moved: Vec<PlainMovedFile>,
}

#[derive(IntoPyObject)]
struct PlainMovedFile {
    before: OsString,
    now: OsString,
}

impl PlainMerged {
    fn new(restored: PlainRestored, merged: &[WorkspacePath], moved: &[Moved]) -> Self {
        let moved_file = |moved: &Moved| PlainMovedFile { before: path(&moved.from), now: path(&moved.to) };
        let moved = moved.iter().map(moved_file).collect();
        Self { restored, reverted: Vec::new(), merged: paths(merged), shared: Vec::new(), moved }
    }

    fn of_revert(self, reverted: &[backtrail::CheckpointId], shared: &[WorkspacePath]) -> Self {
        let reverted: Vec<String> = reverted.iter().map(ToString::to_string).collect();
        let restored = self.restored.about(reverted.first().cloned());
        Self { restored, reverted, shared: paths(shared), ..self }
    }
}

impl From<&RestorePlan> for PlainMerged {
    fn from(plan: &RestorePlan) -> Self {
        Self::new(PlainRestored::planned(None, plan), &plan.merged, &plan.moved)
    }
}

impl From<&RestoreOutcome> for PlainMerged {
    fn from(done: &RestoreOutcome) -> Self {
        Self::new(PlainRestored::from(done).about(None), &done.merged, &done.moved)
    }
}

impl From<&RevertPlan> for PlainMerged {
    fn from(plan: &RevertPlan) -> Self {
        Self::from(&plan.restore).of_revert(&plan.reverted, &plan.shared)
    }
}

impl From<&RevertOutcome> for PlainMerged {
    fn from(done: &RevertOutcome) -> Self {
        Self::from(&done.restore).of_revert(&done.reverted, &done.shared)
    }
}

#[derive(IntoPyObject)]
pub(crate) struct PlainFork {
    path: OsString,
    exists: bool,
    checkpoint: String,
    prompts: usize,
    files: Option<usize>,
    insertions: Option<u64>,
    deletions: Option<u64>,
}

impl From<&Fork> for PlainFork {
    fn from(fork: &Fork) -> Self {
        Self {
            path: file(&fork.path),
            exists: fork.exists,
            checkpoint: fork.checkpoint.to_string(),
            prompts: fork.prompts,
            files: fork.changes.map(|changes| changes.files),
            insertions: fork.changes.map(|changes| changes.insertions),
            deletions: fork.changes.map(|changes| changes.deletions),
        }
    }
}

impl From<&Forked> for PlainFork {
    fn from(forked: &Forked) -> Self {
        Self {
            path: file(&forked.path),
            exists: true,
            checkpoint: forked.checkpoint.to_string(),
            prompts: 0,
            files: Some(0),
            insertions: Some(0),
            deletions: Some(0),
        }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct PlainHunk {
    id: String,
    old_start: u64,
    old_lines: u64,
    new_start: u64,
    new_lines: u64,
    section: String,
    lines: Vec<String>,
}

impl From<&Hunk> for PlainHunk {
    fn from(hunk: &Hunk) -> Self {
        Self {
            id: hunk.id.clone(),
            old_start: hunk.old_start,
            old_lines: hunk.old_lines,
            new_start: hunk.new_start,
            new_lines: hunk.new_lines,
            section: hunk.section.clone(),
            lines: hunk.lines.clone(),
        }
    }
}
