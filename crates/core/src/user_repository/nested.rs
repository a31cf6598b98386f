//! Repositories inside the workspace, as a scan meets them: what they track is theirs to say.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, PoisonError, RwLock},
};

use bstr::ByteSlice;

use super::UserRepository;

/// A repository that is read when somebody asks; none where it can't be.
type Met = Arc<OnceLock<Option<UserRepository>>>;

/// The repositories that a scan has met so far.
pub(crate) struct NestedRepositories<'a> {
    root: &'a Path,
    /// By the directory that holds their `.git`.
    met: RwLock<HashMap<Vec<u8>, Met>>,
}

impl<'a> NestedRepositories<'a> {
    pub(crate) fn of(root: &'a Path) -> Self {
        Self { root, met: RwLock::default() }
    }

    /// This directory of the workspace has a `.git`.
    pub(crate) fn meet(&self, path: &[u8]) {
        let mut met = self.met.write().unwrap_or_else(PoisonError::into_inner);
        met.entry(path.to_vec()).or_default();
    }

    /// Is this directory one of theirs?
    pub(crate) fn contain(&self, directory: &[u8]) -> bool {
        let met = self.met.read().unwrap_or_else(PoisonError::into_inner);
        let mut ends = directory.find_iter("/").chain([directory.len()]);
        !met.is_empty() && ends.any(|end| met.contains_key(&directory[..end]))
    }

    /// Does one of them track this path, or something below it?
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
