//! `status`: shows the changes on disk since a checkpoint.

use std::process::ExitCode;

use backtrail::{Status, Workspace, json::StatusJson};
use clap::Args;

use crate::{
    cli::text,
    failure::Failure,
    invocation::Invocation,
    output::{Paint, Remarks, change_list, plural, title, uncaptured_warnings, visible, when},
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
    let is_dirty = args.exit_code && !(status.changes.is_empty() && status.uncaptured.is_empty());
    let output = &invocation.output;
    let mut remarks = Remarks { notes: Vec::new(), warnings: uncaptured_warnings(&status.uncaptured) };
    if output.is_json() {
        output.json(&StatusJson::from(&status))?;
        remarks.warnings.iter().for_each(|warning| output.warn(warning));
        return Ok(if is_dirty { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let (text, note) = described(&status, invocation);
    remarks.notes.extend(note);
    remarks.warnings.extend(unprotected_warning(&workspace, &status)?);
    if args.exit_code {
        // The pager would replace this process, and the exit status with it.
        output.text(&text)?;
        remarks.notes.iter().for_each(|note| output.note(note));
        remarks.warnings.iter().for_each(|warning| output.warn(warning));
    } else {
        output.paged_if_long(&text, &remarks)?;
    }
    Ok(if is_dirty { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the text about a status, and a note with the next step.
fn described(status: &Status, invocation: &Invocation) -> (String, Option<String>) {
    let paint = invocation.output.paint;
    let Some(checkpoint) = &status.checkpoint else { return unsaved(status, paint) };
    let since = format!("since {} ({})", title(checkpoint), when(checkpoint.time, &invocation.now));
    if status.changes.is_empty() {
        let nothing = if status.uncaptured.is_empty() { "nothing" } else { "nothing that can be saved" };
        return (format!("{nothing} changed {since}\n"), None);
    }
    let changes = change_list(&status.changes, paint);
    let text = format!("{} {since}\n{changes}", plural(status.changes.len(), "change"));
    (text, Some("see them with: backtrail diff; save them with: backtrail save".to_owned()))
}

fn unsaved(status: &Status, paint: Paint) -> (String, Option<String>) {
    let count = status.changes.len();
    let named = change_list(&status.changes[..count.min(MAX_NEW)], paint);
    let more = if count > MAX_NEW { format!("  and {} more\n", count - MAX_NEW) } else { String::new() };
    let text = format!("nothing saved yet\n{named}{more}");
    (text, Some("take the first checkpoint with: backtrail save".to_owned()))
}

/// Returns a warning about paths that an earlier checkpoint dropped and that no checkpoint has captured since.
fn unprotected_warning(workspace: &Workspace, status: &Status) -> Result<Option<String>, Failure> {
    let Some(checkpoint) = &status.checkpoint else { return Ok(None) };
    let mut dropped = workspace.unprotected_at(&checkpoint.id)?;
    dropped.retain(|dropped| !status.uncaptured.iter().any(|named| named.path == dropped.path));
    let what = match dropped.as_slice() {
        [] => return Ok(None),
        [one] => format!("{} ({}) is", visible(one.path.as_bytes()), one.reason.as_str()),
        several => format!("{} are", plural(several.len(), "path")),
    };
    Ok(Some(format!("{what} not protected since an earlier checkpoint; see: backtrail doctor")))
}
