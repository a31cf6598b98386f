//! Repositories inside the workspace that a scan finds. Each of them decides which of its files are tracked.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use bstr::ByteSlice;

use super::UserRepository;

/// A repository that is read on first use. `None` if it can't be read.
type Met = Arc<OnceLock<Option<UserRepository>>>;

/// The repositories that a scan has found so far.
pub(crate) struct NestedRepositories<'a> {
    root: &'a Path,
    /// The repositories by the directory that contains their `.git`.
    met: RwLock<HashMap<Vec<u8>, Met>>,
}

impl<'a> NestedRepositories<'a> {
    pub(crate) fn of(root: &'a Path) -> Self {
        Self { root, met: RwLock::default() }
    }

    /// Records that this directory of the workspace contains `.git`.
    pub(crate) fn meet(&self, path: &[u8]) {
        let mut met = self.met.write().unwrap_or_else(PoisonError::into_inner);
        met.entry(path.to_vec()).or_default();
    }

    /// Returns whether this directory is in one of the repositories.
    pub(crate) fn contain(&self, directory: &[u8]) -> bool {
        let met = self.met.read().unwrap_or_else(PoisonError::into_inner);
        let mut ends = directory.find_iter("/").chain([directory.len()]);
        !met.is_empty() && ends.any(|end| met.contains_key(&directory[..end]))
    }

    /// Returns whether one of the repositories tracks this path or something below it.
    pub(crate) fn is_tracked(&self, path: &[u8]) -> bool {
        path.find_iter("/").any(|end| {
            self.at(&path[..end]).is_some_and(|found| {
                let repository = found.get_or_init(|| UserRepository::at(&self.place_of(&path[..end])).ok().flatten());
                repository.as_ref().is_some_and(|repository| repository.is_tracked(&path[end + 1..]))
            })
        })
    }

    fn at(&self, top: &[u8]) -> Option<Met> {
        let met = self.met.read().unwrap_or_else(PoisonError::into_inner);
        met.get(top).cloned()
    }

    fn place_of(&self, path: &[u8]) -> PathBuf {
        self.root.join(path.to_path_lossy())
    }
}
