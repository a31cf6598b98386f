//! The command line: the global options, the list of commands, and the parsers of their values.
//!
//! The arguments of each command are defined beside its code, in [`commands`](crate::commands).

use std::{ffi::OsString, path::PathBuf, time::Duration};

use backtrail::{Author, Kind, settings::parse_duration};
use clap::{
    Args, Parser, Subcommand, ValueEnum,
    builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser},
};

use crate::commands::{
    adopt, bisect, blame, cat, completions, delete, demo, diff, doctor, events, exclude, export, fork, git, history,
    hook, init, install, list, man, mcp, pin, pipeline, prune, recover, restore, revert, rewind, save, show, status,
    step, try_run, ui, undo, verify, watch, workspaces, wrap,
};
use crate::logging::LogLevel;

/// Saves checkpoints of a workspace and goes back to them.
///
/// A checkpoint holds every file of the workspace as it was. Checkpoints are kept in a store outside the workspace.
/// Your own git repository is never changed, except by restore --git. Without a command, an overview is shown.
///
/// A checkpoint is named by its id, by the first four or more characters of its id, by its name, or by one of these
/// words: @ (the one that the workspace stands on), latest, step:N, turn:N (prompt N of the last session), commit:HASH
/// (taken while your repository was at that commit), before:ID, ago:20m, at:14:30 or at:2026-11-15T14:30. ID~N is N
/// steps before any of them. FROM..TO is a range for list, show, diff and revert.
#[derive(Debug, Parser)]
#[command(name = "backtrail", version, max_term_width = 100, after_help = EXIT_STATUS)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) options: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

const EXIT_STATUS: &str = "\
Exit status: 0 done, 1 failed, 2 usage or settings, 3 no such checkpoint or path, 4 conflict, 5 the store is damaged, \
6 refused, 7 another process is using the workspace, 130 interrupted.";

/// The options of every command, given before or after its name.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalOptions {
    /// The workspace [default: the nearest directory around the current one that has a store, else the nearest that has
    /// a .git, else the current one; a nearer .git is preferred if the directory with the store has none or skips it]
    #[arg(short, long, global = true, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Keep the store in this directory
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) store: Option<PathBuf>,
    /// Print one JSON document on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only errors and the requested output
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Seconds to wait for another process that is using the workspace
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 30, allow_negative_numbers = true)]
    pub(crate) wait: u64,
    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = ColorWhen::Auto)]
    pub(crate) color: ColorWhen,
    /// Print what the program does to stderr, up to this level; without it BACKTRAIL_LOG
    #[arg(long, global = true, value_name = "LEVEL", value_enum)]
    pub(crate) log: Option<LogLevel>,
}

impl GlobalOptions {
    /// Returns the maximum time to wait for another process.
    pub(crate) fn patience(&self) -> Duration {
        // Practically unlimited, and a clock can still represent the deadline.
        const YEAR: u64 = 366 * 86_400;
        Duration::from_secs(self.wait.min(YEAR))
    }
}

/// When to use colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, or if CLICOLOR_FORCE is set; not if NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(init::InitArgs),
    #[command(visible_alias = "checkpoint")]
    Save(save::SaveArgs),
    Step(step::StepArgs),
    Try(try_run::TryArgs),
    Wrap(wrap::WrapArgs),
    #[command(visible_alias = "run")]
    Pipeline(pipeline::PipelineArgs),
    #[command(visible_aliases = ["log", "ls"])]
    List(list::ListArgs),
    Show(show::ShowArgs),
    Status(status::StatusArgs),
    Diff(diff::DiffArgs),
    Cat(cat::CatArgs),
    History(history::HistoryArgs),
    #[command(visible_alias = "annotate")]
    Blame(blame::BlameArgs),
    Bisect(bisect::BisectArgs),
    #[command(visible_alias = "rollback")]
    Restore(restore::RestoreArgs),
    Revert(revert::RevertArgs),
    Rewind(rewind::RewindArgs),
    Undo(undo::UndoArgs),
    Redo(undo::RedoArgs),
    Recover(recover::RecoverArgs),
    Export(export::ExportArgs),
    Fork(fork::ForkArgs),
    Forks(fork::ForksArgs),
    Adopt(adopt::AdoptArgs),
    #[command(visible_alias = "rm")]
    Delete(delete::DeleteArgs),
    Prune(prune::PruneArgs),
    Pin(pin::PinArgs),
    Unpin(pin::UnpinArgs),
    Exclude(exclude::ExcludeArgs),
    Verify(verify::VerifyArgs),
    Watch(watch::WatchArgs),
    Doctor(doctor::DoctorArgs),
    Events(events::EventsArgs),
    Workspaces(workspaces::WorkspacesArgs),
    #[command(hide = true)]
    ForgetWorkspace(workspaces::ForgetArgs),
    Install(install::InstallArgs),
    Uninstall(install::UninstallArgs),
    Hook(hook::HookArgs),
    Ui(ui::UiArgs),
    Mcp(mcp::McpArgs),
    Git(git::GitArgs),
    Demo(demo::DemoArgs),
    Completions(completions::CompletionsArgs),
    Man(man::ManArgs),
}

impl Command {
    /// Returns the name of a command that may write. Returns `None` for a command that only reads, or that writes only
    /// files that the user names.
    pub(crate) fn name_if_writing(&self) -> Option<&'static str> {
        Some(match self {
            Self::Init(_) => "init",
            Self::Save(_) => "save",
            Self::Step(_) => "step",
            Self::Try(_) => "try",
            Self::Wrap(_) => "wrap",
            Self::Pipeline(_) => "pipeline",
            Self::Restore(_) => "restore",
            Self::Revert(_) => "revert",
            Self::Fork(_) => "fork",
            Self::Adopt(_) => "adopt",
            Self::Bisect(_) => "bisect",
            Self::Rewind(_) => "rewind",
            Self::Undo(_) => "undo",
            Self::Redo(_) => "redo",
            Self::Recover(_) => "recover",
            Self::Export(_) => "export",
            Self::Delete(_) => "delete",
            Self::Prune(_) => "prune",
            Self::Pin(_) => "pin",
            Self::Unpin(_) => "unpin",
            Self::Exclude(_) => "exclude",
            Self::Workspaces(_) => "workspaces",
            Self::ForgetWorkspace(_) => "forget-workspace",
            Self::Watch(_) => "watch",
            Self::Install(_) => "install",
            Self::Uninstall(_) => "uninstall",
            Self::Mcp(_) => "mcp",
            Self::Ui(_) => "ui",
            Self::List(_)
            | Self::Show(_)
            | Self::Status(_)
            | Self::Diff(_)
            | Self::Cat(_)
            | Self::History(_)
            | Self::Blame(_)
            | Self::Forks(_)
            | Self::Verify(_)
            | Self::Doctor(_)
            | Self::Events(_)
            | Self::Hook(_)
            | Self::Git(_)
            | Self::Demo(_)
            | Self::Completions(_)
            | Self::Man(_) => return None,
        })
    }
}

/// Parses any text. Bytes that are not UTF-8 are replaced.
pub(crate) fn text() -> impl TypedValueParser<Value = String> {
    OsStringValueParser::new().map(|text: OsString| text.to_string_lossy().into_owned())
}

/// Parses the name of a kind.
pub(crate) fn kind() -> impl TypedValueParser<Value = Kind> {
    one_of(Kind::ALL)
}

/// Parses the name of a kind that the user can ask for.
pub(crate) fn kind_to_save() -> impl TypedValueParser<Value = Kind> {
    one_of(Kind::ALL.into_iter().filter(|kind| *kind != Kind::Safety))
}

fn one_of(kinds: impl IntoIterator<Item = Kind>) -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(kinds.into_iter().map(Kind::as_str)).try_map(|word| word.parse::<Kind>())
}

/// Parses the author of the changes in a checkpoint.
pub(crate) fn author() -> impl TypedValueParser<Value = Author> {
    PossibleValuesParser::new([Author::Agent, Author::Other].map(Author::as_str)).try_map(|word| word.parse::<Author>())
}

/// Parses a number of seconds, or a duration such as `5m`.
pub(crate) fn seconds_or_duration(text: &str) -> Result<Duration, String> {
    match text.trim().parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds)
            .map_err(|_| "it is negative or too long; write it like 90, \"90s\" or \"5m\"".to_owned()),
        Err(_) => parse_duration(text),
    }
}

/// Parses a number that is 1 or more.
pub(crate) fn from_one(text: &str) -> Result<u64, String> {
    let number = text.trim().parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "write a whole number, 1 or more".to_owned())
}

/// The two sides of `KEY=VALUE`.
#[derive(Debug, Clone)]
pub(crate) struct Assignment<V> {
    pub(crate) key: String,
    pub(crate) value: V,
}

/// Parses `KEY=VALUE`. The value may contain further `=`.
pub(crate) fn assignment<V>() -> impl TypedValueParser<Value = Assignment<V>>
where
    V: From<OsString> + Clone + Send + Sync + 'static,
{
    OsStringValueParser::new().try_map(|text: OsString| {
        let (key, value) = split_at_equals(&text).ok_or("write it as KEY=VALUE")?;
        Ok::<_, &'static str>(Assignment { key, value: V::from(value) })
    })
}

fn split_at_equals(text: &std::ffi::OsStr) -> Option<(String, OsString)> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let bytes = text.as_bytes();
    let equals = bytes.iter().position(|byte| *byte == b'=').filter(|position| *position > 0)?;
    let key = String::from_utf8_lossy(&bytes[..equals]).into_owned();
    Some((key, OsString::from_vec(bytes[equals + 1..].to_vec())))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn definitions_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn assignments_are_split_at_the_first_equals_sign() {
        let split = |text: &str| split_at_equals(text.as_ref());
        assert_eq!(split("k=a=b"), Some(("k".into(), "a=b".into())));
        assert_eq!(split("k="), Some(("k".into(), "".into())));
        assert_eq!((split("none"), split("=v")), (None, None));
    }
}
