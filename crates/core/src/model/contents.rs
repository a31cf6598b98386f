//! The bytes of files on their way from the workspace to the store.

use std::{fs::File, io};

use super::ContentId;

/// The bytes of a file on their way to the store.
pub(crate) enum Contents<'a> {
    /// All bytes at once.
    Whole(&'a [u8]),
    /// A file that is too large to hold in memory. It can be read from its start, more than once.
    Stream {
        /// The open file.
        file: &'a File,
        /// The number of bytes that it should have.
        bytes: u64,
    },
}

/// The destination of contents: a pack, or just a hash function.
pub(crate) trait ContentSink: Sync {
    /// Takes the bytes and returns their id. Returns `None` if a stream did not have the expected length, or changed
    /// while it was read.
    fn put(&self, contents: Contents<'_>) -> io::Result<Option<ContentId>>;
}

/// A failure to read the user's file. Distinguishes it from a failure to write the store.
#[derive(Debug)]
pub(crate) struct Unreadable(io::Error);

impl Unreadable {
    /// Marks a read error. A shortage of a system-wide resource is returned unmarked.
    pub(crate) fn mark(error: io::Error) -> io::Error {
        if is_shortage(&error) { error } else { io::Error::other(Self(error)) }
    }

    /// Returns whether this error was marked.
    pub(crate) fn is_marked(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Unreadable {}

/// A failure of the sink. Distinguishes it from a failure to read the file.
#[derive(Debug)]
pub(crate) struct Unwritable(io::Error);

impl Unwritable {
    /// Marks an error of the sink. Read errors and shortages are returned unmarked.
    pub(crate) fn mark(error: io::Error) -> io::Error {
        if Unreadable::is_marked(&error) || is_shortage(&error) {
            return error;
        }
        io::Error::new(error.kind(), Self(error))
    }

    /// Returns whether this error was marked.
    pub(crate) fn is_marked(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }
}

impl std::fmt::Display for Unwritable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Unwritable {}

/// Returns whether the system ran out of a resource, such as memory or file handles, which has nothing to do with this
/// file.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
    error.raw_os_error().is_some_and(|code| shortages.contains(&Errno::from_raw_os_error(code)))
}
