//! One file for each command: its arguments and its implementation.

pub(crate) mod adopt;
pub(crate) mod bisect;
pub(crate) mod blame;
pub(crate) mod cat;
pub(crate) mod completions;
pub(crate) mod delete;
pub(crate) mod demo;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod events;
pub(crate) mod exclude;
pub(crate) mod export;
pub(crate) mod fork;
pub(crate) mod git;
pub(crate) mod history;
pub(crate) mod hook;
pub(crate) mod init;
pub(crate) mod install;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod overview;
pub(crate) mod pin;
pub(crate) mod pipeline;
pub(crate) mod prune;
pub(crate) mod recover;
pub(crate) mod restore;
pub(crate) mod revert;
pub(crate) mod rewind;
pub(crate) mod save;
pub(crate) mod show;
pub(crate) mod status;
pub(crate) mod step;
pub(crate) mod try_run;
pub(crate) mod ui;
pub(crate) mod undo;
pub(crate) mod verify;
pub(crate) mod watch;
pub(crate) mod workspaces;
pub(crate) mod wrap;

use std::process::ExitCode;

use crate::{cli::Command, failure::Failure, invocation::Invocation};

/// Runs a command. Shows the overview if there is none.
pub(crate) fn run(command: Option<Command>, invocation: &Invocation) -> Result<ExitCode, Failure> {
    match command {
        None => overview::run(invocation),
        Some(Command::Init(args)) => init::run(&args, invocation),
        Some(Command::Save(args)) => save::run(args, invocation),
        Some(Command::List(args)) => list::run(&args, invocation),
        Some(Command::Show(args)) => show::run(&args, invocation),
        Some(Command::Status(args)) => status::run(&args, invocation),
        Some(Command::Step(args)) => step::run(args, invocation),
        Some(Command::Try(args)) => try_run::run(&args, invocation),
        Some(Command::Wrap(args)) => wrap::run(&args, invocation),
        Some(Command::Pipeline(args)) => pipeline::run(&args, invocation),
        Some(Command::Diff(args)) => diff::run(&args, invocation),
        Some(Command::Cat(args)) => cat::run(&args, invocation),
        Some(Command::Restore(args)) => restore::run(&args, invocation),
        Some(Command::Revert(args)) => revert::run(&args, invocation),
        Some(Command::Rewind(args)) => rewind::run(&args, invocation),
        Some(Command::Undo(args)) => undo::undo(&args, invocation),
        Some(Command::Redo(args)) => undo::redo(&args, invocation),
        Some(Command::Recover(args)) => recover::run(&args, invocation),
        Some(Command::History(args)) => history::run(&args, invocation),
        Some(Command::Blame(args)) => blame::run(&args, invocation),
        Some(Command::Bisect(args)) => bisect::run(&args, invocation),
        Some(Command::Export(args)) => export::run(&args, invocation),
        Some(Command::Fork(args)) => fork::run(&args, invocation),
        Some(Command::Adopt(args)) => adopt::run(&args, invocation),
        Some(Command::Forks(args)) => fork::list(&args, invocation),
        Some(Command::Delete(args)) => delete::run(&args, invocation),
        Some(Command::Prune(args)) => prune::run(&args, invocation),
        Some(Command::Pin(args)) => pin::pin(&args, invocation),
        Some(Command::Unpin(args)) => pin::unpin(&args, invocation),
        Some(Command::Exclude(args)) => exclude::run(&args, invocation),
        Some(Command::Verify(args)) => verify::run(&args, invocation),
        Some(Command::Watch(args)) => watch::run(&args, invocation),
        Some(Command::Doctor(args)) => doctor::run(&args, invocation),
        Some(Command::Events(args)) => events::run(&args, invocation),
        Some(Command::Workspaces(args)) => workspaces::run(&args, invocation),
        Some(Command::ForgetWorkspace(args)) => workspaces::forget(&args, invocation),
        Some(Command::Ui(args)) => ui::run(&args, invocation),
        Some(Command::Mcp(args)) => mcp::run(&args, invocation),
        Some(Command::Git(args)) => git::run(&args, invocation),
        Some(Command::Hook(args)) => hook::run(&args),
        Some(Command::Install(args)) => install::install(&args, invocation),
        Some(Command::Uninstall(args)) => install::uninstall(&args, invocation),
        Some(Command::Demo(args)) => demo::run(&args, invocation),
        Some(Command::Completions(args)) => completions::run(&args, invocation),
        Some(Command::Man(args)) => man::run(&args, invocation),
    }
}
