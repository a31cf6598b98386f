//! `diff`: what differs between two checkpoints, or one and the files on disk.

use std::{path::PathBuf, process::ExitCode};

use backtrail::{Diff, json::DiffJson};
use clap::Args;

use crate::{
    cli::text,
    failure::Failure,
    invocation::Invocation,
    output::{name_status, shell_words, shown_patch, stat, uncaptured_warnings},
};

/// Show what differs between two checkpoints, or one and the files on disk
///
/// Without a checkpoint: from the one that the workspace stands on to the files on disk. With one: from that to the
/// files on disk. What this prints can be given to `git apply`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The older side
    #[arg(value_parser = text())]
    from: Option<String>,
    /// The newer side
    #[arg(value_parser = text())]
    to: Option<String>,
    /// Only these files and directories
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Count lines instead of showing them
    #[arg(long, conflicts_with = "name_status")]
    stat: bool,
    /// Name the paths and how they differ
    #[arg(long)]
    name_status: bool,
}

pub(crate) fn run(args: &DiffArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace_to_scan()?;
    let from = match &args.from {
        Some(word) => Some(invocation.checkpoint_not_path(&workspace, word, "diff --", &[])?),
        None => workspace.current()?,
    };
    let to = match (&args.from, &args.to) {
        (Some(from), Some(word)) => {
            let meant = format!("diff {} --", shell_words([from]));
            Some(invocation.checkpoint_not_path(&workspace, word, &meant, &[])?)
        }
        _ => None,
    };
    let scope = invocation.scope(&workspace, &args.paths)?;
    let progress = invocation.output.progress(&workspace, "comparing");
    let diff = workspace.diff(from, to, &scope);
    drop(progress);
    let diff = diff?;
    let warnings = uncaptured_warnings(&diff.uncaptured);
    show(diff, args, invocation)?;
    warnings.iter().for_each(|warning| invocation.output.warn(warning));
    Ok(ExitCode::SUCCESS)
}

fn show(diff: Diff, args: &DiffArgs, invocation: &Invocation) -> Result<(), Failure> {
    let output = &invocation.output;
    if output.is_json() {
        return Ok(output.json(&DiffJson::from(diff))?);
    }
    if diff.changes.is_empty() {
        let within = if diff.uncaptured.is_empty() { "" } else { " in what can be saved" };
        output.note(&format!("no differences{within}"));
        return Ok(());
    }
    if args.stat {
        output.paged(&stat(&diff.changes, output.paint))?;
    } else if args.name_status {
        output.paged(&name_status(&diff.changes))?;
    } else if output.is_terminal() || output.paint.is_on() {
        output.paged(&shown_patch(&diff.patch, output.paint))?;
    } else {
        // Byte for byte, so that a program can apply it.
        output.text(&diff.patch)?;
    }
    Ok(())
}
