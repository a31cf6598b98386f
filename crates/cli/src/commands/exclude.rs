//! `exclude`: leave paths out of checkpoints.

use std::process::ExitCode;

use backtrail::ErrorCode;
use clap::Args;

use crate::{
    cli::text,
    failure::Failure,
    invocation::{Invocation, Protection},
    output::{ExcludedJson, plural, visible_path},
};

/// Leave paths out of the checkpoints to come
///
/// Adds patterns, written as in .gitignore, to the list exclude under scan in the workspace's backtrail.toml; the rest of that file
/// stays as it is.
#[derive(Debug, Args)]
pub(crate) struct ExcludeArgs {
    /// What to leave out, such as '*.log' or 'data/'
    #[arg(value_name = "PATTERN", required = true, value_parser = text())]
    patterns: Vec<String>,
}

pub(crate) fn run(args: &ExcludeArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    if args.patterns.iter().any(|pattern| pattern.trim().is_empty()) {
        return Err(Failure::usage("an empty pattern leaves nothing out", Some("name a path, or a pattern: '*.log'")));
    }
    let workspace = invocation.workspace_to_write(Protection::Waived)?;
    let excluded = workspace.exclude(&args.patterns).map_err(|error| match error.code() {
        ErrorCode::Usage => Failure::from(error).with_hint("patterns are written as in .gitignore: '*.log', 'data/'"),
        _ => error.into(),
    });
    let (file, patterns) = excluded?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&ExcludedJson::new(&file, &patterns))?;
    } else {
        output.done(&format!("{} has {} now", visible_path(&file), plural(patterns.len(), "exclude pattern")))?;
        output.note("checkpoints that hold such paths keep them; see what is left out with: backtrail doctor");
    }
    Ok(ExitCode::SUCCESS)
}
