//! `blame`: shows the checkpoint that introduced each line of a file.

use std::{ops::RangeInclusive, path::PathBuf, process::ExitCode};

use backtrail::{Blame, Error, Workspace, WorkspacePath, json::BlameJson};
use clap::Args;

use crate::{
    cli::text,
    failure::Failure,
    invocation::Invocation,
    output::{BlameTable, shell_path},
};

/// Show which checkpoint introduced each line of a file
///
/// With the prompt, the agent and the time. Lines that only the file on disk has are "unsaved". Moves of the file are
/// followed. A line that may come from a deleted checkpoint is marked with ≈ and the nearest later one.
#[derive(Debug, Args)]
pub(crate) struct BlameArgs {
    /// The file
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// The lines of this checkpoint, rather than those on disk
    #[arg(value_name = "ID", value_parser = text())]
    checkpoint: Option<String>,
    /// Only these lines, counted from 1
    #[arg(short = 'L', long, value_name = "FIRST,LAST", value_parser = first_and_last)]
    lines: Option<RangeInclusive<u64>>,
}

pub(crate) fn run(args: &BlameArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    let path = invocation.path(&workspace, &args.path)?;
    let at = args.checkpoint.as_ref().map(|word| invocation.checkpoint(&workspace, word)).transpose()?;
    let blame = workspace.blame(&path, at, args.lines.as_ref());
    let blame = blame.map_err(|error| explain(error, args, &workspace, &path, invocation))?;
    show(&blame, invocation)?;
    Ok(ExitCode::SUCCESS)
}

fn show(blame: &Blame, invocation: &Invocation) -> Result<(), Failure> {
    let output = &invocation.output;
    if output.is_json() {
        return Ok(output.json(&BlameJson::from(blame))?);
    }
    let table = BlameTable { now: &invocation.now, width: output.width(), paint: output.paint };
    output.paged(&table.draw(blame))?;
    if blame.ranges.iter().flat_map(|range| &range.origin).any(|origin| origin.approximate) {
        output.note("≈ marks lines that may come from a checkpoint that was deleted");
    }
    Ok(())
}

/// Adds a hint to the error for a file that is not on disk.
fn explain(
    error: Error,
    args: &BlameArgs,
    workspace: &Workspace,
    path: &WorkspacePath,
    invocation: &Invocation,
) -> Failure {
    let is_missing = args.checkpoint.is_none() && matches!(error, Error::UnknownPath { .. });
    let failure = invocation.explain_path(workspace, error.into(), &args.path);
    // Only the hint depends on this.
    let is_saved = || matches!(workspace.current(), Ok(Some(id)) if workspace.holds(&id, path).unwrap_or(false));
    if is_missing && is_saved() {
        let named = shell_path(&args.path);
        return failure.with_hint(format!("the last checkpoint has it: backtrail blame {named} @"));
    }
    failure
}

/// Parses `FIRST,LAST`.
fn first_and_last(text: &str) -> Result<RangeInclusive<u64>, String> {
    let numbers = text.split_once(',').and_then(|(first, last)| Some((first.parse().ok()?, last.parse().ok()?)));
    let range = numbers.map(|(first, last): (u64, u64)| first..=last).filter(|range| *range.start() > 0);
    range.filter(|range| !range.is_empty()).ok_or_else(|| "write two line numbers, such as 3,5".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_given_as_first_and_last() {
        assert_eq!(first_and_last("3,5"), Ok(3..=5));
        assert_eq!(first_and_last("7,7"), Ok(7..=7));
        for bad in ["", "3", "3,", ",5", "0,1", "5,3", "a,b", "-1,2"] {
            assert!(first_and_last(bad).is_err(), "{bad:?} was taken");
        }
    }
}
