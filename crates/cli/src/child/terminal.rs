//! The terminal, which belongs to one process group at a time.

use std::{fs::File, time::Duration};

use nix::sys::signal::{SigSet, Signal as Held};
use rustix::{
    process::{Pid, Signal, getpgrp, kill_current_process_group},
    termios::{tcgetpgrp, tcsetpgrp},
};

/// The terminal that controls this process.
pub(super) struct Terminal {
    terminal: File,
    own: Pid,
}

impl Terminal {
    /// None where there is no terminal.
    pub(super) fn controlling() -> Option<Self> {
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { terminal, own: getpgrp() })
    }

    fn is_of(&self, group: Pid) -> bool {
        tcgetpgrp(&self.terminal).is_ok_and(|foreground| foreground == group)
    }

    /// Lets a group have it, where it is ours just now. A group that ended meanwhile needs none.
    pub(super) fn lend(&self, group: Pid) {
        if self.is_of(self.own) {
            let _ = tcsetpgrp(&self.terminal, group);
        }
    }

    /// Takes it back from a group that has it; a terminal that was closed is nobody's.
    pub(super) fn take_back(&self, group: Pid) {
        if self.is_of(group) {
            let _held = HeldTerminalOutput::hold();
            let _ = tcsetpgrp(&self.terminal, self.own);
        }
    }

    /// The group was stopped: stops this process likewise, so that the shell has its prompt. Returns when the shell has it
    /// go on.
    pub(super) fn stop_along(&self, group: Pid) {
        self.take_back(group);
        let _ = kill_current_process_group(Signal::TSTP);
        if self.is_of(self.own) {
            self.lend(group);
        } else {
            // Nobody may be there to stop for, and the group asks for the terminal again at once.
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Who takes the terminal from the background is stopped by this signal, unless it is held back.
struct HeldTerminalOutput(Option<SigSet>);

impl HeldTerminalOutput {
    fn hold() -> Self {
        let held: SigSet = Held::SIGTTOU.into();
        let before = SigSet::thread_get_mask().and_then(|before| held.thread_block().map(|()| before));
        Self(before.ok())
    }
}

impl Drop for HeldTerminalOutput {
    fn drop(&mut self) {
        if let Some(before) = self.0 {
            let _ = before.thread_set_mask();
        }
    }
}
