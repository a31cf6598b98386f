//! Shows and records what the program does: on stderr, as far as the user asks for it, and in a log file.
//!
//! The library's operations and their phases are `tracing` spans. Spans and events of other crates are ignored: they may
//! hold the messages of a client.

mod command_log;
mod level;

use tracing_subscriber::{
    Layer, Registry,
    filter::{LevelFilter, Targets},
    layer::SubscriberExt,
};

pub(crate) use self::{
    command_log::{CommandLog, LogEntry, command_failed},
    level::LogLevel,
};
use crate::output::{WhenFull, log_layer};

/// The start of the targets of this program's own crates.
const OWN_TARGETS: &str = "backtrail";

/// The output on stderr, and its form.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stderr {
    pub(crate) level: LogLevel,
    pub(crate) when_full: WhenFull,
}

/// Runs `run`. Prints its spans and events to `stderr`, and records its operations in `file`. Without both, nothing is
/// observed.
pub(crate) fn during<T>(stderr: Option<Stderr>, file: Option<CommandLog>, run: impl FnOnce() -> T) -> T {
    if stderr.is_none() && file.is_none() {
        return run();
    }
    if let Some(file) = file.as_ref().filter(|_| cfg!(panic = "abort")) {
        file.record_panics();
    }
    let own = |level: LevelFilter| Targets::new().with_target(OWN_TARGETS, level);
    let stderr = stderr.map(|stderr| log_layer(stderr.when_full).with_filter(own(stderr.level.into())));
    let file = file.map(|file| file.with_filter(own(LevelFilter::INFO)));
    tracing::subscriber::with_default(Registry::default().with(stderr).with(file), run)
}
