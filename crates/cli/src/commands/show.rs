//! `show`: shows one checkpoint with its changes.

use std::process::ExitCode;

use backtrail::{
    PatchLimits, Range, Scope, Workspace,
    json::{DiffJson, ShownJson},
};
use clap::Args;

use crate::{
    cli::text,
    failure::Failure,
    invocation::Invocation,
    output::{shown, stat},
};

/// Show one checkpoint and its changes
///
/// With FROM..TO, show what changed between the two, as `diff FROM..TO` does.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The checkpoint, or FROM..TO
    #[arg(value_name = "ID", value_parser = text())]
    checkpoint: String,
}

pub(crate) fn run(args: &ShowArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    if let Some(range) = invocation.range(&workspace, &args.checkpoint, None)? {
        return show_range(&workspace, &range, invocation);
    }
    let found = workspace.show(&invocation.checkpoint(&workspace, &args.checkpoint)?)?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&ShownJson::from(&found))?;
    } else {
        let dropped = workspace.dropped_by(&[found.checkpoint.id])?;
        output.paged(&shown(&found, &dropped, &invocation.now, output.paint))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the changes between two checkpoints. Programs get the same answer as that of `diff`.
fn show_range(workspace: &Workspace, range: &Range, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let output = &invocation.output;
    let limits = if output.is_json() { PatchLimits::default() } else { PatchLimits::NO_PATCH };
    let diff = workspace.diff_within(Some(range.from), Some(range.to), &Scope::Whole, &limits)?;
    if output.is_json() {
        output.json(&DiffJson::from(diff))?;
    } else if diff.changes.is_empty() {
        output.note("no differences");
    } else {
        output.paged(&stat(&diff.changes, output.paint))?;
    }
    Ok(ExitCode::SUCCESS)
}
