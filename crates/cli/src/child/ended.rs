//! How a program ended.

use std::io;

use rustix::process::WaitStatus;

/// Programs such as `timeout` give this where time ran out.
const TIMED_OUT: u8 = 124;
/// Shells give this where there is no such program.
const NOT_STARTED: u8 = 127;
/// Shells add the number of the signal to this.
const SIGNALLED: u8 = 128;

/// How a program ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// It could not be started.
    NotStarted(io::Error),
    /// By itself, with this status.
    Exited(u8),
    /// By this signal.
    Killed(i32),
    /// Nobody can tell.
    Lost(io::Error),
    /// It took too long, and was ended.
    TimedOut,
    /// Somebody asked to stop, by this signal, before it was started.
    Interrupted(i32),
}

impl Ended {
    pub(super) fn of(status: WaitStatus) -> Option<Self> {
        if let Some(signal) = status.terminating_signal() {
            return Some(Self::Killed(signal));
        }
        status.exit_status().map(|code| Self::Exited(code as u8))
    }

    /// Did it do what it was run for?
    pub(crate) fn is_success(&self) -> bool {
        matches!(self, Self::Exited(0))
    }

    /// Was it run at all?
    pub(crate) fn was_run(&self) -> bool {
        !matches!(self, Self::NotStarted(_) | Self::Interrupted(_))
    }

    /// What a shell would give.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::NotStarted(_) => NOT_STARTED,
            Self::Exited(code) => *code,
            Self::Lost(_) => 1,
            Self::Killed(signal) | Self::Interrupted(signal) => SIGNALLED.saturating_add(*signal as u8),
            Self::TimedOut => TIMED_OUT,
        }
    }

    /// What happened, to be put behind the name of the program.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::NotStarted(error) if error.kind() == io::ErrorKind::NotFound => "is not there".into(),
            Self::NotStarted(error) => format!("could not be started: {error}"),
            Self::Exited(code) => format!("exited with {code}"),
            Self::Killed(signal) => format!("was ended by {}", name_of(*signal)),
            Self::Lost(error) => format!("ended, but not to be known how: {error}"),
            Self::TimedOut => "took too long".into(),
            Self::Interrupted(signal) => format!("was not started: {}", name_of(*signal)),
        }
    }
}

fn name_of(signal: i32) -> String {
    signal_hook::low_level::signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}
