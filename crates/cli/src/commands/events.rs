//! `events`: prints the events of a workspace as a stream.

use std::{process::ExitCode, time::Duration};

use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;

use crate::{cli::text, failure::Failure, invocation::Invocation};

/// The interval at which `--follow` checks for new events.
const POLL: Duration = Duration::from_millis(250);

/// Print what happened, one JSON object a line, oldest first
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Go on with what happens from now on, until interrupted
    #[arg(long, short)]
    follow: bool,
    /// What happened since then: a duration such as 20m, or a time such as 13:45 or 2026-11-15T14:30
    #[arg(long, value_name = "TIME", value_parser = text())]
    since: Option<String>,
}

pub(crate) fn run(args: &EventsArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    let since = args.since.as_ref().map(|text| invocation.moment(text)).transpose()?;
    let mut seen = Vec::new();
    loop {
        let found = workspace.events()?;
        let news = &found[already_seen(&seen, &found)..];
        let wanted = news.iter().filter(|line| since.is_none_or(|since| is_since(line, since)));
        let lines: String = wanted.map(|line| format!("{line}\n")).collect();
        if !lines.is_empty() {
            invocation.output.text(&lines)?;
        }
        if !args.follow {
            return Ok(ExitCode::SUCCESS);
        }
        seen = found;
        std::thread::sleep(POLL);
    }
}

/// Returns the number of lines at the start of `found` that are also in `seen`. The file grows at its end, and
/// occasionally loses its older half.
fn already_seen(seen: &[String], found: &[String]) -> usize {
    let lost = (0..seen.len()).find(|lost| found.starts_with(&seen[*lost..]));
    lost.map_or(0, |lost| seen.len() - lost)
}

fn is_since(line: &str, since: Timestamp) -> bool {
    #[derive(Deserialize)]
    struct Timed {
        time: Timestamp,
    }
    // An event without a time is shown, so that none is lost.
    serde_json::from_str::<Timed>(line).map_or(true, |event| event.time >= since)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_sees_every_line_once() {
        let lines = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        let seen = |before: &str, now: &str| already_seen(&lines(before), &lines(now));
        assert_eq!(seen("", "abc"), 0);
        assert_eq!(seen("abc", "abc"), 3);
        assert_eq!(seen("abc", "abcd"), 3);
        assert_eq!(seen("abcd", "cde"), 2, "the older half was removed");
        assert_eq!(seen("abc", "xy"), 0, "another store");
        assert_eq!(seen("abc", ""), 0);
    }
}
