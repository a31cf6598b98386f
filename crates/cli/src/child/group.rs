//! The process group of a program: the program and the processes that it started.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// The time that a group gets to end by itself after it was asked to.
pub(super) const GRACE: Duration = Duration::from_secs(3);
/// The time that the kernel gets to end a killed group.
const LAST_MOMENTS: Duration = Duration::from_secs(1);

/// A process group, identified by its leader.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group(pub(super) Pid);

impl Group {
    /// Sends a signal to every process of the group. Fails silently if the group is gone.
    pub(super) fn send(self, signal: Signal) {
        let _ = kill_process_group(self.0, signal);
    }

    /// Asks the group to end. A stopped group is continued, so that it receives the signal.
    pub(super) fn ask_to_end(self) {
        self.send(Signal::TERM);
        self.send(Signal::CONT);
    }

    /// Waits until the group is gone, and kills the remaining processes at the deadline.
    pub(super) fn finish(self, deadline: Instant) {
        if !self.is_gone_by(deadline) {
            self.send(Signal::KILL);
            // A killed process may still be writing. A zombie counts as present until its parent reaps it.
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
