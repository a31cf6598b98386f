//! The facts from outside the scan that decide whether a path is captured although a rule excludes it.

use crate::model::{Stamp, WorkspacePath};

/// Decides which paths are captured although a rule excludes them. The scan asks from several threads at once.
pub(crate) trait CapturePolicy: Sync {
    /// Returns the paths that the caller named. A directory includes everything below it.
    fn named(&self) -> &[WorkspacePath];

    /// Returns whether the user repository, or a repository inside the workspace, tracks this path or something below
    /// it.
    fn is_tracked(&self, path: &[u8]) -> bool;

    /// Records a directory that is the top of a repository inside the workspace. The scan calls this before it asks
    /// [`Self::is_tracked`] for paths below it.
    fn meet_repository(&self, path: &[u8]);

    /// Returns whether a repository borrows its objects from this directory.
    fn is_borrowed_from(&self, directory: &Stamp) -> bool;

    /// Returns whether the index that decides about the names in this directory is the one that the cache was made
    /// with.
    fn index_is_cached(&self, directory: &[u8]) -> bool;

    /// Returns whether the current checkpoint of the workspace, `@`, holds this path.
    fn is_held(&self, path: &[u8]) -> bool;

    /// Returns whether a checkpoint that is being restored holds this path. The safety checkpoint then needs it, even
    /// if the owner excluded it.
    fn is_restored(&self, path: &[u8]) -> bool;

    /// Returns the size of the largest file that `@` or a checkpoint that is being restored holds at this path.
    fn held_size(&self, path: &[u8]) -> Option<u64>;

    /// Returns the checkpoints that the cached verdicts were made for.
    fn cached_verdicts(&self) -> CachedVerdicts;
}

/// The validity of the verdicts in the stat cache about paths that checkpoints hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CachedVerdicts {
    /// They were made for `@`, and no other checkpoint counts: a name that was skipped is not held, and a name that was
    /// captured because it is held still is.
    Final,
    /// They were made for `@`, but another checkpoint counts as well.
    OfCurrent,
    /// They were made for another checkpoint.
    Stale,
}
