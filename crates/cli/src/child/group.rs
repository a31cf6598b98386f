//! The process group of a program: itself, and what it started.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// How long a group may take to end by itself once it was asked to.
pub(super) const GRACE: Duration = Duration::from_secs(3);
/// How long the system may take to end it once it must.
const LAST_MOMENTS: Duration = Duration::from_secs(1);

/// A process group, by its leader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group(pub(super) Pid);

impl Group {
    /// Sends a signal to every process in it. One that is gone needs none.
    pub(super) fn send(self, signal: Signal) {
        let _ = kill_process_group(self.0, signal);
    }

    /// Asks it to end; one that was stopped goes on, to hear it.
    pub(super) fn ask_to_end(self) {
        self.send(Signal::TERM);
        self.send(Signal::CONT);
    }

    /// Waits until nobody is left, and ends who still is at the deadline.
    pub(super) fn finish(self, deadline: Instant) {
        if !self.is_gone_by(deadline) {
            self.send(Signal::KILL);
            // Who is being ended may still write; one that nobody waits for counts as there until somebody does.
            self.is_gone_by(Instant::now() + LAST_MOMENTS);
        }
    }

    fn is_gone_by(self, deadline: Instant) -> bool {
        loop {
            if test_kill_process_group(self.0).is_err() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
