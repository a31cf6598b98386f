//! Open stores that a process with many workspaces keeps, so that asking one again costs next to nothing.

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

/// The objects of the stores that were read last, at most so many. Workspaces that are given the same one share it.
#[derive(Debug)]
pub struct OpenStores {
    limit: usize,
    /// The one that was used last stands at the end.
    kept: Mutex<Vec<Kept>>,
    opened: AtomicU64,
}

#[derive(Debug)]
struct Kept {
    directory: PathBuf,
    /// How the directory of packs was when they were opened: any change, and they are opened anew.
    packs: Option<Stamp>,
    objects: Objects,
}

impl OpenStores {
    /// Keeps at most `limit` stores open; none at all with 0.
    pub fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Self { limit, kept: Mutex::default(), opened: AtomicU64::new(0) }
    }

    /// How many are open.
    pub fn count(&self) -> usize {
        self.kept().len()
    }

    /// How often one had to be opened.
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
        let mut kept = self.kept();
        kept.push(Kept { directory: layout.root().to_owned(), packs, objects: objects.clone() });
        let surplus = kept.len().saturating_sub(self.limit);
        kept.drain(..surplus);
        Ok(objects)
    }

    /// The kept one, moved to the end; one that is out of date is dropped.
    fn take(&self, directory: &Path, packs: Option<Stamp>) -> Option<Objects> {
        let mut kept = self.kept();
        let position = kept.iter().position(|kept| kept.directory == directory)?;
        let found = kept.remove(position);
        if packs.is_none() || found.packs != packs {
            return None;
        }
        let objects = found.objects.clone();
        kept.push(found);
        Some(objects)
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
