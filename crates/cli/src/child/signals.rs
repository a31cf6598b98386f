//! Signals that ask a process to end, noted while something must still be done.

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

/// What people and systems send to end a program.
const ENDING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];

/// From here on such signals end this process no more: they are noted, for somebody to look at.
pub(crate) struct HeldSignals {
    noted: RefCell<SignalDelivery<UnixStream, SignalOnly>>,
    first: Cell<Option<i32>>,
}

impl HeldSignals {
    pub(crate) fn hold() -> Result<Self, Failure> {
        Self::note().map_err(|source| Error::Io { action: "take over", path: "signals".into(), source }.into())
    }

    fn note() -> io::Result<Self> {
        let ignored = ignored_signals();
        // Whoever had one ignored, such as nohup, meant the programs that are started from here, too.
        let wanted = ENDING.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0).chain([SIGCHLD]);
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        let noted = SignalDelivery::with_pipe(read, write, SignalOnly, wanted)?;
        Ok(Self { noted: RefCell::new(noted), first: Cell::new(None) })
    }

    /// The signals that asked to end since the last look.
    pub(crate) fn asked_to_end(&self) -> Vec<i32> {
        let pending = self.noted.borrow_mut().pending();
        let found: Vec<i32> = pending.filter(|signal| ENDING.contains(signal)).collect();
        self.first.set(self.first.get().or(found.first().copied()));
        found
    }

    /// The first signal that asked to end, ever.
    pub(crate) fn first_heard(&self) -> Option<i32> {
        self.asked_to_end();
        self.first.get()
    }

    /// Waits for a signal, but no longer than so many milliseconds.
    pub(super) fn wait(&self, milliseconds: i64) {
        let noted = self.noted.borrow();
        let mut wanted = [PollFd::new(noted.get_read(), PollFlags::IN)];
        let longest = Timespec { tv_sec: milliseconds / 1000, tv_nsec: (milliseconds % 1000) * 1_000_000 };
        // Interrupted or not, the caller looks again.
        let _ = poll(&mut wanted, Some(&longest));
    }
}

/// One bit for each signal that this process ignores, as the system tells it; none where it does not.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
