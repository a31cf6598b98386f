//! Serializes installations: each one reads the installed files and receipts, and writes them back with its own
//! changes.

use std::{
    fs::File,
    io,
    path::Path,
    time::{Duration, Instant},
};

use backtrail::app_files;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// Held while an agent's files and the receipts are read and written.
#[derive(Debug)]
pub(crate) struct InstallLock {
    _directory: File,
}

impl InstallLock {
    /// Locks the directory that contains the receipts. Returns `None` if another process holds the lock for longer than
    /// `patience`.
    pub(crate) fn acquire(receipts: &Path, patience: Duration) -> io::Result<Option<Self>> {
        let directory = receipts.parent().ok_or(io::ErrorKind::InvalidInput)?;
        app_files::make_private_directories(directory)?;
        let directory = File::open(directory)?;
        let started = Instant::now();
        loop {
            match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) if started.elapsed() >= patience => return Ok(None),
                Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE.min(patience)),
                Err(Errno::INTR) => {}
                // Continues without a lock if the file system does not support locks: receipts are a convenience.
                Ok(()) | Err(Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP | Errno::BADF) => {
                    return Ok(Some(Self { _directory: directory }));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
