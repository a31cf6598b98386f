//! Compares checkpoints.

use std::cell::OnceCell;

use super::{Tree, compare_within};
use crate::{
    error::Result,
    model::{Change, ChangeStatus, CheckpointId, Scope},
    store::{Record, Snapshot, Store, Timeline},
};

/// The checkpoints of a store that are to be compared. The timeline is read only if a simple lookup is not enough.
pub(crate) struct Checkpoints<'s> {
    store: &'s Store,
    timeline: OnceCell<Timeline>,
}

/// A checkpoint that exists.
pub(crate) struct Compared {
    id: CheckpointId,
    snapshot: Snapshot,
    record: Record,
}

impl<'s> Checkpoints<'s> {
    pub(crate) fn of(store: &'s Store) -> Self {
        Self { store, timeline: OnceCell::new() }
    }

    /// Like [`Self::of`], with a timeline that was read already.
    pub(crate) fn on(store: &'s Store, timeline: Timeline) -> Self {
        Self { store, timeline: OnceCell::from(timeline) }
    }

    fn timeline(&self) -> Result<&Timeline> {
        match self.timeline.get() {
            Some(timeline) => Ok(timeline),
            None => {
                let timeline = self.store.timeline()?;
                Ok(self.timeline.get_or_init(|| timeline))
            }
        }
    }

    pub(crate) fn get(&self, id: &CheckpointId) -> Result<Compared> {
        if !self.store.is_plainly_there(id) {
            self.timeline()?.require(id)?;
        }
        let (snapshot, record) = self.store.snapshot_and_record(id)?;
        Ok(Compared { id: *id, snapshot, record })
    }

    /// Returns the checkpoint that it followed, or the nearest one before that which still exists.
    fn before(&self, checkpoint: &Compared) -> Result<Option<Compared>> {
        let Some(parent) = checkpoint.record.parent else { return Ok(None) };
        if self.store.is_plainly_there(&parent) {
            return self.get(&parent).map(Some);
        }
        self.timeline()?.nearest(parent).map(|entry| self.get(&entry.id)).transpose()
    }

    /// Returns the changes of a checkpoint within a scope, with the checkpoint that it is compared with. Lines are not
    /// counted yet.
    pub(crate) fn changes_of(
        &self,
        checkpoint: &Compared,
        scope: &Scope,
    ) -> Result<(Option<CheckpointId>, Vec<Change>)> {
        let before = self.before(checkpoint)?;
        let mut changes = self.changes_between(before.as_ref(), checkpoint, scope)?;
        let parent = before.map(|before| before.id);
        if parent != checkpoint.record.parent {
            // The previous checkpoint was deleted: an older one replaces it, and only the paths that this checkpoint
            // changed count.
            let entry = self.timeline()?.require(&checkpoint.id)?;
            let changed = self.store.checkpoint(entry)?.files_changed;
            changes.retain(|change| changed.contains(&change.path));
        }
        Ok((parent, changes))
    }

    /// Returns the differences between two checkpoints within a scope. A path that the newer one skipped does not count
    /// as deleted.
    pub(crate) fn changes_between(&self, from: Option<&Compared>, to: &Compared, scope: &Scope) -> Result<Vec<Change>> {
        let store = self.store;
        let old = from.map_or(Tree::Empty, |from| Tree::Stored(from.snapshot));
        let mut changes = compare_within(scope, Some(store), old, Tree::Stored(to.snapshot))?.changes;
        let is_deletion = |change: &Change| change.status == ChangeStatus::Deleted;
        if changes.iter().any(is_deletion) {
            let skipped = store.state(&to.id)?.skipped(&store.reader()).map_err(|problem| store.damaged(problem))?;
            let left_out = Scope::of_paths(skipped.into_iter().map(|skipped| skipped.path).collect());
            changes.retain(|change| !(is_deletion(change) && left_out.contains(&change.path)));
        }
        for side in from.into_iter().chain([to]) {
            let covered = &side.record.scope;
            changes.retain(|change| scope.contains(&change.path) && covered.contains(&change.path));
        }
        Ok(changes)
    }
}
