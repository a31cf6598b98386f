//! `events`: prints the events of a workspace as a stream.

use std::{process::ExitCode, time::Duration};

use backtrail::EventFollower;
use clap::Args;
use jiff::Timestamp;
use serde::Deserialize;

use crate::{cli::text, failure::Failure, invocation::Invocation};

/// The interval at which `--follow` checks for new events.
const POLL: Duration = Duration::from_millis(250);

/// Print the events of the workspace, one JSON object per line, oldest first
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Wait for new events and print them, until interrupted
    #[arg(long, short)]
    follow: bool,
    /// Only events since then: a duration such as 20m, or a time such as 13:45 or 2026-11-15T14:30
    #[arg(long, value_name = "TIME", value_parser = text())]
    since: Option<String>,
}

pub(crate) fn run(args: &EventsArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    let since = args.since.as_ref().map(|text| invocation.moment(text)).transpose()?;
    let mut follower = EventFollower::default();
    loop {
        let news = workspace.new_events(&mut follower)?;
        let wanted = news.iter().filter(|line| since.is_none_or(|since| is_since(line, since)));
        let lines: String = wanted.map(|line| format!("{line}\n")).collect();
        if !lines.is_empty() {
            invocation.output.text(&lines)?;
        }
        if !args.follow {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(POLL);
    }
}

fn is_since(line: &str, since: Timestamp) -> bool {
    #[derive(Deserialize)]
    struct Timed {
        time: Timestamp,
    }
    // An event without a time is shown, so that none is lost.
    serde_json::from_str::<Timed>(line).map_or(true, |event| event.time >= since)
}
