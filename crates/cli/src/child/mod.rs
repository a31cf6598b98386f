//! Programs that the user asked for, run in the foreground.
//!
//! Each one has a process group of its own, so that the whole group can be ended, and has the terminal while it runs.
//! Signals that ask this process to end are passed on to the group: later work, such as a rollback, is still done.

mod capture;
mod ended;
mod group;
mod run;
mod signals;
mod terminal;

pub(crate) use ended::Ended;
pub(crate) use run::{Limit, by_shell, run, run_listening};
pub(crate) use signals::HeldSignals;
