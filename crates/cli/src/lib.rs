//! The `backtrail` command, run as a program or inside another one.
//!
//! The library `backtrail` implements every operation. This crate reads the environment and the command line, calls the
//! library, and prints the answer.

mod bounded_log;
mod child;
mod cli;
mod clock;
mod commands;
mod completion;
mod failure;
mod familiar_words;
mod file_system;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod git_worktree;
mod hooks;
mod hunk_picker;
mod install;
mod invocation;
mod logging;
mod output;
mod picker;
mod pipeline;
mod process;
mod process_pins;
mod question;
mod report;
mod rollback_point;
pub mod settings;

use std::{
    ffi::{OsStr, OsString},
    process::ExitCode,
};

use clap::Parser;

use crate::{
    cli::{Cli, Command, GlobalOptions},
    invocation::Invocation,
    logging::{CommandLog, Stderr},
    output::WhenFull,
    settings::Environment,
};
pub use crate::{failure::Failure, output::OutputError, process::StartedBy};

/// Runs one command and returns the exit status. `words` is the command line, starting with the program's name.
pub fn main(words: &[OsString], started_by: StartedBy) -> u8 {
    process::remember(started_by);
    process::raise_open_files();
    process::outlive_file_size_limit();
    if let Some(words) = hooks::words_of_hook(words) {
        hooks::run(words);
        return 0;
    }
    if let Some(shell) = settings::completing_shell() {
        return number_of(complete(&shell, words));
    }
    let code = match Cli::try_parse_from(words) {
        Ok(cli) => run(cli, Environment::of_process()),
        Err(error) => failure::end_parsing(&error, words),
    };
    number_of(code)
}

/// Runs a command, and logs what it does.
fn run(cli: Cli, environment: Environment) -> ExitCode {
    let level = cli.options.log.map_or_else(|| environment.log_level(), |level| Ok(Some(level)));
    let level = match level {
        Ok(level) => level,
        Err(failure) => return failure::end(&failure, &Invocation::new(cli.options, environment).output),
    };
    let when_full = if matches!(cli.command, Some(Command::Mcp(_))) { WhenFull::Drop } else { WhenFull::Wait };
    let stderr = level.map(|level| Stderr { level, when_full });
    let writing = cli.command.as_ref().and_then(Command::name_if_writing);
    let file = writing.and_then(|command| CommandLog::of_command(command, &environment));
    let options = GlobalOptions { log: level, ..cli.options };
    logging::during(stderr, file, || Invocation::new(options, environment).run(cli.command))
}

/// Answers a shell that completes a command line. Errors are ignored silently.
fn complete(shell: &OsStr, words: &[OsString]) -> ExitCode {
    let offered = completion::answer(shell, words, Environment::of_process()).unwrap_or_default();
    match output::offer(&offered) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Returns the number of an exit code. The standard library can only compare exit codes.
fn number_of(code: ExitCode) -> u8 {
    (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_code_has_its_number() {
        for number in 0..=u8::MAX {
            assert_eq!(number_of(ExitCode::from(number)), number);
        }
        assert_eq!(number_of(ExitCode::SUCCESS), 0);
    }
}
