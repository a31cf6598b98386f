//! The `backtrail` command.
//!
//! Every operation lives in the library; this program reads the environment and the command line, calls it, and prints.

mod cli;
mod commands;
mod failure;
mod invocation;
mod output;
mod picker;
mod process;
mod settings;

use std::process::ExitCode;

use clap::Parser;

use crate::{cli::Cli, invocation::Invocation, settings::Environment};

fn main() -> ExitCode {
    process::raise_open_files();
    let words: Vec<_> = std::env::args_os().collect();
    match Cli::try_parse_from(&words) {
        Ok(cli) => Invocation::new(cli.options, Environment::of_process()).run(cli.command),
        Err(error) => failure::end_parsing(&error, &words),
    }
}
