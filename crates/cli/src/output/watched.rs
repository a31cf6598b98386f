//! The answer of `watch --status`.

use std::{collections::BTreeMap, fmt::Write};

use backtrail::WatcherReport;
use jiff::Timestamp;
use serde::Serialize;

use super::when;
use crate::clock::Now;

/// The JSON answer of `watch --status`.
#[derive(Debug, Serialize)]
pub(crate) struct WatchStatusJson<'a> {
    running: bool,
    pid: Option<u32>,
    since: Option<Timestamp>,
    directories: Option<u64>,
    pending: Option<u64>,
    auto: Option<bool>,
    fallbacks: Option<u64>,
    fallback_reasons: BTreeMap<&'a str, u64>,
    missed: Option<u64>,
    problem: Option<&'a str>,
}

impl<'a> WatchStatusJson<'a> {
    pub(crate) fn new(is_running: bool, report: Option<&'a WatcherReport>) -> Self {
        // A watcher that is still starting knows nothing yet.
        let report = report.filter(|report| report.pid > 0);
        Self {
            running: is_running,
            pid: report.map(|report| report.pid),
            since: report.and_then(started),
            directories: report.map(|report| report.directories),
            pending: report.map(|report| report.pending),
            auto: report.map(|report| report.auto),
            fallbacks: report.map(|report| report.fallbacks.values().sum()),
            fallback_reasons: report
                .map(|report| report.fallbacks.iter().map(|(reason, count)| (reason.as_str(), *count)).collect())
                .unwrap_or_default(),
            missed: report.map(|report| report.missed),
            problem: report.and_then(|report| report.problem.as_deref()),
        }
    }
}

fn started(report: &WatcherReport) -> Option<Timestamp> {
    Timestamp::from_millisecond(report.since).ok()
}

/// Returns the answer of `watch --status` for people.
pub(crate) fn watch_status(is_running: bool, report: Option<&WatcherReport>, now: &Now) -> String {
    if !is_running {
        return "no watcher is running; start one with: backtrail watch --detach\n".into();
    }
    let Some(report) = report.filter(|report| report.pid > 0) else {
        return "a watcher is running, and does not answer; saves scan everything\n".into();
    };
    let since = started(report).map(|since| format!(" since {}", when(since, now))).unwrap_or_default();
    let mut text = format!("a watcher is running{since} (process {})\n", report.pid);
    let directories = directories_watched(report.directories);
    // Nothing here can fail: a string grows.
    let _ = writeln!(text, "  {directories} watched, {} changed since the last question", report.pending);
    if report.auto {
        text.push_str("  takes checkpoints by itself\n");
    }
    if !report.fallbacks.is_empty() {
        let reasons: Vec<String> =
            report.fallbacks.iter().map(|(reason, count)| format!("{} {count}", reason.replace('_', " "))).collect();
        let _ = writeln!(text, "  full scans instead of its answer: {}", reasons.join(", "));
    }
    if report.missed > 0 {
        let _ = writeln!(text, "  changes that no event reported, found by a full scan: {}", report.missed);
    }
    if let Some(problem) = &report.problem {
        let _ = writeln!(text, "  the last checkpoint failed: {problem}");
    }
    text
}

/// Returns the number of watched directories.
pub(crate) fn directories_watched(count: u64) -> String {
    if count == 1 { "1 directory".into() } else { format!("{count} directories") }
}
