//! One of the store's own files, open for reading parts of it.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use super::{private, read_counts, stamp_of};
use crate::model::Stamp;

/// An open file of a store. It stays the same file if another process replaces the one at its path.
#[derive(Debug)]
pub(crate) struct StoreFile {
    file: File,
    path: PathBuf,
}

impl StoreFile {
    /// Opens a file. Returns `None` if it does not exist.
    pub(crate) fn open(path: &Path) -> io::Result<Option<Self>> {
        match File::open(path) {
            Ok(file) => Ok(Some(Self { file, path: path.to_owned() })),
            Err(error) if private::is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the stamp of the open file.
    pub(crate) fn stamp(&self) -> io::Result<Stamp> {
        Ok(stamp_of(&rustix::fs::fstat(&self.file)?))
    }

    /// Returns `length` bytes at this offset. Returns `None` if the file ends earlier.
    pub(crate) fn read_at(&self, offset: u64, length: usize) -> io::Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; length];
        match self.file.read_exact_at(&mut bytes, offset) {
            Ok(()) => {
                read_counts::note(&self.path, length);
                Ok(Some(bytes))
            }
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the bytes from this offset to the present end of the file.
    pub(crate) fn read_from(&self, offset: u64) -> io::Result<Vec<u8>> {
        let length = self.stamp()?.size.saturating_sub(offset);
        let length = usize::try_from(length).map_err(io::Error::other)?;
        // A file that shrinks at this moment is read as empty. Nothing shrinks the store's files.
        Ok(self.read_at(offset, length)?.unwrap_or_default())
    }
}
