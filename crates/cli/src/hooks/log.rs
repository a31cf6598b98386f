//! Stores the problems of hooks for `doctor`. The file is bounded, and a failure to write it is ignored.

use std::{
    io,
    path::{Path, PathBuf},
};

use backtrail::app_files;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::bounded_log::BoundedLog;

/// The maximum size of the file.
const MAX_BYTES: u64 = 512 << 10;

/// The maximum length of a message. Longer messages are truncated.
const MAX_MESSAGE_CHARS: usize = 400;

/// The kind of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sort {
    /// An error: no checkpoint was taken, or one without its conversation.
    Problem,
    /// The agent stopped waiting; the work continues.
    Late,
    /// Work that continued without the agent has finished.
    Done,
}

impl Sort {
    /// Returns the word that the file has.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Late => "late",
            Self::Done => "done",
        }
    }
}

/// A line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    pub(crate) time: Timestamp,
    pub(crate) sort: Sort,
    /// The agent, as the command line named it.
    pub(crate) agent: String,
    /// The kind of the event.
    pub(crate) event: String,
    pub(crate) session: Option<String>,
    pub(crate) workspace: Option<PathBuf>,
    pub(crate) message: String,
    /// The worker process.
    pub(crate) process: Option<u32>,
}

/// The log file.
#[derive(Debug, Clone)]
pub(crate) struct Log(BoundedLog);

impl Log {
    /// Returns the log in this directory.
    pub(crate) fn in_directory(directory: &Path) -> Self {
        Self(BoundedLog::new(directory.join("hooks.jsonl"), MAX_BYTES))
    }

    /// Adds a line. Errors are ignored: if the disk can't be written, there is no other place to report them.
    pub(crate) fn add(&self, line: &Line) {
        drop(self.try_add(line));
    }

    fn try_add(&self, line: &Line) -> io::Result<()> {
        let directory = self.0.directory().ok_or(io::ErrorKind::InvalidInput)?;
        app_files::make_private_directories(directory)?;
        let message: String = line.message.chars().take(MAX_MESSAGE_CHARS).collect();
        self.0.append(&Line { message, ..line.clone() })
    }

    /// Returns all lines, oldest first. Unreadable lines are skipped.
    pub(crate) fn lines(&self) -> Vec<Line> {
        self.0.lines()
    }

    /// Returns the path of the log.
    pub(crate) fn file(&self) -> &Path {
        self.0.file()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn line(message: &str) -> Line {
        Line {
            time: Timestamp::UNIX_EPOCH,
            sort: Sort::Problem,
            agent: "claude".into(),
            event: "prompt".into(),
            session: None,
            workspace: None,
            message: message.into(),
            process: None,
        }
    }

    #[test]
    fn the_log_stays_small_and_readable() {
        let place = tempfile::tempdir().unwrap();
        let log = Log::in_directory(&place.path().join("log"));
        for number in 0..3_000 {
            log.add(&line(&format!("{number} {}", "x".repeat(1_000))));
        }
        let lines = log.lines();
        assert!(fs::metadata(log.file()).unwrap().len() <= MAX_BYTES);
        assert!(lines.len() > 300 && lines.last().unwrap().message.starts_with("2999 "));
        fs::write(log.file(), b"junk\n\xff\n").unwrap();
        log.add(&line("after junk"));
        assert_eq!(log.lines().len(), 1);
    }
}
