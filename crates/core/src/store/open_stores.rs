//! Keeps stores open for a process with many workspaces, so that using one again costs next to nothing.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{Layout, objects::Objects};
use crate::{disk, model::Stamp};

/// A cache of open stores. It keeps those that were used last, up to a limit. Workspaces that are given the same
/// `OpenStores` share it.
#[derive(Debug)]
pub struct OpenStores {
    limit: usize,
    /// The store that was used last is at the end.
    kept: Mutex<Vec<OpenStore>>,
    opened: AtomicU64,
}

#[derive(Debug)]
struct OpenStore {
    directory: PathBuf,
    /// The stamp of the directory of packs when the store was opened. After any change the store is opened again.
    packs: Option<Stamp>,
    objects: Objects,
}

impl OpenStores {
    /// Creates a cache that keeps at most `limit` stores open. With 0 it keeps none.
    pub fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Self { limit, kept: Mutex::default(), opened: AtomicU64::new(0) }
    }

    /// Returns the number of open stores.
    pub fn count(&self) -> usize {
        self.lock().len()
    }

    /// Returns the number of times that a store had to be opened.
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    pub(super) fn objects(&self, layout: &Layout) -> io::Result<Objects> {
        let packs = disk::stamp_following(&layout.packs())?;
        if let Some(objects) = self.take(layout.root(), packs) {
            return Ok(objects);
        }
        let objects = Objects::at(&layout.objects())?;
        self.opened.fetch_add(1, Ordering::Relaxed);
        let mut kept = self.lock();
        kept.push(OpenStore { directory: layout.root().to_owned(), packs, objects: objects.clone() });
        let surplus = kept.len().saturating_sub(self.limit);
        kept.drain(..surplus);
        Ok(objects)
    }

    /// Returns the objects of a cached store, and moves the store to the end. Drops a store that is out of date and
    /// returns `None`.
    fn take(&self, directory: &Path, packs: Option<Stamp>) -> Option<Objects> {
        let mut kept = self.lock();
        let position = kept.iter().position(|kept| kept.directory == directory)?;
        let found = kept.remove(position);
        if packs.is_none() || found.packs != packs {
            return None;
        }
        let objects = found.objects.clone();
        kept.push(found);
        Some(objects)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<OpenStore>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
