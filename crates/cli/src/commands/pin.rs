//! `pin` and `unpin`: protect a checkpoint from retention, and end that.

use std::process::ExitCode;

use backtrail::Checkpoint;
use clap::Args;

use crate::{
    cli::text,
    failure::Failure,
    invocation::{Invocation, Protection},
    output::{PinnedJson, title},
    process_pins,
};

/// Keep a checkpoint until you delete it
#[derive(Debug, Args)]
pub(crate) struct PinArgs {
    /// The checkpoint
    #[arg(value_name = "ID", value_parser = text())]
    checkpoint: String,
}

/// Let retention delete a pinned checkpoint again
#[derive(Debug, Args)]
pub(crate) struct UnpinArgs {
    /// The checkpoint
    #[arg(value_name = "ID", value_parser = text())]
    checkpoint: String,
}

pub(crate) fn pin(args: &PinArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace_to_write(Protection::Waived)?;
    let id = invocation.checkpoint(&workspace, &args.checkpoint)?;
    let checkpoint = workspace.pin(&id, invocation.now.timestamp())?;
    process_pins::keep(&id, invocation);
    tell(&checkpoint, &format!("pinned {}: it is kept until you delete it", title(&checkpoint)), invocation)
}

pub(crate) fn unpin(args: &UnpinArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace_to_write(Protection::Waived)?;
    let id = invocation.checkpoint(&workspace, &args.checkpoint)?;
    let checkpoint = workspace.unpin(&id, invocation.now.timestamp())?;
    tell(&checkpoint, &format!("unpinned {}", title(&checkpoint)), invocation)
}

fn tell(checkpoint: &Checkpoint, sentence: &str, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let output = &invocation.output;
    if output.is_json() {
        output.json(&PinnedJson::from(checkpoint))?
    } else {
        output.done(sentence)?
    }
    Ok(ExitCode::SUCCESS)
}
