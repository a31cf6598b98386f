//! What a program says, kept while it is passed on.

use std::{
    io::{self, Read},
    process::ChildStdout,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

/// How long what the program started may go on saying something once it ended itself.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// Takes each piece of what a program says.
pub(crate) type Listener = Box<dyn FnMut(&[u8]) -> io::Result<()> + Send>;

/// A thread that listens to a program.
pub(super) struct Capture {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: Receiver<()>,
}

impl Capture {
    /// Passes everything on, and keeps the first `limit` bytes.
    pub(super) fn start(mut said: ChildStdout, limit: usize, mut listener: Listener) -> Self {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (sender, ended) = channel();
        let shared = Arc::clone(&kept);
        std::thread::spawn(move || {
            let mut piece = [0; 8192];
            // A program whose reader is gone is told so by the system; here nobody is left to tell.
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

    /// What was said, when the program has ended.
    pub(super) fn finish(self) -> Vec<u8> {
        let _ = self.ended.recv_timeout(AFTERWARDS);
        std::mem::take(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
