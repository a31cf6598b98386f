//! Shows the overview, if the program is run without a command.

use std::process::ExitCode;

use backtrail::{Event, ListFilter, TimedEvent, Workspace};

use super::list::timeline;
use crate::{
    failure::Failure,
    invocation::Invocation,
    output::{Overview, overview},
};

const NEWEST: usize = 10;

pub(crate) fn run(invocation: &Invocation) -> Result<ExitCode, Failure> {
    if invocation.output.is_json() {
        let hint = "use: backtrail status --json, or: backtrail list --json";
        return Err(Failure::usage("the overview has no JSON form", Some(hint)));
    }
    let workspace = invocation.workspace_to_scan()?;
    let progress = invocation.output.progress(&workspace, "comparing");
    let status = workspace.status(None);
    drop(progress);
    let newest = workspace.list(&ListFilter { limit: Some(NEWEST), hide_safety: true, ..ListFilter::default() })?;
    let found = Overview {
        workspace: workspace.root(),
        store: workspace.store_directory(),
        status: &status?,
        newest: &newest,
        was_restored: was_restored(&workspace)?,
    };
    invocation.output.text(&overview(&found, &timeline(&workspace, invocation)?))?;
    if found.status.changes.is_empty() {
        invocation.note_watched(workspace.watched_changes()?.as_ref());
    }
    Ok(ExitCode::SUCCESS)
}

fn was_restored(workspace: &Workspace) -> Result<bool, Failure> {
    let events = workspace.events()?;
    let last = events.last().and_then(|line| serde_json::from_str::<TimedEvent>(line).ok());
    Ok(last.is_some_and(|last| matches!(last.event, Event::CheckpointRestored { .. } | Event::Reverted { .. })))
}
