//! The result of a program.

use std::io;

use rustix::process::WaitStatus;

/// The exit status that programs such as `timeout` use for a timeout.
const TIMED_OUT: u8 = 124;
/// The exit status that shells use for a missing program.
const NOT_STARTED: u8 = 127;
/// Shells add the number of the signal to this.
const SIGNALLED: u8 = 128;

/// The result of a program.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The program could not be started.
    NotStarted(io::Error),
    /// The program exited with this status.
    Exited(u8),
    /// This signal killed the program.
    Killed(i32),
    /// The result is unknown.
    Lost(io::Error),
    /// The program was ended because it took too long.
    TimedOut,
    /// The program was not started, because this process received this signal before.
    Interrupted(i32),
}

impl Ended {
    pub(super) fn of(status: WaitStatus) -> Option<Self> {
        if let Some(signal) = status.terminating_signal() {
            return Some(Self::Killed(signal));
        }
        status.exit_status().map(|code| Self::Exited(code as u8))
    }

    /// Returns whether the program succeeded.
    pub(crate) fn is_success(&self) -> bool {
        matches!(self, Self::Exited(0))
    }

    /// Returns whether the program was started.
    pub(crate) fn was_run(&self) -> bool {
        !matches!(self, Self::NotStarted(_) | Self::Interrupted(_))
    }

    /// Returns the exit status that a shell would return.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NotStarted(_) => NOT_STARTED,
            Self::Exited(code) => *code,
            Self::Lost(_) => 1,
            Self::Killed(signal) | Self::Interrupted(signal) => SIGNALLED.saturating_add(*signal as u8),
            Self::TimedOut => TIMED_OUT,
        }
    }

    /// Returns a description that follows the name of the program.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::NotStarted(error) if error.kind() == io::ErrorKind::NotFound => "was not found".into(),
            Self::NotStarted(error) => format!("could not be started: {error}"),
            Self::Exited(code) => format!("exited with {code}"),
            Self::Killed(signal) => format!("was killed by {}", name_of(*signal)),
            Self::Lost(error) => format!("ended with an unknown status: {error}"),
            Self::TimedOut => "took too long".into(),
            Self::Interrupted(signal) => format!("was not started because of {}", name_of(*signal)),
        }
    }
}

fn name_of(signal: i32) -> String {
    signal_hook::low_level::signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}
