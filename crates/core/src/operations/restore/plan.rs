//! The changes that a restore would make, as a value. Planning only reads.

use std::{collections::HashMap, path::Path};

use tracing::Span;

use super::{
    ExactPaths, Intent, Moved, RestoreRequest,
    compare::{RestoreComparison, is_ours},
    permissions::Permitted,
};
use crate::{
    error::{Error, Result},
    model::{Change, CheckpointId, Conflict, ContentId, GitState, Scope, Side, WorkspacePath},
    operations::{
        captured_later::CapturedLater,
        diff::{LineSource, count_lines},
    },
    scan::Scan,
    spans::{Outcome, phase},
    store::{Direction, Step, Store, Timeline, TimelineEntry},
    user_git::GitMove,
    workspace::{Workspace, skipped::SkippedByCheckpoint},
};

/// The entries that a restore concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Only {
    /// All entries.
    #[default]
    All,
    /// All but the agent's own state files.
    Files,
    /// The agent's own state files.
    State,
}

/// The changes that a restore would make.
#[derive(Debug, Clone)]
pub struct RestorePlan {
    /// A hash over the workspace, the target, the scope, the options, and each path's old and new kind, mode and
    /// content.
    pub hash: String,
    /// The changes to the workspace.
    pub changes: Vec<Change>,
    /// Paths with something in the way.
    pub conflicts: Vec<Conflict>,
    /// Paths that should be removed, and stay. They are not in the way of anything. A restore reports them with its
    /// conflicts.
    pub(crate) unmet: Vec<Conflict>,
    /// The same for git's own files, which are reported separately.
    pub(crate) left_to_git: Vec<Conflict>,
    pub(crate) steps: Vec<Step>,
    /// The changes to the user repository.
    pub(crate) git: Option<GitMove>,
    /// The paths that the restore touches, as undo will need them.
    pub(crate) recorded_scope: Scope,
    /// The paths among them that were named, if the others are directories above that had to be created.
    pub(crate) recorded_named: Option<Scope>,
    /// The exact paths that change, if that is less than the scope.
    pub(crate) exact: Option<Vec<WorkspacePath>>,
    /// New contents that no checkpoint holds.
    pub(crate) contents: HashMap<ContentId, Vec<u8>>,
    /// The changed paths whose lines were merged.
    pub merged: Vec<WorkspacePath>,
    /// Files that are changed at the paths to which they were moved.
    pub moved: Vec<Moved>,
    /// The checkpoint that the workspace stands on while the plan is made.
    pub stands_on: Option<CheckpointId>,
    /// The changed paths that come from later checkpoints than the target.
    pub also: Vec<CapturedLater>,
}

/// Returns the part of the workspace that a request concerns: the paths that it names, within the scope of the target.
pub(super) fn effective_scope(workspace: &Workspace, timeline: &Timeline, request: &RestoreRequest) -> Scope {
    let target = timeline.get(&request.target).and_then(TimelineEntry::record);
    let covered = target.as_ref().map(|record| record.scope.clone()).unwrap_or_default();
    let wanted = match request.only {
        Only::State => {
            let mut paths = workspace.settings().state.paths();
            paths.extend(target.iter().flat_map(|record| record.state_files.iter().cloned()));
            narrow(&Scope::of_paths(paths), &request.scope)
        }
        Only::All | Only::Files => request.scope.clone(),
    };
    narrow(&wanted, &covered)
}

/// Returns the intersection of two scopes.
fn narrow(a: &Scope, b: &Scope) -> Scope {
    match (a, b) {
        (Scope::Whole, other) | (other, Scope::Whole) => other.clone(),
        (Scope::Paths(left), Scope::Paths(right)) => {
            let both = left.iter().filter(|path| b.contains(path)).chain(right.iter().filter(|path| a.contains(path)));
            Scope::of_paths(both.cloned().collect())
        }
    }
}

impl RestorePlan {
    /// Records the counts on the span of its operation.
    pub(crate) fn note(&self, span: &Span) {
        Outcome::on(span).count("changes", self.changes.len()).count("conflicts", self.conflicts.len());
    }

    /// Returns the plan of an operation that concerns these checkpoints and no file.
    pub(crate) fn of_no_file(ids: &[CheckpointId]) -> Self {
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        ids.iter().for_each(|id| hasher.update(id.as_bytes()));
        Self {
            hash: format!("{:032x}", hasher.digest128()),
            changes: Vec::new(),
            conflicts: Vec::new(),
            unmet: Vec::new(),
            left_to_git: Vec::new(),
            steps: Vec::new(),
            git: None,
            recorded_scope: Scope::Paths(Vec::new()),
            recorded_named: None,
            exact: None,
            contents: HashMap::new(),
            merged: Vec::new(),
            moved: Vec::new(),
            stands_on: None,
            also: Vec::new(),
        }
    }

    /// Compares the present files with those that the target holds.
    pub(super) fn between(
        workspace: &Workspace,
        store: &Store,
        timeline: &Timeline,
        present: &Scan,
        intent: &Intent,
    ) -> Result<Self> {
        let _phase = phase!("compare");
        let request = &intent.request;
        let unknown = || Error::UnknownCheckpoint { word: request.target.to_string(), nearest: None };
        let target = timeline.get(&request.target).ok_or_else(unknown)?;
        let record = target.record().ok_or_else(unknown)?;
        let snapshot = store.snapshot(&request.target)?;
        let scope = effective_scope(workspace, timeline, request);
        let mut spared = Vec::new();
        if request.only == Only::Files {
            spared = workspace.settings().state.paths();
            spared.extend(record.state_files.iter().cloned());
        }
        let also = Scope::of_paths(request.also.iter().map(|also| also.path.clone()).collect());
        spared.extend(also.paths().unwrap_or_default().iter().cloned());
        let made = intent.made_by.iter().filter(|id| timeline.get(id).is_some());
        let made = made.map(|id| store.snapshot(id)).collect::<Result<_>>()?;
        let mut comparison = RestoreComparison {
            store,
            reader: store.reader(),
            present,
            scope: &scope,
            spared: Scope::of_paths(spared),
            named: intent.named.as_ref(),
            exact: intent.exact.as_ref(),
            left_out: SkippedByCheckpoint::of(store, &request.target)?,
            made,
            also: &also,
            may_remove: record.complete || request.exact,
            is_store_ours: is_ours(store)?,
            permitted: Permitted::of(workspace),
            steps: Vec::new(),
            changes: Vec::new(),
            conflicts: Vec::new(),
            widened: Vec::new(),
            replaced: Vec::new(),
            unmet: Vec::new(),
            left_to_git: Vec::new(),
        };
        if intent.direction == Direction::Forward {
            comparison.refuse_unknown_paths(&request.scope, &snapshot, &request.target)?;
        }
        let git = workspace.plan_git(store, target, intent, &mut comparison.unmet)?;
        comparison.root(&snapshot)?;
        comparison.add_files_of(&request.also, workspace, timeline)?;
        let RestoreComparison {
            mut steps, mut changes, mut conflicts, widened, replaced, unmet, mut left_to_git, ..
        } = comparison;
        steps.sort_by(|a, b| a.path.cmp(&b.path));
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        conflicts.sort_by(|a, b| a.path.cmp(&b.path));
        left_to_git.sort_by(|a, b| a.path.cmp(&b.path));
        let (recorded_scope, recorded_named) = match &scope {
            Scope::Whole => (Scope::Whole, None),
            Scope::Paths(paths) => {
                let with = |paths: &[WorkspacePath], more: &[WorkspacePath]| {
                    Scope::of_paths(paths.iter().chain(more).cloned().collect())
                };
                let was_named = intent.named.as_ref().and_then(Scope::paths);
                let named = was_named.or((!widened.is_empty()).then_some(paths.as_slice()));
                // An entry that a directory above replaced comes back with it.
                (with(paths, &widened), named.map(|named| with(named, &replaced)))
            }
        };
        let hash = hash_of(workspace, intent, &scope, &steps, git.as_ref(), &conflicts);
        let is_changed = |also: &&CapturedLater| changes.binary_search_by(|change| change.path.cmp(&also.path)).is_ok();
        let also = request.also.iter().filter(is_changed).cloned().collect();
        let exact = intent.exact.as_ref().map(ExactPaths::to_vec);
        Ok(Self {
            hash,
            changes,
            conflicts,
            unmet,
            left_to_git,
            steps,
            git,
            recorded_scope,
            recorded_named,
            exact,
            contents: HashMap::new(),
            merged: Vec::new(),
            moved: Vec::new(),
            stands_on: None,
            also,
        })
    }

    /// Counts the lines of the changes.
    pub(super) fn count_lines(&mut self, store: &Store, root: &Path) -> Result<()> {
        let source = LineSource::from_disk_to_store(store, root).with_contents(&self.contents);
        count_lines(&mut self.changes, &source)
    }

    /// Returns the paths that should be removed, and would stay. They are not in the way of anything.
    pub fn stays(&self) -> Vec<Conflict> {
        let mut stays = [self.unmet.as_slice(), &self.left_to_git].concat();
        stays.sort_by(|a, b| a.path.cmp(&b.path));
        stays
    }

    /// Returns the position that the user repository will have, or `None` if it is left alone.
    pub fn git(&self) -> Option<&GitState> {
        self.git.as_ref().map(|git| &git.after)
    }

    pub(crate) fn refuse_if_changed(&self, expected: Option<&str>) -> Result<()> {
        match expected {
            Some(expected) if expected != self.hash => Err(Error::PlanChanged),
            _ => Ok(()),
        }
    }

    pub(super) fn refuse_conflicts(&self, skip: bool) -> Result<()> {
        match self.conflicts.first() {
            Some(first) if !skip => Err(Error::Conflict {
                path: first.path.clone(),
                reason: first.reason.clone(),
                others: self.conflicts.len() - 1,
            }),
            _ => Ok(()),
        }
    }
}

pub(super) fn hash_of(
    workspace: &Workspace,
    intent: &Intent,
    scope: &Scope,
    steps: &[Step],
    git: Option<&GitMove>,
    conflicts: &[Conflict],
) -> String {
    use std::os::unix::ffi::OsStrExt;
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    let mut add = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    let request = &intent.request;
    add(workspace.root().as_os_str().as_bytes());
    add(request.target.as_bytes());
    add(&[request.only as u8, u8::from(request.exact), u8::from(*scope == Scope::Whole)]);
    scope.paths().unwrap_or_default().iter().for_each(|path| add(path.as_bytes()));
    for step in steps {
        add(step.path.as_bytes());
        for side in [&step.old, &step.new] {
            add(&side_bytes(side.as_ref()));
        }
    }
    add(&[u8::from(git.is_some())]);
    for edit in git.iter().flat_map(|git| &git.edits) {
        add(edit.path.as_os_str().as_bytes());
        for side in [&edit.old, &edit.new] {
            add(&[u8::from(side.is_some())]);
            add(side.as_deref().unwrap_or_default());
        }
    }
    for conflict in conflicts {
        add(conflict.path.as_bytes());
        add(conflict.reason.as_bytes());
        conflict.lines.iter().flatten().for_each(|line| add(&line.to_le_bytes()));
    }
    intent.reverted.iter().for_each(|id| add(id.as_bytes()));
    format!("{:032x}", hasher.digest128())
}

fn side_bytes(side: Option<&Side>) -> Vec<u8> {
    match side {
        None => vec![0],
        Some(Side::File { content, mode }) => [&[1][..], content.as_bytes(), &mode.0.to_le_bytes()].concat(),
        Some(Side::Symlink { target }) => [&[2][..], target.as_bytes()].concat(),
        Some(Side::Directory { mode }) => [&[3][..], &mode.0.to_le_bytes()].concat(),
    }
}
