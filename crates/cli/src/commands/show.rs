//! `show`: shows one checkpoint with its changes.

use std::process::ExitCode;

use backtrail::json::ShownJson;
use clap::Args;

use crate::{cli::text, failure::Failure, invocation::Invocation, output::shown};

/// Show one checkpoint and its changes
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The checkpoint
    #[arg(value_name = "ID", value_parser = text())]
    checkpoint: String,
}

pub(crate) fn run(args: &ShowArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
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
