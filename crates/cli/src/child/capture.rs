//! Captures the output of a program while it is passed on.

use std::{
    io::{self, Read},
    process::ChildStdout,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

/// The time that other processes with the same stdout get after the program itself has ended.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// Receives each chunk of a program's output.
pub(crate) type Listener = Box<dyn FnMut(&[u8]) -> io::Result<()> + Send>;

/// A thread that reads a program's output.
pub(super) struct Capture {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Capture {
    /// Passes all output on, and stores the first `limit` bytes.
    pub(super) fn start(mut said: ChildStdout, limit: usize, mut listener: Listener) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (sender, ended) = channel();
        let shared = Arc::clone(&kept);
        std::thread::spawn(move || {
            let mut piece = [0; 8192];
            // Errors of the listener are ignored: there is no process left to report them to, and the kernel tells a
            // program whose reader is gone.
            while let Ok(count @ 1..) = said.read(&mut piece) {
                let mut kept = shared.lock().unwrap_or_else(PoisonError::into_inner);
                let room = limit.saturating_sub(kept.len()).min(count);
                kept.extend_from_slice(&piece[..room]);
                drop(kept);
                drop(listener(&piece[..count]));
            }
            let _ = sender.send(());
        });
        Self { kept, ended }
    }

    /// Returns the stored output after the program has ended.
    pub(super) fn finish(self) -> Vec<u8> {
        let _ = self.ended.recv_timeout(AFTERWARDS);
        std::mem::take(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
