//! `hook`: the command that an agent runs. Its arguments are handled before the command line is parsed; this definition
//! is for the help.

use std::{ffi::OsString, process::ExitCode};

use clap::Args;

use crate::{failure::Failure, hooks};

/// Receive an event from an agent; agents run this, set up by install
///
/// Reads the payload of an agent's hook on stdin. Always exits with 0, so that it never stops an agent. Problems are
/// written to a log that doctor reads.
#[derive(Debug, Args)]
pub(crate) struct HookArgs {
    /// The agent
    #[arg(value_name = "AGENT", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

pub(crate) fn run(args: &HookArgs) -> Result<ExitCode, Failure> {
    hooks::run(&args.words);
    Ok(ExitCode::SUCCESS)
}
