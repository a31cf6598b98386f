//! Shell completion: commands and options, ids with their messages, paths of a checkpoint.
//!
//! The script that `completions` prints makes the shell run this program with [`VARIABLE`] set. Then only the timeline
//! and single directories of a checkpoint are read, because the user is typing. On errors, nothing is offered.

mod bash;
mod sources;

use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
    sync::Arc,
};

use clap::{Command, CommandFactory, FromArgMatches};
use clap_complete::{
    ArgValueCompleter, Shell,
    engine::{CompletionCandidate, complete},
    env::{EnvCompleter, Shells},
};

use self::sources::{Offer, Sources};
use crate::{
    cli::{Cli, GlobalOptions},
    invocation::Invocation,
    settings::Environment,
};

/// The environment variable that asks this program to complete a command line. Its value is the shell.
pub(crate) const VARIABLE: &str = "BACKTRAIL_COMPLETE";

const PROGRAM: &str = "backtrail";

/// The arguments whose values depend on the workspace.
const ARGUMENTS: &[(&str, &str, Offer)] = &[
    ("show", "checkpoint", Offer::Checkpoints),
    ("show", "paths", Offer::Paths),
    ("status", "since", Offer::Checkpoints),
    ("diff", "from", Offer::CheckpointsBeforeDashes),
    ("diff", "to", Offer::CheckpointsBeforeDashes),
    ("diff", "paths", Offer::Paths),
    ("cat", "checkpoint", Offer::Checkpoints),
    ("cat", "path", Offer::Paths),
    ("cat", "attachment", Offer::Attachments),
    ("history", "path", Offer::Paths),
    ("blame", "path", Offer::Paths),
    ("blame", "checkpoint", Offer::Checkpoints),
    ("bisect", "good", Offer::Checkpoints),
    ("bisect", "bad", Offer::Checkpoints),
    ("list", "range", Offer::Checkpoints),
    ("list", "path", Offer::Paths),
    ("list", "session", Offer::Sessions),
    ("restore", "id", Offer::Checkpoints),
    ("restore", "paths", Offer::Paths),
    ("revert", "what", Offer::Checkpoints),
    ("revert", "paths", Offer::Paths),
    ("export", "id", Offer::Checkpoints),
    ("fork", "id", Offer::Checkpoints),
    ("delete", "ids", Offer::Checkpoints),
    ("pin", "checkpoint", Offer::Checkpoints),
    ("unpin", "checkpoint", Offer::Pinned),
    ("workspaces", "adopt", Offer::Stores),
    ("man", "command", Offer::Commands),
];

/// Returns the script that enables completion in a shell.
pub(crate) fn script(shell: Shell) -> io::Result<Vec<u8>> {
    if shell == Shell::Bash {
        return Ok(bash::SCRIPT.into());
    }
    let mut script = Vec::new();
    adapter(&shell.to_string())?.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    if shell == Shell::Zsh {
        // If the script is in a file of its own, zsh loads it at the first key press, and that one has to be answered
        // as well.
        script.extend(b"if [[ $funcstack[1] == _backtrail ]]; then _clap_dynamic_completer_backtrail \"$@\"; fi\n");
    }
    Ok(script)
}

fn adapter(shell: &str) -> io::Result<&'static dyn EnvCompleter> {
    const KNOWN: Shells<'static> = Shells::builtins();
    let known = KNOWN.0.iter().copied().find(|known| known.is(shell));
    known.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, format!("unknown shell {shell}")))
}

/// Returns the completions for the shell. `words` are the arguments from its script.
pub(crate) fn answer(shell: &OsStr, words: &[OsString], environment: Environment) -> io::Result<Vec<u8>> {
    let shell = Path::new(shell).file_stem().unwrap_or(shell).to_string_lossy();
    let behind_dashes = words.iter().position(|word| word == "--").map_or(words.len(), |dashes| dashes + 1);
    let words = &words[behind_dashes..];
    let current_directory = environment.current_directory().ok().map(Path::to_owned);
    let current_directory = current_directory.as_deref();
    if shell == "bash" {
        return bash::answer(words, |typed| {
            let index = typed.len().saturating_sub(1);
            complete(&mut command(typed, environment), typed.to_vec(), index, current_directory)
        });
    }
    let mut out = Vec::new();
    let mut command = command(words, environment);
    adapter(&shell)?.write_complete(&mut command, words.to_vec(), current_directory, &mut out)?;
    Ok(out)
}

/// Returns the command line definition with the completions of this workspace.
fn command(typed: &[OsString], environment: Environment) -> Command {
    let sources = Arc::new(sources(typed, environment));
    let mut program = Cli::command();
    for (command, argument, offer) in ARGUMENTS {
        let sources = Arc::clone(&sources);
        let completer = ArgValueCompleter::new(move |word: &OsStr| sources.offer(*offer, word));
        program = program.mut_subcommand(*command, |command| command.mut_arg(*argument, |arg| arg.add(completer)));
    }
    // Before the first letter, options would only hide the values.
    if typed.last().is_none_or(|last| last.is_empty()) { without_options(program) } else { program }
}

fn without_options(command: Command) -> Command {
    let hide = |arg: clap::Arg| if arg.is_positional() { arg } else { arg.hide(true) };
    command.disable_help_flag(true).mut_args(hide).mut_subcommands(without_options)
}

/// Parses the words that were typed so far, as far as they are valid already.
fn sources(typed: &[OsString], environment: Environment) -> Sources {
    let read = Cli::command().ignore_errors(true).try_get_matches_from(typed).ok();
    let options = read.as_ref().and_then(|read| GlobalOptions::from_arg_matches(read).ok()).unwrap_or_default();
    let checkpoint = read.as_ref().and_then(|read| read.subcommand()).and_then(|(_, read)| {
        let named = ["id", "what", "checkpoint", "to", "from"];
        named.iter().find_map(|name| read.try_get_one::<String>(name).ok().flatten().cloned())
    });
    let invocation = Invocation::new(GlobalOptions { quiet: true, ..options }, environment);
    let is_behind_dashes = typed.iter().rev().skip(1).any(|word| word == "--");
    Sources::new(&invocation, checkpoint, is_behind_dashes)
}

/// Returns one completion with its description.
fn candidate(value: impl Into<OsString>, help: impl Into<String>) -> CompletionCandidate {
    CompletionCandidate::new(value).help(Some(help.into().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_argument_in_the_table_exists() {
        let program = Cli::command();
        for (command, argument, _) in ARGUMENTS {
            let command = program.find_subcommand(command).unwrap_or_else(|| panic!("no command {command}"));
            assert!(
                command.get_arguments().any(|arg| arg.get_id() == argument),
                "{} has no {argument}",
                command.get_name()
            );
        }
    }

    #[test]
    fn every_shell_has_a_script() {
        for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
            let script = String::from_utf8(script(shell).unwrap()).unwrap();
            assert!(script.contains(VARIABLE), "{shell}: {script}");
        }
    }
}
