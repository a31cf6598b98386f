//! `status`: shows the changes on disk since a checkpoint.

use std::process::ExitCode;

use backtrail::{Status, json::StatusJson};
use clap::Args;

use crate::{
    cli::text,
    failure::Failure,
    invocation::Invocation,
    output::{change_list, plural, title, uncaptured_warnings, when},
};

/// The maximum number of paths that are named before the first checkpoint, when everything is new.
const MAX_NEW: usize = 20;

/// Show what changed on disk since the checkpoint that the workspace stands on
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Compare with this checkpoint instead
    #[arg(long, value_name = "ID", value_parser = text())]
    since: Option<String>,
    /// Exit with status 1 if something changed
    #[arg(long)]
    exit_code: bool,
}

pub(crate) fn run(args: &StatusArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace_to_scan()?;
    let since = args.since.as_ref().map(|word| invocation.checkpoint(&workspace, word)).transpose()?;
    let progress = invocation.output.progress(&workspace, "comparing");
    let status = workspace.status(since);
    drop(progress);
    let status = status?;
    if invocation.output.is_json() {
        invocation.output.json(&StatusJson::from(&status))?;
    } else {
        show(&status, invocation)?;
    }
    if args.since.is_none() && status.changes.is_empty() {
        invocation.note_watched(workspace.watched_changes()?.as_ref());
    }
    uncaptured_warnings(&status.uncaptured).iter().for_each(|warning| invocation.output.warn(warning));
    let is_dirty = args.exit_code && !(status.changes.is_empty() && status.uncaptured.is_empty());
    Ok(if is_dirty { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn show(status: &Status, invocation: &Invocation) -> Result<(), Failure> {
    let output = &invocation.output;
    let Some(checkpoint) = &status.checkpoint else { return show_unsaved(status, invocation) };
    let since = format!("since {} ({})", title(checkpoint), when(checkpoint.time, &invocation.now));
    if status.changes.is_empty() {
        let nothing = if status.uncaptured.is_empty() { "nothing" } else { "nothing that can be saved" };
        return Ok(output.text(&format!("{nothing} changed {since}\n"))?);
    }
    let changes = change_list(&status.changes, output.paint);
    output.text(&format!("{} {since}\n{changes}", plural(status.changes.len(), "change")))?;
    output.note("see them with: backtrail diff; save them with: backtrail save");
    Ok(())
}

fn show_unsaved(status: &Status, invocation: &Invocation) -> Result<(), Failure> {
    let output = &invocation.output;
    let count = status.changes.len();
    let named = change_list(&status.changes[..count.min(MAX_NEW)], output.paint);
    let more = if count > MAX_NEW { format!("  and {} more\n", count - MAX_NEW) } else { String::new() };
    output.text(&format!("nothing saved yet\n{named}{more}"))?;
    output.note("take the first checkpoint with: backtrail save");
    Ok(())
}
