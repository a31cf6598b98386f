//! A stretch of the timeline whose changes are merged.

use std::collections::BTreeSet;

use super::{Labels, Purpose};
use crate::{
    error::Result,
    model::{Change, Scope, Side, WorkspacePath},
    store::{Snapshot, Store, StoredNode},
};

/// The changes between two snapshots, as a merge sees them: each leads from the base to the other side.
pub(crate) struct Stretch {
    /// The state after the changes.
    pub(crate) base: Snapshot,
    /// The state before them, which the merge brings back.
    pub(crate) other: Snapshot,
    /// The differences. The old side is that of the base, the new side is the other one.
    pub(crate) changes: Vec<Change>,
    pub(crate) labels: Labels,
    /// The words for conflicts.
    pub(crate) purpose: Purpose,
}

impl Stretch {
    /// Returns the directories that the base has and the other side lacks, deepest first, with their sides.
    pub(super) fn surplus_directories(&self, store: &Store) -> Result<Vec<(WorkspacePath, Side)>> {
        let removals = self.changes.iter().filter(|change| change.new.is_none());
        let mut found = Vec::new();
        for path in with_ancestors(removals).into_iter().rev() {
            let is_directory = |node: &StoredNode| matches!(node, StoredNode::Directory { .. });
            if let Some(StoredNode::Directory { mode, .. }) = store.find(self.base, &path)?
                && !store.find(self.other, &path)?.as_ref().is_some_and(is_directory)
            {
                found.push((path, Side::Directory { mode }));
            }
        }
        Ok(found)
    }

    /// Returns the paths that a scan must read for this merge. Directories that may be removed are read as a whole.
    pub(crate) fn scanned(&self, store: &Store) -> Result<Scope> {
        let mut paths: Vec<WorkspacePath> = self.changes.iter().map(|change| change.path.clone()).collect();
        paths.extend(self.surplus_directories(store)?.into_iter().map(|(path, _)| path));
        Ok(Scope::of_paths(paths))
    }
}

/// Returns the paths of these changes that are directories, and all directories above them, parents first.
fn with_ancestors<'c>(changes: impl Iterator<Item = &'c Change>) -> BTreeSet<WorkspacePath> {
    let mut found = BTreeSet::new();
    for change in changes {
        if change.is_directory() {
            found.insert(change.path.clone());
        }
        found.extend(change.path.ancestors().filter(|above| !above.is_root()));
    }
    found
}
