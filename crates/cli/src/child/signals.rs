//! Holds back the signals that ask this process to end, while it still has work to do.

use std::{
    cell::{Cell, RefCell},
    fs, io,
    os::unix::net::UnixStream,
};

use backtrail::Error;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::{
    consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM},
    iterator::{backend::SignalDelivery, exfiltrator::SignalOnly},
};

use crate::failure::Failure;

/// The signals that users and systems send to end a program.
const ENDING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// Records the signals that ask this process to end. They do not end it any more once this exists.
pub(crate) struct HeldSignals {
    noted: RefCell<SignalDelivery<UnixStream, SignalOnly>>,
    first: Cell<Option<i32>>,
}

impl HeldSignals {
    pub(crate) fn hold() -> Result<Self, Failure> {
        Self::note().map_err(|source| Error::Io { action: "handle", path: "signals".into(), source }.into())
    }

    fn note() -> io::Result<Self> {
        let ignored = ignored_signals();
        // A signal that the parent set to be ignored, as nohup does, is meant to be ignored by our children as well.
        let wanted = ENDING.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0).chain([SIGCHLD]);
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        let noted = SignalDelivery::with_pipe(read, write, SignalOnly, wanted)?;
        Ok(Self { noted: RefCell::new(noted), first: Cell::new(None) })
    }

    /// Returns the ending signals that arrived since the last call.
    pub(crate) fn asked_to_end(&self) -> Vec<i32> {
        let pending = self.noted.borrow_mut().pending();
        let found: Vec<i32> = pending.filter(|signal| ENDING.contains(signal)).collect();
        self.first.set(self.first.get().or(found.first().copied()));
        found
    }

    /// Returns the first ending signal that arrived since the start.
    pub(crate) fn first_heard(&self) -> Option<i32> {
        self.asked_to_end();
        self.first.get()
    }

    /// Waits for a signal, at most this many milliseconds.
    pub(super) fn wait(&self, milliseconds: i64) {
        let noted = self.noted.borrow();
        let mut wanted = [PollFd::new(noted.get_read(), PollFlags::IN)];
        let longest = Timespec { tv_sec: milliseconds / 1000, tv_nsec: (milliseconds % 1000) * 1_000_000 };
        // The caller checks again, whether this was interrupted or not.
        let _ = poll(&mut wanted, Some(&longest));
    }
}

/// Returns one bit for each signal that this process ignores. Returns 0 if the kernel does not tell.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
