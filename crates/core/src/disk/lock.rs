//! A lock that the kernel releases when the process ends, so that no stale lock is ever left behind.

use std::{
    fs::File,
    io,
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    fs::{CWD, FlockOperation, Mode, OFlags, flock},
    io::Errno,
};

/// An exclusive lock. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
}

/// The reason why a lock was not acquired.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Another process holds the lock and did not release it in time.
    Busy,
    /// The file system does not support locks.
    Unsupported,
    /// Any other error.
    Io(io::Error),
}

impl FileLock {
    /// Waits at most `patience` for the lock on this file. Creates the file if it is missing.
    pub(crate) fn acquire(path: &Path, patience: Duration) -> Result<Self, LockError> {
        Self::acquire_opened(path, open_or_make, patience)
    }

    /// Like [`Self::acquire`], but locks an existing directory, which needs no lock file.
    pub(crate) fn acquire_directory(path: &Path, patience: Duration) -> Result<Self, LockError> {
        Self::acquire_opened(path, open_directory, patience)
    }

    fn acquire_opened(path: &Path, open: fn(&Path) -> io::Result<File>, patience: Duration) -> Result<Self, LockError> {
        let deadline = Instant::now().checked_add(patience);
        let mut pause = Duration::from_micros(500);
        loop {
            let file = open(path).map_err(LockError::Io)?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // Another process may have removed the store while this one waited. A lock on a removed file protects
                // nothing.
                Ok(()) if is_still_at(&file, path) => return Ok(Self { file }),
                Ok(()) => continue,
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(rustix::io::Errno::INTR) => continue,
                // `BADF`: network file systems lock only what is open for writing, and a directory never is.
                Err(
                    rustix::io::Errno::NOLCK
                    | rustix::io::Errno::NOSYS
                    | rustix::io::Errno::OPNOTSUPP
                    | rustix::io::Errno::BADF,
                ) => return Err(LockError::Unsupported),
                Err(error) => return Err(LockError::Io(error.into())),
            }
            let left = deadline.map_or(patience, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(LockError::Busy);
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(10));
        }
    }
}

fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::openat(CWD, path, flags, Mode::empty())?.into())
}

/// Opens the file. Creates it if it is missing.
pub(crate) fn open_or_make(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    loop {
        match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
            Err(Errno::NOENT) => {}
            opened => return Ok(opened?.into()),
        }
        match rustix::fs::openat(CWD, path, flags | OFlags::CREATE | OFlags::EXCL, Mode::from_raw_mode(0o600)) {
            // Another process created it first.
            Err(Errno::EXIST) => {}
            made => {
                let file = File::from(made?);
                super::private::settle_in(&file, path.parent())?;
                return Ok(file);
            }
        }
    }
}

fn is_still_at(file: &File, path: &Path) -> bool {
    match (rustix::fs::fstat(file), rustix::fs::lstat(path)) {
        (Ok(held), Ok(named)) => (held.st_dev, held.st_ino) == (named.st_dev, named.st_ino),
        _ => false,
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // If this fails, closing the file releases the lock.
        flock(&self.file, FlockOperation::Unlock).ok();
    }
}
