//! `completions`: what a shell needs to complete commands and options.

use std::process::ExitCode;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::{cli::Cli, failure::Failure, invocation::Invocation};

/// Print the completions for a shell
///
/// For bash: backtrail completions bash > ~/.local/share/bash-completion/completions/backtrail
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "backtrail", &mut script);
    invocation.output.bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}
