//! Counts the bytes that are read from the store's own files, so that tests can state how much an operation reads.
//!
//! In a normal build nothing is counted. With the feature `crash-points` there is a count for each path.

use std::path::Path;

#[cfg(feature = "crash-points")]
pub use counting::{bytes_read, forget};

/// Notes that bytes were read from a file.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub(crate) fn note(_path: &Path, _bytes: usize) {}

#[cfg(feature = "crash-points")]
pub(crate) fn note(path: &Path, bytes: usize) {
    counting::note(path, bytes);
}

#[cfg(feature = "crash-points")]
mod counting {
    use std::{
        collections::HashMap,
        path::{Path, PathBuf},
        sync::{Mutex, MutexGuard, PoisonError},
    };

    static READ: Mutex<Option<HashMap<PathBuf, u64>>> = Mutex::new(None);

    fn counts() -> MutexGuard<'static, Option<HashMap<PathBuf, u64>>> {
        READ.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(path: &Path, bytes: usize) {
        *counts().get_or_insert_default().entry(path.to_owned()).or_default() += bytes as u64;
    }

    /// Returns the bytes that were read from this file since it was forgotten.
    pub fn bytes_read(path: &Path) -> u64 {
        counts().as_ref().and_then(|counts| counts.get(path).copied()).unwrap_or(0)
    }

    /// Sets the count of this file to zero.
    pub fn forget(path: &Path) {
        counts().get_or_insert_default().remove(path);
    }
}
