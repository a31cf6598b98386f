//! `recover`: finish a restore that was interrupted, or take it back.

use std::process::ExitCode;

use backtrail::Recovery;
use clap::Args;

use crate::{failure::Failure, invocation::Invocation, output::RecoverJson};

/// Finish a restore that was interrupted, or take it back
///
/// Every command that writes finishes it by itself first; this is for those who want to look, or to go back.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// Take it back instead
    #[arg(long)]
    abort: bool,
}

pub(crate) fn run(args: &RecoverArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace_to_restore()?;
    let outcome = workspace.recover(args.abort, invocation.now.timestamp())?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&RecoverJson { recovered: outcome != Recovery::Nothing, outcome: outcome.as_str() })?;
    } else {
        output.done(match outcome {
            Recovery::Nothing => "no interrupted restore",
            Recovery::Finished => "the interrupted restore is finished; take it back with: backtrail undo",
            Recovery::TakenBack => "the interrupted restore is taken back: everything is as it was before it",
        })?;
    }
    Ok(ExitCode::SUCCESS)
}
