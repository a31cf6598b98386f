//! Failures of a command: exit status, message, and a hint at the next step.

use std::{
    error::Error as _,
    ffi::OsString,
    io,
    num::{IntErrorKind, ParseIntError},
    path::Path,
    process::ExitCode,
};

use backtrail::{Error, ErrorCode, WorkspacePath};
use clap::{
    CommandFactory,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::{
    cli::{Cli, ColorWhen},
    familiar_words::{instead_of_command, instead_of_option},
    output::{Output, OutputError, shell_path, shell_words},
    pipeline::PipelineProblem,
};

/// The exit status that a shell shows for a program that SIGPIPE ended.
const BROKEN_PIPE: u8 = 141;

/// The reason why a command failed.
#[derive(Debug)]
pub enum Failure {
    /// An error of the library.
    Operation(Error),
    /// An error of the library, with a hint that only the command line can give.
    Hinted {
        /// The library's error.
        error: Error,
        /// The suggested next step.
        hint: String,
    },
    /// An invalid command line.
    Usage {
        /// The problem.
        message: String,
        /// The suggested next step.
        hint: Option<String>,
    },
    /// A pipeline file that is invalid, or that asks for something that does not exist.
    Pipeline {
        /// The file, the line and the problem.
        message: String,
        /// The suggested next step.
        hint: Option<String>,
    },
    /// The output could not be printed.
    Output(OutputError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Operation(error)
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}

impl Failure {
    /// Returns the failure for an invalid command line.
    pub(crate) fn usage(message: impl Into<String>, hint: Option<&str>) -> Self {
        Self::Usage { message: message.into(), hint: hint.map(str::to_owned) }
    }

    /// Replaces the hint.
    pub(crate) fn with_hint(self, hint: impl Into<String>) -> Self {
        match self {
            Self::Operation(error) | Self::Hinted { error, .. } => Self::Hinted { error, hint: hint.into() },
            Self::Usage { message, .. } => Self::Usage { message, hint: Some(hint.into()) },
            Self::Pipeline { message, .. } => Self::Pipeline { message, hint: Some(hint.into()) },
            other @ Self::Output(_) => other,
        }
    }

    /// Returns the failure for a pipeline file that can't be run.
    pub(crate) fn pipeline(file: &Path, problem: PipelineProblem) -> Self {
        let line = problem.line.map(|line| format!("line {line}: ")).unwrap_or_default();
        Self::Pipeline { message: format!("{}: {line}{}", file.display(), problem.message), hint: problem.hint }
    }

    /// Returns the stable error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Operation(error) | Self::Hinted { error, .. } => error.code(),
            Self::Usage { .. } => ErrorCode::Usage,
            Self::Pipeline { .. } => ErrorCode::Pipeline,
            Self::Output(error) if error.is_no_space() => ErrorCode::NoSpace,
            Self::Output(_) => ErrorCode::Io,
        }
    }

    /// Returns the path that does not exist, if that is the reason.
    pub(crate) fn unknown_path(&self) -> Option<&WorkspacePath> {
        match self {
            Self::Operation(Error::UnknownPath { path, .. })
            | Self::Hinted { error: Error::UnknownPath { path, .. }, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns the message, one sentence.
    pub fn message(&self) -> String {
        match self {
            Self::Operation(error) | Self::Hinted { error, .. } => error.to_string(),
            Self::Usage { message, .. } | Self::Pipeline { message, .. } => message.clone(),
            Self::Output(error) => error.to_string(),
        }
    }

    /// Returns the suggested next step. Returns `None` if there is none.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Operation(error) => hint_at(error),
            Self::Hinted { hint, .. } => Some(hint.clone()),
            Self::Usage { hint, .. } | Self::Pipeline { hint, .. } => hint.clone(),
            Self::Output(_) => None,
        }
    }
}

/// Reports why a command failed. Returns the exit code.
pub(crate) fn end(failure: &Failure, output: &Output) -> ExitCode {
    match failure {
        // The program that reads our output has closed the pipe on purpose.
        Failure::Output(error) if error.is_broken_pipe() => ExitCode::from(BROKEN_PIPE),
        _ => {
            output.failure(failure);
            ExitCode::from(exit_code(failure.code()))
        }
    }
}

/// Ends a run whose command line could not be parsed, or asked for help or the version.
pub(crate) fn end_parsing(error: &clap::Error, words: &[OsString]) -> ExitCode {
    let options = words.iter().skip(1).take_while(|word| *word != "--");
    let output = Output::before_parsing(options.clone().any(|word| word == "--json"), color_asked_for(options));
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match output.help(error) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failed) => end(&failed.into(), &output),
        };
    }
    end(&usage_failure(error, words), &output)
}

/// Returns the value of `--color` from a command line that could not be parsed, as far as it can be recognized.
fn color_asked_for<'w>(words: impl Iterator<Item = &'w OsString>) -> ColorWhen {
    let mut words = words.filter_map(|word| word.to_str());
    while let Some(word) = words.next() {
        let value = if word == "--color" { words.next() } else { word.strip_prefix("--color=") };
        match value {
            Some("always") => return ColorWhen::Always,
            Some("never") => return ColorWhen::Never,
            _ => {}
        }
    }
    ColorWhen::Auto
}

/// Converts clap's message of several paragraphs into one sentence and a hint.
fn usage_failure(error: &clap::Error, words: &[OsString]) -> Failure {
    let text = error.render().to_string();
    let message = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let command = command_asked_for(words);
    let meant = || meant_to_list(error).filter(|_| command == "backtrail list");
    let hint = familiar(error, &command).or_else(meant).or_else(|| tip(error)).unwrap_or_else(|| match error.kind() {
        ErrorKind::InvalidSubcommand => "see the commands with: backtrail --help".to_owned(),
        _ => usage(error).unwrap_or_else(|| format!("see: {command} --help")),
    });
    Failure::Usage { message: in_one_line(&in_plain_words(error, message)), hint: Some(in_one_line(&hint)) }
}

fn usage(error: &clap::Error) -> Option<String> {
    match error.get(ContextKind::Usage) {
        Some(ContextValue::StyledStr(usage)) => Some(usage.to_string().trim().replacen("Usage", "usage", 1)),
        _ => None,
    }
}

/// Returns what to write instead of a command or an option that the user knows from another tool.
fn familiar(error: &clap::Error, command: &str) -> Option<String> {
    let word = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let hint = match error.kind() {
        ErrorKind::InvalidSubcommand => instead_of_command(word(ContextKind::InvalidSubcommand)?),
        ErrorKind::UnknownArgument => {
            instead_of_option(command.trim_start_matches("backtrail "), word(ContextKind::InvalidArg)?)
        }
        _ => None,
    };
    hint.map(str::to_owned)
}

/// Returns clap's first suggestion.
fn tip(error: &clap::Error) -> Option<String> {
    let similar = [
        (ContextKind::SuggestedSubcommand, "subcommand"),
        (ContextKind::SuggestedArg, "argument"),
        (ContextKind::SuggestedValue, "value"),
    ];
    let similar = similar.into_iter().find_map(|(kind, noun)| match error.get(kind)? {
        ContextValue::String(word) => Some(format!("a similar {noun} exists: '{word}'")),
        ContextValue::Strings(words) => match &words[..] {
            [word] => Some(format!("a similar {noun} exists: '{word}'")),
            words => Some(format!("some similar {noun}s exist: '{}'", words.join("', '"))),
        },
        _ => None,
    });
    similar.or_else(|| match error.get(ContextKind::Suggested)? {
        ContextValue::StyledStrs(suggestions) => suggestions.first().map(ToString::to_string),
        _ => None,
    })
}

/// Returns a hint for a user who gave `list` a positional argument.
fn meant_to_list(error: &clap::Error) -> Option<String> {
    let word = match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(word) if error.kind() == ErrorKind::UnknownArgument && !word.starts_with('-') => {
            shell_words([word])
        }
        _ => return None,
    };
    Some(hint_for_list(&word))
}

/// Returns a hint for a word that is not a range of checkpoints. The word is quoted for a shell.
pub(crate) fn hint_for_list(word: &str) -> String {
    if word.bytes().all(|byte| byte.is_ascii_digit()) {
        return format!("to list the last {word}: backtrail list -n {word}");
    }
    format!("for changes of a path: backtrail list --path {word}; for a text: backtrail list --grep {word}")
}

/// Replaces the standard library's description of a wrong number: it mentions strings and types, not the expected
/// input.
fn in_plain_words(error: &clap::Error, message: &str) -> String {
    let source = error.source().and_then(|source| source.downcast_ref::<ParseIntError>());
    let ours = match source.map(ParseIntError::kind) {
        Some(IntErrorKind::InvalidDigit | IntErrorKind::Empty) => "write a whole number, 0 or more",
        Some(IntErrorKind::PosOverflow) => "it is too large",
        _ => return message.to_owned(),
    };
    let theirs = source.map(ToString::to_string).unwrap_or_default();
    message.strip_suffix(&theirs).map_or_else(|| message.to_owned(), |start| format!("{start}{ours}"))
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the command from a command line that could not be parsed, as far as it can be recognized.
fn command_asked_for(words: &[OsString]) -> String {
    let program = Cli::command();
    let known = words.iter().skip(1).find_map(|word| program.find_subcommand(word));
    known.map_or_else(|| "backtrail".to_owned(), |command| format!("backtrail {}", command.get_name()))
}

fn exit_code(code: ErrorCode) -> u8 {
    match code {
        ErrorCode::Io | ErrorCode::NoSpace | ErrorCode::Internal => 1,
        ErrorCode::Usage | ErrorCode::Settings | ErrorCode::Pipeline => 2,
        ErrorCode::UnknownCheckpoint | ErrorCode::AmbiguousCheckpoint | ErrorCode::UnknownPath => 3,
        ErrorCode::PlanChanged | ErrorCode::Conflict => 4,
        ErrorCode::StoreDamaged | ErrorCode::StoreTooNew => DAMAGED,
        ErrorCode::ProtectedDirectory
        | ErrorCode::FeatureCheckpoint
        | ErrorCode::PathOutsideWorkspace
        | ErrorCode::GitState => 6,
        ErrorCode::Busy => 7,
        ErrorCode::Interrupted => 130,
    }
}

/// The exit code for a damaged store.
pub(crate) const DAMAGED: u8 = 5;

fn hint_at(error: &Error) -> Option<String> {
    let hint = match error {
        Error::UnknownCheckpoint { .. } | Error::MalformedAddress { .. } | Error::NoEarlierCheckpoint { .. } => {
            "list the checkpoints with: backtrail list"
        }
        Error::BeforeTheFirst { oldest, .. } => {
            return Some(format!("use the id of the oldest, {}, or list all with: backtrail list", oldest.short()));
        }
        Error::AmbiguousCheckpoint { .. } => "write more characters of the id",
        Error::UnknownPath { .. } => "paths are relative to the current directory",
        Error::UnknownAttachment { checkpoint, .. } => {
            return Some(format!("see its attachments with: backtrail show {}", checkpoint.short()));
        }
        Error::BackwardRange { from, to } => {
            return Some(format!("write the older one first: {}..{}", to.short(), from.short()));
        }
        Error::UnknownSession { .. } => "see the sessions with: backtrail list --turns",
        Error::PathOutsideWorkspace { .. } => "choose another workspace with -w DIR",
        Error::ProtectedDirectory { .. } => "choose a directory inside it with -w DIR",
        Error::FeatureCheckpoint { .. } => "delete it anyway with --force",
        Error::InvalidName { .. } => backtrail::RULE_OF_NAMES,
        Error::NoWorkspace { .. } => {
            "if it was deleted, create the directory again and restore the files there with: backtrail restore @"
        }
        Error::GitState { .. } => "restore only the files, without --git",
        Error::PlanChanged | Error::HunkChanged { .. } => "make a new plan with --dry-run",
        Error::Conflict { .. } => "move it away, or restore the rest with --skip-conflicts",
        Error::Unfinished { .. } => "the next command that writes continues it; to continue now: backtrail recover",
        Error::HalfRestored { .. } => {
            "finish it there with: backtrail recover, or take it back with: backtrail recover --abort"
        }
        Error::NotEmpty { .. } => "choose a directory that is new or empty",
        Error::NotAFork { .. } => "see the forks of this workspace with: backtrail forks",
        Error::UnfinishedFork { .. } => "remove that directory, and fork again",
        Error::NotElsewhere { .. } => "choose a directory outside of it",
        Error::StoreDamaged { .. } => "see what is affected with: backtrail verify",
        Error::JournalDamaged { .. } => "keep the files as they are and continue with: backtrail recover --abort",
        Error::StoreTooNew { .. } => "update Backtrail to the version that wrote it",
        Error::NotAStore { .. } => "choose a store, or a directory that is new or empty, with --store DIR",
        Error::StoreOfAnother { .. } => "choose another directory with --store DIR",
        Error::AnotherDirectory { store, .. } | Error::StoreSetAside { store, .. } => {
            return Some(format!("use it for this directory with: backtrail workspaces --adopt {}", shell_path(store)));
        }
        Error::OwnerIsThere { .. } => "work there, or move that directory away first",
        Error::FolderOfProjects { .. } => "go to one of the projects, or choose it with -w DIR",
        Error::Busy { .. } => "try again, or wait longer with --wait SECONDS",
        Error::NoLocks { .. } => "keep the store on a local disk with --store DIR",
        Error::Io { source, .. } | Error::StagingArea { source, .. }
            if source.kind() == io::ErrorKind::FileTooLarge =>
        {
            "allow larger files with: ulimit -f; the file system may have a limit, too"
        }
        Error::Io { .. } | Error::StagingArea { .. } if error.code() == ErrorCode::NoSpace => {
            "free some space on that disk and try again, or put the store on another disk with --store DIR"
        }
        Error::StagingArea { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            "make that directory writable, or keep the store on the same disk as the workspace with --store DIR"
        }
        Error::Internal(_) => "please report this bug, with the commands that led to it",
        _ => return None,
    };
    Some(hint.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a row of the table in `docs/json.md`: the exit status and its codes.
    fn row(line: &str) -> Option<(u8, Vec<&str>)> {
        let (exit, codes) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
        let codes = codes.split(", ").map(|code| code.trim_matches('`')).collect();
        Some((exit.parse().ok()?, codes))
    }

    #[test]
    fn exit_codes_match_the_documentation() {
        let page = include_str!("../../../docs/json.md");
        let (_, failures) = page.split_once("## Failures").unwrap();
        let (table, _) = failures.split_once("### `error`").unwrap();
        let documented: Vec<(u8, Vec<&str>)> = table.lines().filter_map(row).collect();
        for code in ErrorCode::ALL {
            let exits: Vec<u8> =
                documented.iter().filter(|(_, codes)| codes.contains(&code.as_str())).map(|(exit, _)| *exit).collect();
            assert_eq!(exits, [exit_code(code)], "{code:?}");
        }
        assert_eq!(documented.iter().map(|(_, codes)| codes.len()).sum::<usize>(), ErrorCode::ALL.len());
    }

    #[test]
    fn errors_have_a_hint() {
        let hint = |error: Error| Failure::from(error).hint().unwrap_or_default();
        let full = std::io::ErrorKind::StorageFull.into();
        assert!(hint(Error::Io { action: "write", path: "/x".into(), source: full }).contains("--store"));
        assert!(hint(Error::Busy { path: "/x".into(), seconds: 1 }).contains("--wait"));
        let refused = || std::io::ErrorKind::PermissionDenied.into();
        let area = Error::StagingArea { path: "/x/.backtrail-0123456789abcdef".into(), source: refused() };
        assert!(hint(area).contains("writable"));
        assert!(hint(Error::StoreDamaged { store: "/x".into(), problem: "p".into() }).contains("verify"));
        assert!(hint(Error::AmbiguousCheckpoint { word: "abcd".into(), candidates: Vec::new() }).contains("more"));
    }

    #[test]
    fn the_colour_option_is_found_in_invalid_arguments() {
        let color_in = |words: &[&str]| color_asked_for(words.iter().map(OsString::from).collect::<Vec<_>>().iter());
        assert_eq!(color_in(&["--frob", "--color", "always"]), ColorWhen::Always);
        assert_eq!(color_in(&["--color=never"]), ColorWhen::Never);
        assert_eq!(color_in(&["--color"]), ColorWhen::Auto);
    }
}
