//! `completions`: prints the script with which a shell completes command lines of this program.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::{completion, failure::Failure, invocation::Invocation, output::OutputError};

/// Print the completions for a shell
///
/// They complete commands, options, checkpoints with their messages, and paths in a checkpoint. For bash: backtrail
/// completions bash > ~/.local/share/bash-completion/completions/backtrail; for zsh a file called _backtrail in a
/// directory of $fpath; for fish ~/.config/fish/completions/backtrail.fish.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    invocation.output.bytes(&completion::script(args.shell).map_err(OutputError::from)?)?;
    Ok(ExitCode::SUCCESS)
}
