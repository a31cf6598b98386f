//! Results as plain dictionaries, which the Python half converts into its result classes.
//!
//! Paths are text in which bytes that are not UTF-8 are escaped, as elsewhere in Python. Times are milliseconds.

use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::Path};

use backtrail::{
    Author, Bisection, Blame, BlameRange, Candidate, Change, Checkpoint, CheckpointId, Conflict, Diff, Dropped,
    GitState, NotApplied, Pruned, RestoreOutcome, RestorePlan, Saved, Shown, Skipped, Status, Stepped, TestResult,
    Tested, Verdict, Verification, Version, WorkTotals, WorkspaceEntry, WorkspacePath,
};
use pyo3::IntoPyObject;

use crate::{json::JsonObject, precision::PlainHunk};

pub(crate) fn path(path: &WorkspacePath) -> OsString {
    OsString::from_vec(path.as_bytes().to_vec())
}

pub(crate) fn paths(list: &[WorkspacePath]) -> Vec<OsString> {
    list.iter().map(path).collect()
}

pub(crate) fn file(path: &Path) -> OsString {
    path.as_os_str().to_owned()
}

fn all<'a, T, P: From<&'a T>>(list: &'a [T]) -> Vec<P> {
    list.iter().map(P::from).collect()
}

#[derive(IntoPyObject)]
pub(crate) struct PlainCheckpoint {
    id: String,
    short_id: String,
    name: Option<String>,
    message: String,
    description: Option<String>,
    kind: &'static str,
    milliseconds: i64,
    parent: Option<String>,
    files_changed: Vec<OsString>,
    changed_count: u64,
    insertions: u64,
    deletions: u64,
    step: Option<u64>,
    session: Option<String>,
    agent: Option<String>,
    turn: Option<u64>,
    prompt: Option<String>,
    tool: Option<String>,
    command: Option<String>,
    author: Option<&'static str>,
    git: Option<PlainGitState>,
    feature_state: Option<PlainFeatureState>,
    context: Option<PlainContext>,
    attachments: Vec<PlainAttachment>,
    metadata: JsonObject,
    pinned: bool,
    complete: bool,
    dropped: u64,
    scope: Option<Vec<OsString>>,
    reverted: bool,
    work_totals: Option<PlainWorkTotals>,
}

#[derive(IntoPyObject)]
struct PlainWorkTotals {
    files: u64,
    insertions: u64,
    deletions: u64,
}

impl From<WorkTotals> for PlainWorkTotals {
    fn from(totals: WorkTotals) -> Self {
        let WorkTotals { files, insertions, deletions } = totals;
        Self { files, insertions, deletions }
    }
}

#[derive(IntoPyObject)]
struct PlainGitState {
    commit: Option<String>,
    branch: Option<String>,
    dirty_files: Vec<OsString>,
    dirty_count: u64,
}

#[derive(IntoPyObject)]
struct PlainFeatureState {
    current: Option<String>,
    completed: Vec<String>,
}

#[derive(IntoPyObject)]
struct PlainContext {
    session_number: Option<u64>,
    token_usage: Option<u64>,
}

#[derive(IntoPyObject)]
struct PlainAttachment {
    name: String,
    bytes: u64,
}

impl From<&Checkpoint> for PlainCheckpoint {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self {
            id: checkpoint.id.to_string(),
            short_id: checkpoint.id.short(),
            name: checkpoint.name.clone(),
            message: checkpoint.message.clone(),
            description: checkpoint.description.clone(),
            kind: checkpoint.kind.as_str(),
            milliseconds: checkpoint.time.as_millisecond(),
            parent: checkpoint.parent.map(|parent| parent.to_string()),
            files_changed: paths(&checkpoint.files_changed),
            changed_count: checkpoint.changed,
            insertions: checkpoint.insertions,
            deletions: checkpoint.deletions,
            step: checkpoint.origin.step,
            session: checkpoint.origin.session.clone(),
            agent: checkpoint.origin.agent.clone(),
            turn: checkpoint.origin.turn,
            prompt: checkpoint.origin.prompt.clone(),
            tool: checkpoint.origin.tool.clone(),
            command: checkpoint.origin.command.clone(),
            author: checkpoint.origin.author.map(Author::as_str),
            git: checkpoint.git.as_ref().map(|git| PlainGitState {
                commit: git.commit.clone(),
                branch: git.branch.clone(),
                dirty_files: paths(&git.dirty_files),
                dirty_count: git.dirty_count,
            }),
            feature_state: checkpoint
                .feature_state
                .as_ref()
                .map(|state| PlainFeatureState { current: state.current.clone(), completed: state.completed.clone() }),
            context: checkpoint.context.as_ref().map(|context| PlainContext {
                session_number: context.session_number,
                token_usage: context.token_usage,
            }),
            attachments: checkpoint
                .attachments
                .iter()
                .map(|attachment| PlainAttachment { name: attachment.name.clone(), bytes: attachment.bytes })
                .collect(),
            metadata: JsonObject(checkpoint.metadata.clone()),
            pinned: checkpoint.pinned,
            complete: checkpoint.complete,
            dropped: checkpoint.dropped,
            scope: checkpoint.scope.paths().map(paths),
            reverted: checkpoint.reverted,
            work_totals: checkpoint.work.map(PlainWorkTotals::from),
        }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct PlainChange {
    path: OsString,
    status: &'static str,
    insertions: u64,
    deletions: u64,
    binary: bool,
    hunks: Option<Vec<PlainHunk>>,
}

impl From<&Change> for PlainChange {
    fn from(change: &Change) -> Self {
        let mut named = path(&change.path);
        if change.is_directory() {
            named.push("/");
        }
        Self {
            path: named,
            status: change.status.as_str(),
            insertions: change.insertions,
            deletions: change.deletions,
            binary: change.binary,
            hunks: change.hunks.as_deref().map(all),
        }
    }
}

#[derive(IntoPyObject)]
struct PlainSkipped {
    path: OsString,
    reason: &'static str,
}

impl From<&Skipped> for PlainSkipped {
    fn from(skipped: &Skipped) -> Self {
        Self { path: path(&skipped.path), reason: skipped.reason.as_str() }
    }
}

impl From<&Dropped> for PlainSkipped {
    fn from(dropped: &Dropped) -> Self {
        Self { path: path(&dropped.path), reason: dropped.reason.as_str() }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct PlainSaved {
    created: bool,
    checkpoint: PlainCheckpoint,
    skipped: Vec<PlainSkipped>,
    dropped: Vec<PlainSkipped>,
}

impl From<&Saved> for PlainSaved {
    fn from(saved: &Saved) -> Self {
        Self {
            created: saved.created,
            checkpoint: PlainCheckpoint::from(&saved.checkpoint),
            skipped: all(&saved.skipped),
            dropped: all(&saved.dropped),
        }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct PlainStepped {
    step: u64,
    created: bool,
    checkpoint: Option<PlainCheckpoint>,
    dropped: Vec<PlainSkipped>,
}

impl From<&Stepped> for PlainStepped {
    fn from(stepped: &Stepped) -> Self {
        let checkpoint = stepped.checkpoint().map(PlainCheckpoint::from);
        let dropped = stepped.saved.as_ref().map(|saved| all(&saved.dropped)).unwrap_or_default();
        Self { step: stepped.step, created: checkpoint.is_some(), checkpoint, dropped }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct PlainShown {
    checkpoint: PlainCheckpoint,
    changes: Vec<PlainChange>,
    work: Option<Vec<PlainChange>>,
    turn_changes: Option<Vec<PlainChange>>,
}

impl From<&Shown> for PlainShown {
    fn from(shown: &Shown) -> Self {
        Self {
            checkpoint: PlainCheckpoint::from(&shown.checkpoint),
            changes: all(&shown.changes),
            work: shown.work.as_deref().map(all),
            turn_changes: shown.turn_changes.as_deref().map(all),
        }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct PlainStatus {
    checkpoint: Option<PlainCheckpoint>,
    changes: Vec<PlainChange>,
    skipped: Vec<PlainSkipped>,
}

impl From<&Status> for PlainStatus {
    fn from(status: &Status) -> Self {
        Self {
            checkpoint: status.checkpoint.as_ref().map(PlainCheckpoint::from),
            changes: all(&status.changes),
            skipped: all(&status.uncaptured),
        }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct PlainDiff {
    from_id: Option<String>,
    to_id: Option<String>,
    changes: Vec<PlainChange>,
    patch: String,
    skipped: Vec<PlainSkipped>,
}

impl From<&Diff> for PlainDiff {
    fn from(diff: &Diff) -> Self {
        Self {
            from_id: diff.from.map(|id| id.to_string()),
            to_id: diff.to.map(|id| id.to_string()),
            changes: all(&diff.changes),
            patch: diff.patch.clone(),
            skipped: all(&diff.uncaptured),
        }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct PlainVersion {
    checkpoint: String,
    status: &'static str,
    bytes: Option<u64>,
    insertions: u64,
    deletions: u64,
    binary: bool,
    safety: bool,
}

impl From<&Version> for PlainVersion {
    fn from(version: &Version) -> Self {
        Self {
            checkpoint: version.checkpoint.to_string(),
            status: version.status.as_str(),
            bytes: version.bytes,
            insertions: version.insertions,
            deletions: version.deletions,
            binary: version.binary,
            safety: version.safety,
        }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct PlainBlame {
    path: OsString,
    at: Option<String>,
    ranges: Vec<PlainBlameRange>,
}

#[derive(IntoPyObject)]
struct PlainBlameRange {
    start: u64,
    lines: u64,
    checkpoint: Option<String>,
    path: OsString,
    author: Option<&'static str>,
    turn: Option<u64>,
    session: Option<String>,
    agent: Option<String>,
    tool: Option<String>,
    prompt: Option<String>,
    milliseconds: Option<i64>,
    approximate: bool,
}

impl From<&Blame> for PlainBlame {
    fn from(blame: &Blame) -> Self {
        Self {
            path: path(&blame.path),
            at: blame.at.map(|id| id.to_string()),
            ranges: blame.ranges.iter().map(|range| PlainBlameRange::new(range, &blame.path)).collect(),
        }
    }
}

impl PlainBlameRange {
    fn new(range: &BlameRange, on_disk: &WorkspacePath) -> Self {
        let line = range.origin.as_ref();
        let origin = line.map(|line| line.checkpoint.origin.clone()).unwrap_or_default();
        Self {
            start: range.start,
            lines: range.lines,
            checkpoint: line.map(|line| line.checkpoint.id.to_string()),
            path: path(line.map_or(on_disk, |line| &line.path)),
            author: origin.author.map(Author::as_str),
            turn: origin.turn,
            session: origin.session,
            agent: origin.agent,
            tool: origin.tool,
            prompt: line.and_then(|line| line.prompt.clone()),
            milliseconds: line.map(|line| line.checkpoint.time.as_millisecond()),
            approximate: line.is_some_and(|line| line.approximate),
        }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct PlainBisected {
    first_bad: Option<String>,
    first_bad_is_unsaved: bool,
    last_good: Option<String>,
    tested: Vec<PlainTested>,
    changes: Vec<PlainChange>,
}

#[derive(IntoPyObject)]
struct PlainTested {
    checkpoint: Option<String>,
    result: &'static str,
    seconds: f64,
}

impl PlainBisected {
    pub(crate) fn new(bisection: &Bisection, changes: &[Change]) -> Self {
        let culprit = bisection.culprit();
        let id = |candidate: Candidate| candidate.checkpoint().map(|id| id.to_string());
        let tested = |tested: &Tested| PlainTested {
            checkpoint: id(tested.candidate),
            result: match tested.result {
                TestResult::Good => "good",
                TestResult::Bad => "bad",
                TestResult::Skipped => "skipped",
            },
            seconds: tested.seconds,
        };
        Self {
            first_bad: culprit.first_bad.and_then(id),
            first_bad_is_unsaved: culprit.first_bad == Some(Candidate::OnDisk),
            last_good: culprit.last_good.map(|id| id.to_string()),
            tested: bisection.tested().iter().map(tested).collect(),
            changes: all(changes),
        }
    }
}

#[derive(IntoPyObject)]
struct PlainConflict {
    path: OsString,
    reason: String,
    kept: Option<String>,
    lines: Vec<(u64, u64)>,
}

impl From<&Conflict> for PlainConflict {
    fn from(conflict: &Conflict) -> Self {
        Self {
            path: path(&conflict.path),
            reason: conflict.reason.clone(),
            kept: conflict.kept.map(|kept| kept.to_string()),
            lines: conflict.lines.iter().map(|&[first, last]| (first, last)).collect(),
        }
    }
}

/// The answer of every kind of restore.
#[derive(IntoPyObject)]
pub(crate) struct PlainRestored {
    target: Option<String>,
    plan: Option<String>,
    changes: Vec<PlainChange>,
    applied: bool,
    safety: Option<String>,
    stands_on: Option<String>,
    conflicts: Vec<PlainConflict>,
    stays: Vec<PlainConflict>,
    not_restored: Vec<PlainSkipped>,
    git: Option<PlainMoved>,
    undeleted: Vec<String>,
    deleted: Vec<String>,
}

/// The position of the user's repository after a restore that moved it.
#[derive(IntoPyObject)]
struct PlainMoved {
    commit: Option<String>,
    branch: Option<String>,
}

impl From<&GitState> for PlainMoved {
    fn from(git: &GitState) -> Self {
        Self { commit: git.commit.clone(), branch: git.branch.clone() }
    }
}

impl PlainRestored {
    /// Returns the answer if there was nothing to take back.
    pub(crate) fn nothing(current: Option<CheckpointId>) -> Self {
        Self {
            target: None,
            plan: None,
            changes: Vec::new(),
            applied: false,
            safety: None,
            stands_on: current.map(|id| id.to_string()),
            conflicts: Vec::new(),
            stays: Vec::new(),
            not_restored: Vec::new(),
            git: None,
            undeleted: Vec::new(),
            deleted: Vec::new(),
        }
    }

    /// Returns the answer for a plan.
    pub(crate) fn planned(target: Option<String>, plan: &RestorePlan) -> Self {
        Self {
            target,
            plan: Some(plan.hash.clone()),
            changes: all(&plan.changes),
            applied: false,
            safety: None,
            stands_on: plan.stands_on.map(|id| id.to_string()),
            conflicts: all(&plan.conflicts),
            stays: all(&plan.stays()),
            not_restored: Vec::new(),
            git: plan.git().map(PlainMoved::from),
            undeleted: Vec::new(),
            deleted: Vec::new(),
        }
    }

    /// Replaces the checkpoint that the answer is about.
    pub(crate) fn about(self, target: Option<String>) -> Self {
        Self { target, ..self }
    }

    /// Adds the paths that the checkpoint could not capture.
    pub(crate) fn without(self, dropped: &[Dropped]) -> Self {
        Self { not_restored: all(dropped), ..self }
    }
}

impl From<&RestoreOutcome> for PlainRestored {
    fn from(done: &RestoreOutcome) -> Self {
        Self {
            target: Some(done.target.to_string()),
            plan: Some(done.plan.clone()),
            changes: all(&done.changes),
            applied: done.applied,
            safety: done.safety.map(|safety| safety.to_string()),
            stands_on: done.stands_on.map(|id| id.to_string()),
            conflicts: all(&done.conflicts),
            stays: all(&done.stays),
            not_restored: Vec::new(),
            git: done.git.as_ref().map(PlainMoved::from),
            undeleted: done.undeleted.iter().map(ToString::to_string).collect(),
            deleted: done.deleted.iter().map(ToString::to_string).collect(),
        }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct PlainPruned {
    deleted: Vec<String>,
    kept: usize,
    bytes_before: u64,
    bytes_after: u64,
    not_applied: Vec<PlainNotApplied>,
}

#[derive(IntoPyObject)]
pub(crate) struct PlainNotApplied {
    key: &'static str,
    reason: String,
}

impl From<&NotApplied> for PlainNotApplied {
    fn from(limit: &NotApplied) -> Self {
        Self { key: limit.key(), reason: limit.to_string() }
    }
}

impl From<&Pruned> for PlainPruned {
    fn from(pruned: &Pruned) -> Self {
        Self {
            deleted: pruned.deleted.iter().map(ToString::to_string).collect(),
            kept: pruned.kept,
            bytes_before: pruned.bytes_before,
            bytes_after: pruned.bytes_after,
            not_applied: pruned.not_applied.iter().map(PlainNotApplied::from).collect(),
        }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct PlainVerdict {
    id: String,
    kind: &'static str,
    keep: bool,
    reason: String,
}

impl From<&Verdict> for PlainVerdict {
    fn from(verdict: &Verdict) -> Self {
        Self {
            id: verdict.id.to_string(),
            kind: verdict.kind.as_str(),
            keep: verdict.keep,
            reason: verdict.reason.clone(),
        }
    }
}

#[derive(IntoPyObject)]
struct PlainDamage {
    id: String,
    reason: String,
}

#[derive(IntoPyObject)]
pub(crate) struct PlainVerification {
    checkpoints: usize,
    damaged: Vec<PlainDamage>,
}

impl From<&Verification> for PlainVerification {
    fn from(found: &Verification) -> Self {
        let damaged = found.damaged.iter();
        let damaged = damaged.map(|damage| PlainDamage { id: damage.id.clone(), reason: damage.reason.clone() });
        Self { checkpoints: found.checkpoints, damaged: damaged.collect() }
    }
}

#[derive(IntoPyObject)]
pub(crate) struct PlainWorkspaceEntry {
    path: OsString,
    exists: bool,
    is_gone: bool,
    moved_to: Option<OsString>,
    store: OsString,
    bytes: u64,
    checkpoints: usize,
    newest_milliseconds: Option<i64>,
}

impl From<&WorkspaceEntry> for PlainWorkspaceEntry {
    fn from(entry: &WorkspaceEntry) -> Self {
        Self {
            path: file(&entry.path),
            exists: entry.exists,
            is_gone: entry.is_gone,
            moved_to: entry.moved_to.as_deref().map(file),
            store: file(&entry.store),
            bytes: entry.bytes,
            checkpoints: entry.checkpoints,
            newest_milliseconds: entry.newest.map(|newest| newest.as_millisecond()),
        }
    }
}
