//! `show`: shows one checkpoint with its changes.

use std::{path::PathBuf, process::ExitCode};

use backtrail::{
    CheckpointId, Diff, PatchLimits, Range, Scope, Workspace,
    json::{DiffJson, ShownJson},
};
use clap::Args;

use crate::{
    cli::text,
    commands::diff::{REST_LEFT_OUT, SHOWN_LIMITS},
    failure::Failure,
    invocation::Invocation,
    output::{shown, shown_patch, stat},
};

/// Show one checkpoint and its changes
///
/// For a prompt, the agent's work for it is shown, too: what changed between the prompt and the end of the answer,
/// without edits by hand. With FROM..TO, show what changed between the two, as `diff FROM..TO` does.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The checkpoint, or FROM..TO
    #[arg(value_name = "ID", value_parser = text())]
    checkpoint: String,
    /// Only changes of these files and directories
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Show the changed lines, too
    #[arg(short, long)]
    patch: bool,
}

pub(crate) fn run(args: &ShowArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    if let Some(range) = invocation.range(&workspace, &args.checkpoint, None)? {
        return show_range(&workspace, &range, args, invocation);
    }
    let id = invocation.checkpoint(&workspace, &args.checkpoint)?;
    let scope = invocation.known_scope(&workspace, &args.paths)?;
    let mut found = workspace.show(&id)?;
    found.keep(&scope);
    let output = &invocation.output;
    if output.is_json() {
        let answer = ShownJson::from(&found);
        let patch = if args.patch { Some(patch_of(&workspace, &id, &scope, &PatchLimits::default())?) } else { None };
        output.json(&answer.with_patch(patch.map(|diff| diff.patch)))?;
    } else {
        let dropped = workspace.dropped_by(&[found.checkpoint.id])?;
        let mut text = shown(&found, &dropped, &invocation.now, output.paint);
        if args.patch {
            text.push_str(&patch_text(patch_of(&workspace, &id, &scope, &SHOWN_LIMITS)?, invocation));
        }
        output.paged(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the patch of a checkpoint: for a prompt, that of the agent's work for it.
fn patch_of(
    workspace: &Workspace,
    id: &CheckpointId,
    scope: &Scope,
    limits: &PatchLimits<'_>,
) -> Result<Diff, Failure> {
    match workspace.work_for(id, scope, limits)? {
        Some(work) => Ok(work),
        None => Ok(workspace.diff_of(id, scope, limits)?),
    }
}

/// Returns a patch for the user, below an empty line.
fn patch_text(diff: Diff, invocation: &Invocation) -> String {
    if diff.patch.is_empty() {
        return String::new();
    }
    let cut = if diff.is_cut { REST_LEFT_OUT } else { "" };
    let patch = format!("{}{cut}", diff.patch);
    format!("\n{}", shown_patch(&patch, invocation.output.paint))
}

/// Shows the changes between two checkpoints. Programs get the same answer as that of `diff`.
fn show_range(
    workspace: &Workspace,
    range: &Range,
    args: &ShowArgs,
    invocation: &Invocation,
) -> Result<ExitCode, Failure> {
    let output = &invocation.output;
    let limits = match (output.is_json(), args.patch) {
        (true, _) => PatchLimits::default(),
        (false, true) => SHOWN_LIMITS,
        (false, false) => PatchLimits::NO_PATCH,
    };
    let scope = invocation.known_scope(workspace, &args.paths)?;
    let diff = workspace.diff_within(Some(range.from), Some(range.to), &scope, &limits)?;
    if output.is_json() {
        output.json(&DiffJson::from(diff))?;
    } else if diff.changes.is_empty() {
        output.note("no differences");
    } else {
        let sums = stat(&diff.changes, output.paint);
        let patch = if args.patch { patch_text(diff, invocation) } else { String::new() };
        output.paged(&format!("{sums}{patch}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
