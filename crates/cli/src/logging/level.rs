//! The level of detail on stderr.

use clap::ValueEnum;
use tracing_subscriber::filter::LevelFilter;

/// The amount of detail that is printed to stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogLevel {
    Error,
    Warn,
    /// Operations that write
    Info,
    /// All operations and their phases
    Debug,
    /// Every changed path, too
    Trace,
}

impl LogLevel {
    /// Returns the level with this name. Returns `None` if there is none.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::from_str(name.trim(), true).ok()
    }
}

impl From<LogLevel> for LevelFilter {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}
