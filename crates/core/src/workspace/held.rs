//! Paths that checkpoints hold.
//!
//! A path that the checkpoint under the workspace holds stays captured, whatever rule appears later. A restore also
//! captures what its target holds, so that the safety checkpoint has it.

use std::{
    collections::HashMap,
    sync::{Mutex, OnceLock, PoisonError},
};

use crate::{
    error::Result,
    model::{CheckpointId, Dropped, Skipped, WorkspacePath},
    scan::{CachedVerdicts, StatCache},
    store::{Snapshot, Store, StoredEntry, StoredNode, Timeline, TimelineEntry},
};

/// The checkpoints whose paths stay captured during a scan.
#[derive(Default)]
pub(crate) struct Holders<'s> {
    /// The checkpoint that the workspace stands on.
    current: Option<(CheckpointId, HeldPaths<'s>)>,
    dropped: Vec<DroppedPath<'s>>,
    /// Checkpoints that a restore is about.
    others: Vec<HeldPaths<'s>>,
}

/// A path that is not captured at the moment, and is captured again as soon as that is possible.
struct DroppedPath<'s> {
    path: WorkspacePath,
    /// The paths that the last checkpoint with it held. `None` if that checkpoint was deleted: then everything below
    /// counts.
    held: Option<HeldPaths<'s>>,
}

impl<'s> Holders<'s> {
    /// Returns the paths that the checkpoint under the workspace holds, and the paths that it dropped.
    pub(crate) fn of_current(store: &'s Store, timeline: &Timeline) -> Result<Self> {
        let Some(entry) = timeline.current() else { return Ok(Self::default()) };
        let dropped = dropped_by(store, entry)?.into_iter().map(|dropped| DroppedPath {
            held: timeline.get(&dropped.held_by).map(|entry| HeldPaths::of_checkpoint(store, entry.id)),
            path: dropped.path,
        });
        Ok(Self {
            current: Some((entry.id, HeldPaths::of_checkpoint(store, entry.id))),
            dropped: dropped.collect(),
            others: Vec::new(),
        })
    }

    /// Adds the paths of a checkpoint that a restore is about.
    pub(crate) fn and(mut self, other: HeldPaths<'s>) -> Self {
        self.others.push(other);
        self
    }

    /// Returns whether the checkpoint that the workspace stands on holds this path, or dropped it.
    pub(crate) fn current_contains(&self, path: &[u8]) -> bool {
        self.current.as_ref().is_some_and(|(_, held)| held.contains(path)) || self.have_dropped(path)
    }

    /// Returns whether one of the checkpoints that a restore is about holds this path.
    pub(crate) fn others_contain(&self, path: &[u8]) -> bool {
        self.others.iter().any(|held| held.contains(path))
    }

    /// Returns the size of the largest file that any of these checkpoints holds at this path.
    pub(crate) fn size(&self, path: &[u8]) -> Option<u64> {
        let current = self.current.iter().map(|(_, held)| held);
        current.chain(&self.others).filter_map(|held| held.size(path)).max()
    }

    /// Returns how far the verdicts in a stat cache account for these checkpoints.
    pub(crate) fn cached_verdicts(&self, cache: Option<&StatCache>) -> CachedVerdicts {
        let current = self.current.as_ref().map(|(id, _)| *id);
        let is_of_current = cache.is_some_and(|cache| Some(cache.base().checkpoint) == current);
        match (is_of_current, self.others.is_empty()) {
            (true, true) => CachedVerdicts::Final,
            (true, false) => CachedVerdicts::OfCurrent,
            (false, _) => CachedVerdicts::Stale,
        }
    }

    fn have_dropped(&self, path: &[u8]) -> bool {
        if self.dropped.is_empty() {
            return false;
        }
        let Ok(here) = WorkspacePath::new(path) else { return false };
        self.dropped.iter().any(|dropped| {
            dropped.path.is_within(&here)
                || here.is_within(&dropped.path) && dropped.held.as_ref().is_none_or(|held| held.contains(path))
        })
    }
}

/// Returns the paths that a checkpoint, or one before it, dropped and that are not captured again since.
pub(crate) fn dropped_by(store: &Store, entry: &TimelineEntry) -> Result<Vec<Dropped>> {
    if entry.record().is_none_or(|record| record.unprotected == 0) {
        return Ok(Vec::new());
    }
    let read = || store.state(&entry.id)?.dropped(&store.reader()).map_err(|problem| store.damaged(problem));
    match read() {
        // Damage fails the first attempt to save. The second one distrusts the store, and continues without the parts
        // that it can't read.
        Err(_) if store.is_distrusted() => Ok(Vec::new()),
        read => read,
    }
}

/// Returns the skipped paths that a checkpoint holds.
pub(crate) fn held_among(store: &Store, id: &CheckpointId, skipped: &[Skipped]) -> Result<Vec<Skipped>> {
    if skipped.is_empty() {
        return Ok(Vec::new());
    }
    let held = HeldPaths::of(store, store.snapshot(id)?);
    Ok(skipped.iter().filter(|skipped| held.contains(skipped.path.as_bytes())).cloned().collect())
}

/// The paths that one snapshot holds, looked up on demand.
pub(crate) struct HeldPaths<'s> {
    store: &'s Store,
    id: Option<CheckpointId>,
    snapshot: OnceLock<Option<Snapshot>>,
    listed: Mutex<HashMap<Vec<u8>, Option<Vec<StoredEntry>>>>,
}

impl<'s> HeldPaths<'s> {
    pub(crate) fn of(store: &'s Store, snapshot: Snapshot) -> Self {
        Self { store, id: None, snapshot: OnceLock::from(Some(snapshot)), listed: Mutex::default() }
    }

    /// Like [`Self::of`], but reads nothing before the first lookup: most scans have none.
    pub(crate) fn of_checkpoint(store: &'s Store, id: CheckpointId) -> Self {
        Self { store, id: Some(id), snapshot: OnceLock::new(), listed: Mutex::default() }
    }

    /// Returns whether it holds a file, a symlink or a directory at this path. A part that can't be read counts as not
    /// held: the operation that needs the bytes reports the damage.
    pub(crate) fn contains(&self, path: &[u8]) -> bool {
        self.find(path, |_| ()).is_some()
    }

    /// Returns the size of the file that it holds at this path.
    pub(crate) fn size(&self, path: &[u8]) -> Option<u64> {
        let content = self.find(path, |node| match node {
            StoredNode::File { content, .. } => Some(*content),
            _ => None,
        })??;
        self.store.content_size(&self.store.reader(), &content).ok()
    }

    fn find<T>(&self, path: &[u8], look: impl Fn(&StoredNode) -> T) -> Option<T> {
        let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&path[..slash], &path[slash + 1..]),
            None => (&[][..], path),
        };
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = listed.entry(parent.to_vec()).or_insert_with(|| self.list(parent));
        entries.as_ref()?.iter().find(|entry| entry.name == name).map(|entry| look(&entry.node))
    }

    fn list(&self, directory: &[u8]) -> Option<Vec<StoredEntry>> {
        let path = WorkspacePath::new(directory).ok()?;
        match self.store.find(self.snapshot()?, &path).ok()?? {
            StoredNode::Directory { snapshot, .. } => self.store.list(&self.store.reader(), &snapshot).ok(),
            _ => None,
        }
    }

    fn snapshot(&self) -> Option<Snapshot> {
        *self.snapshot.get_or_init(|| self.store.snapshot(self.id.as_ref()?).ok())
    }
}
