//! The terminal, which belongs to one process group at a time.

use std::{fs::File, time::Duration};

use nix::sys::signal::{SigSet, Signal as Held};
use rustix::{
    process::{Pid, Signal, getpgrp, kill_current_process_group},
    termios::{tcgetpgrp, tcsetpgrp},
};

/// The controlling terminal of this process.
pub(super) struct Terminal {
    terminal: File,
    own: Pid,
}

impl Terminal {
    /// Returns `None` if there is no terminal.
    pub(super) fn controlling() -> Option<Self> {
        let terminal = File::options().read(true).write(true).open("/dev/tty").ok()?;
        Some(Self { terminal, own: getpgrp() })
    }

    fn is_of(&self, group: Pid) -> bool {
        tcgetpgrp(&self.terminal).is_ok_and(|foreground| foreground == group)
    }

    /// Gives the terminal to a group if it is ours at the moment. Errors are ignored: the group may have ended
    /// meanwhile.
    pub(super) fn lend(&self, group: Pid) {
        if self.is_of(self.own) {
            let _ = tcsetpgrp(&self.terminal, group);
        }
    }

    /// Takes the terminal back from a group that has it. Errors are ignored: the terminal may have been closed.
    pub(super) fn take_back(&self, group: Pid) {
        if self.is_of(group) {
            let _held = HeldTerminalOutput::hold();
            let _ = tcsetpgrp(&self.terminal, self.own);
        }
    }

    /// Stops this process after its group was stopped, so that the shell shows its prompt. Returns when the shell
    /// continues this process.
    pub(super) fn stop_along(&self, group: Pid) {
        self.take_back(group);
        let _ = kill_current_process_group(Signal::TSTP);
        if self.is_of(self.own) {
            self.lend(group);
        } else {
            // There may be no shell to stop for. Then the group asks for the terminal again at once.
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Blocks SIGTTOU, which stops a background process that takes the terminal.
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
