//! The bytes of files on their way between the workspace and the store.

use std::{fs::File, io};

use super::ContentId;

/// The bytes of a file on their way to the store.
pub(crate) enum Contents<'a> {
    /// All of them.
    Whole(&'a [u8]),
    /// A file that is too large to hold; it can be read from its start, more than once.
    Stream {
        /// The open file.
        file: &'a File,
        /// How many bytes it should have.
        bytes: u64,
    },
}

/// Where contents go: into a pack, or just through the hash.
pub(crate) trait ContentSink: Sync {
    /// Takes the bytes and names them. None where a stream had another length than announced, or changed in between.
    fn put(&self, contents: Contents<'_>) -> io::Result<Option<ContentId>>;
}

/// A failure to read the user's file, so that it is told from a failure to write the store.
#[derive(Debug)]
pub(crate) struct Unreadable(io::Error);

impl Unreadable {
    /// Marks an error of reading; a shortage of the whole system stays what it is.
    pub(crate) fn mark(error: io::Error) -> io::Error {
        if is_shortage(&error) { error } else { io::Error::other(Self(error)) }
    }

    /// Was this error marked?
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

/// A failure of the place where contents go, so that it is told from a failure of the file that they come from.
#[derive(Debug)]
pub(crate) struct Unwritable(io::Error);

impl Unwritable {
    /// Marks an error of the sink, unless it is one of reading.
    pub(crate) fn mark(error: io::Error) -> io::Error {
        if Unreadable::is_marked(&error) || is_shortage(&error) {
            return error;
        }
        io::Error::new(error.kind(), Self(error))
    }

    /// Was this error marked?
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

/// Has the system run out of something that has nothing to do with this file?
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let shortages = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
    error.raw_os_error().is_some_and(|code| shortages.contains(&Errno::from_raw_os_error(code)))
}
