//! What the system refuses when a restore that was interrupted is finished or taken back: it is left, and told, so that the
//! restore comes to its end.

use std::io;

use rustix::io::Errno;

use crate::error::Error;

/// Has somebody tried before?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The files are as the plan saw them a moment ago; what comes out of the workspace is checked afterwards. What is
    /// refused fails.
    First,
    /// Any part may be done, and anybody may have written since: content that is neither old nor new stays. What is
    /// refused is left.
    Again,
}

impl Attempt {
    /// What is to be left is tried once more before: what fails just once is no reason to leave anything.
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

/// Why the system refuses, in words; none where it did not refuse but fail, so that trying later may help.
pub(super) fn refusal(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error().map(Errno::from_raw_os_error)? {
        Errno::XDEV => Some("another file system is mounted there by now"),
        Errno::BUSY => Some("something is mounted on it"),
        Errno::ROFS => Some("it is on a file system that can't be written"),
        Errno::PERM | Errno::ACCESS => Some("the system does not permit it"),
        _ => None,
    }
}

/// The same of an error of the library's.
pub(super) fn refusal_in(error: &Error) -> Option<&'static str> {
    match error {
        Error::Io { source, .. } => refusal(source),
        _ => None,
    }
}
