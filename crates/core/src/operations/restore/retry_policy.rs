//! Handles refusals of the system when an interrupted restore is finished or taken back. The refused part is skipped
//! and reported, so that the restore comes to an end.

use std::io;

use rustix::io::Errno;

use crate::error::Error;

/// Tells whether the restore was attempted before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The files are as the plan saw them a moment ago. Whatever comes out of the workspace is checked afterwards. A
    /// refusal is an error.
    First,
    /// Any part may be done already, and other processes may have written since: content that is neither old nor new
    /// stays. A refused part is skipped.
    Again,
}

impl Attempt {
    /// Retries a refused action once before it is skipped: a single failure is no reason to skip anything.
    pub(super) fn insist<T, E>(
        self,
        act: impl Fn() -> Result<T, E>,
        refused: impl FnOnce(&E) -> Option<&'static str>,
    ) -> Result<T, E> {
        match act() {
            Err(error) if self == Self::Again && refused(&error).is_some() => act(),
            done => done,
        }
    }
}

/// Returns why the system refuses, in words. Returns `None` if it did not refuse but failed, so that a later retry may
/// help.
pub(super) fn refusal(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error().map(Errno::from_raw_os_error)? {
        Errno::XDEV => Some("another file system is mounted there now"),
        Errno::BUSY => Some("a file system is mounted on it"),
        Errno::ROFS => Some("it is on a read-only file system"),
        Errno::PERM | Errno::ACCESS => Some("permission denied"),
        _ => None,
    }
}

/// Like [`refusal`], for an error of the library.
pub(super) fn refusal_in(error: &Error) -> Option<&'static str> {
    match error {
        Error::Io { source, .. } | Error::StagingArea { source, .. } => refusal(source),
        _ => None,
    }
}
