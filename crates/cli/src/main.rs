//! The `backtrail` program.

use std::process::ExitCode;

use backtrail_cli::StartedBy;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    ExitCode::from(backtrail_cli::main(&words, StartedBy::OwnProgram))
}
