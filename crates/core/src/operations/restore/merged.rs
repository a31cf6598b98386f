//! Plans the restore of a merge: the files on disk become those of a [`MergeResult`].

use std::collections::BTreeSet;

use super::{Intent, Moved, RestorePlan, compare::is_ours, permissions::Permitted, plan::hash_of};
use crate::{
    error::Result,
    model::{Change, Conflict, ContentSink, Directory, Node, Scope, Side, WorkspacePath},
    operations::merge::{MergeResult, Merger, Moves, Overlaps, Stretch, find_moves},
    scan::Scan,
    store::{HashOnly, Snapshot, Step, Store, Timeline},
    workspace::{Surroundings, Workspace},
};

/// The changes that a restore merges into the files on disk.
pub(crate) struct MergeGoal {
    /// The changes, in the order in which they are merged.
    pub(crate) stretches: Vec<Stretch>,
    pub(crate) overlaps: Overlaps,
}

impl MergeGoal {
    fn held(&self) -> Vec<Snapshot> {
        self.stretches.iter().flat_map(|stretch| [stretch.base, stretch.other]).collect()
    }
}

impl Workspace {
    /// Scans the paths of a merge and plans it.
    pub(super) fn plan_merge(
        &self,
        store: &Store,
        timeline: &Timeline,
        intent: &Intent,
        goal: &MergeGoal,
        surroundings: &Surroundings,
        sink: &dyn ContentSink,
    ) -> Result<(Scan, RestorePlan)> {
        let held = goal.held();
        let moves = if self.lacks_files_of(goal) {
            let whole = self.scan_holding(store, timeline, &held, Scope::Whole, surroundings, &HashOnly)?;
            find_moves(self.root(), store, &whole, &goal.stretches)?
        } else {
            Moves::new()
        };
        let mut paths: Vec<WorkspacePath> = moves.values().cloned().collect();
        for stretch in &goal.stretches {
            paths.extend(stretch.scanned(store)?.paths().unwrap_or_default().iter().cloned());
        }
        let scope = Scope::of_paths(paths);
        let present = self.scan_holding(store, timeline, &held, scope, surroundings, sink)?;
        let merger = Merger {
            root: self.root(),
            store,
            present: &present,
            stretches: &goal.stretches,
            moves: &moves,
            overlaps: goal.overlaps,
        };
        let plan = MergedSteps::of(self, store, &present)?.plan(merger.run()?, intent)?;
        Ok((present, plan))
    }

    /// Returns whether a file of the changes is missing on disk: it may have been moved.
    fn lacks_files_of(&self, goal: &MergeGoal) -> bool {
        let changes = goal.stretches.iter().flat_map(|stretch| &stretch.changes);
        let mut files = changes.filter(|change| matches!(change.old, Some(Side::File { .. })));
        files.any(|change| !self.is_on_disk(&change.path))
    }
}

/// The steps that lead from the files on disk to the result of a merge.
struct MergedSteps<'a> {
    workspace: &'a Workspace,
    present: &'a Scan,
    is_store_ours: bool,
    permitted: Permitted<'a>,
    steps: Vec<Step>,
    changes: Vec<Change>,
    conflicts: Vec<Conflict>,
}

impl<'a> MergedSteps<'a> {
    fn of(workspace: &'a Workspace, store: &Store, present: &'a Scan) -> Result<Self> {
        Ok(Self {
            workspace,
            present,
            is_store_ours: is_ours(store)?,
            permitted: Permitted::of(workspace),
            steps: Vec::new(),
            changes: Vec::new(),
            conflicts: Vec::new(),
        })
    }

    fn plan(mut self, result: MergeResult, intent: &Intent) -> Result<RestorePlan> {
        let MergeResult { changed, contents, merged, moved, conflicts } = result;
        self.conflicts = conflicts;
        let filled: BTreeSet<&WorkspacePath> =
            changed.iter().filter(|(_, new)| new.is_some()).map(|(p, _)| p).collect();
        for (path, new) in &changed {
            let is_filled = filled.range(path.join(b"")..).next().is_some_and(|below| below.is_within(path));
            self.path(path, *new, is_filled)?;
        }
        let Self { workspace, steps, changes, mut conflicts, .. } = self;
        conflicts.sort_by(|a, b| a.path.cmp(&b.path));
        let exact: Vec<WorkspacePath> = steps.iter().map(|step| step.path.clone()).collect();
        let recorded_scope = Scope::of_paths(exact.clone());
        // For programs that don't know about exact paths: they leave everything else in these directories alone.
        let named = changes.iter().map(|change| change.path.clone()).collect();
        let hash = hash_of(workspace, intent, &recorded_scope, &steps, None, &conflicts);
        let is_done = |path: &WorkspacePath| exact.binary_search(path).is_ok();
        Ok(RestorePlan {
            hash,
            merged: merged.into_iter().filter(is_done).collect(),
            moved: moved.into_iter().map(|(from, to)| Moved { from, to }).collect(),
            changes,
            conflicts,
            unmet: Vec::new(),
            left_to_git: Vec::new(),
            git: None,
            recorded_scope,
            recorded_named: Some(Scope::of_paths(named)),
            exact: Some(exact),
            steps,
            contents,
            stands_on: None,
            also: Vec::new(),
        })
    }

    /// Adds the step and the change of one path. `is_filled` tells whether the new directory has new entries.
    fn path(&mut self, path: &WorkspacePath, new: Option<Side>, is_filled: bool) -> Result<()> {
        let present = self.present.root.find(path);
        let old = present.and_then(side_of);
        let new = new.map(|new| self.without_foreign_identity(new));
        if old == new {
            return Ok(());
        }
        let in_place = match (present, old, new) {
            (Some(Node::File(file)), Some(old), Some(new)) => {
                file.stamp.links == 1 && !new.is_directory() && old.content() == new.content()
            }
            _ => false,
        };
        let is_mode =
            in_place || old.is_some_and(|old| old.is_directory()) && new.is_some_and(|new| new.is_directory());
        let refused = match is_mode {
            true => self.permitted.refusal_of_mode(path)?,
            false => self.permitted.refusal_of_name(path)?,
        };
        if let Some(why) = refused {
            self.conflicts.push(Conflict::new(path.clone(), why));
            return Ok(());
        }
        self.steps.push(Step { path: path.clone(), old, new, area: 0, in_place });
        self.change(path, present, (old, new), is_filled);
        Ok(())
    }

    /// Adds the change for a step. A directory is a change only if it is empty or its permission bits change.
    fn change(
        &mut self,
        path: &WorkspacePath,
        present: Option<&Node>,
        sides: (Option<Side>, Option<Side>),
        is_filled: bool,
    ) {
        let is_empty = |node: &Node| matches!(node, Node::Directory(directory) if is_empty(directory));
        let (old, new) = match sides {
            (Some(old), Some(new)) if old.is_directory() && new.is_directory() => (Some(old), Some(new)),
            (Some(old), new) if old.is_directory() => (Some(old).filter(|_| present.is_some_and(is_empty)), new),
            (old, Some(new)) if new.is_directory() => (old, Some(new).filter(|_| old.is_none() && !is_filled)),
            sides => sides,
        };
        if old.is_some() || new.is_some() {
            self.changes.push(Change::between(path.clone(), old, new));
        }
    }

    /// Removes the set-user-ID and set-group-ID bits if the store belongs to another user: they are about that user.
    fn without_foreign_identity(&self, side: Side) -> Side {
        match side {
            Side::File { content, mode } if !self.is_store_ours => {
                Side::File { content, mode: mode.without_identity() }
            }
            side => side,
        }
    }
}

/// Returns the side of a node. A directory has one even if all its entries were skipped.
fn side_of(node: &Node) -> Option<Side> {
    match node {
        Node::Directory(directory) => Some(Side::Directory { mode: directory.mode() }),
        node => node.side(),
    }
}

fn is_empty(directory: &Directory) -> bool {
    directory.entries().is_empty()
}
