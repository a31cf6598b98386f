//! `exclude`: leaves paths out of future checkpoints.

use std::{ffi::OsString, process::ExitCode};

use backtrail::ErrorCode;
use clap::Args;

use crate::{
    failure::Failure,
    invocation::{Invocation, Protection},
    output::{ExcludedJson, plural, visible_path},
};

/// Skip paths in future checkpoints
///
/// Adds patterns, written as in .gitignore, to the list exclude under scan in the workspace's backtrail.toml. The rest
/// of that file does not change. A path that starts with ./ or with the path of the workspace becomes a pattern for
/// only that path.
#[derive(Debug, Args)]
pub(crate) struct ExcludeArgs {
    /// A path or pattern to skip, such as '*.log' or 'data/'
    #[arg(value_name = "PATTERN", required = true)]
    patterns: Vec<OsString>,
    /// Allow a protected directory, such as the home directory, as the workspace
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &ExcludeArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let patterns = args.patterns.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let workspace = invocation.workspace_to_write(Protection::unless(args.force))?;
    let current = invocation.environment().current_directory()?;
    let excluded = workspace.exclude(current, &patterns, invocation.now.timestamp());
    let excluded = excluded.map_err(|error| match error.code() {
        ErrorCode::Usage => Failure::from(error).with_hint("patterns are written as in .gitignore: '*.log', 'data/'"),
        _ => error.into(),
    });
    let (file, patterns) = excluded?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&ExcludedJson::new(&file, &patterns))?;
    } else {
        output.done(&format!("{} now has {}", visible_path(&file), plural(patterns.len(), "exclude pattern")))?;
        output.note("existing checkpoints keep these paths; see what is skipped with: backtrail doctor");
    }
    Ok(ExitCode::SUCCESS)
}

fn text(pattern: &OsString) -> Result<String, Failure> {
    match pattern.to_str() {
        None => {
            let message = format!("{:?} is not UTF-8, and a settings file must be", pattern.to_string_lossy());
            Err(Failure::usage(message, Some("write * or ? for the characters that are not UTF-8")))
        }
        Some(pattern) if pattern.trim().is_empty() => {
            Err(Failure::usage("an empty pattern matches nothing", Some("give a path, or a pattern such as '*.log'")))
        }
        Some(pattern) => Ok(pattern.to_owned()),
    }
}
