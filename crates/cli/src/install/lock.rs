//! One installation at a time: each reads what is installed, and writes it back with its own.

use std::{
    fs::File,
    io,
    path::Path,
    time::{Duration, Instant},
};

use backtrail::own_files;
use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

/// How long to wait before the next try.
const PAUSE: Duration = Duration::from_millis(20);

/// Held while an agent's files and the receipts are read and written.
#[derive(Debug)]
pub(crate) struct InstallLock {
    _directory: File,
}

impl InstallLock {
    /// Waits for it, at the directory in which this file lies; none where another process keeps it for longer.
    pub(crate) fn acquire(receipts: &Path, patience: Duration) -> io::Result<Option<Self>> {
        let directory = receipts.parent().ok_or(io::ErrorKind::InvalidInput)?;
        own_files::make_private_directories(directory)?;
        let directory = File::open(directory)?;
        let started = Instant::now();
        loop {
            match flock(&directory, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) if started.elapsed() >= patience => return Ok(None),
                Err(Errno::WOULDBLOCK) => std::thread::sleep(PAUSE.min(patience)),
                Err(Errno::INTR) => {}
                // Where there are no locks it goes without: a receipt is a convenience.
                Ok(()) | Err(Errno::NOLCK | Errno::NOSYS | Errno::OPNOTSUPP | Errno::BADF) => {
                    return Ok(Some(Self { _directory: directory }));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}
