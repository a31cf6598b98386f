//! `undo` and `redo`: take back a restore or a deletion, and take back an undo.

use std::process::ExitCode;

use backtrail::{Direction, Workspace, json::RestoreJson};
use clap::Args;

use crate::{
    commands::restore::{named, tell},
    failure::Failure,
    invocation::{Invocation, NOTHING_SAVED},
    output::plural,
    question::{ask, can_be_asked, is_yes},
};

/// Take back the last restore or delete; repeat to take back the one before it
///
/// Takes back what `restore`, `revert`, `rewind`, `adopt`, `delete`, or `try` did last. Edits made since are kept in a
/// safety checkpoint. On a terminal, you are asked first if checkpoints were saved since.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Show what would happen, but change nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

/// Take back the last undo
#[derive(Debug, Args)]
pub(crate) struct RedoArgs {
    /// Show what would happen, but change nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn undo(args: &UndoArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    if args.dry_run {
        return preview(Direction::Undo, invocation);
    }
    if !args.yes && can_be_asked(invocation) && !wants_undo(invocation)? {
        invocation.output.done("nothing was taken back")?;
        return Ok(ExitCode::SUCCESS);
    }
    walk(Direction::Undo, invocation)
}

pub(crate) fn redo(args: &RedoArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    if args.dry_run { preview(Direction::Redo, invocation) } else { walk(Direction::Redo, invocation) }
}

/// Asks whether to take something back, if checkpoints were saved since. Returns `true` if there is no need to ask.
fn wants_undo(invocation: &Invocation) -> Result<bool, Failure> {
    let workspace = invocation.workspace()?;
    let Some(taken_back) = workspace.next_taken_back(Direction::Undo)? else { return Ok(true) };
    if taken_back.saves_since == 0 {
        return Ok(true);
    }
    let said = named(&workspace, &taken_back).said(&invocation.now);
    let since = plural(taken_back.saves_since, "checkpoint");
    let question = format!("{since} saved since; take back {said}? (y/n) ");
    Ok(is_yes(ask(&question, invocation)?.as_deref()))
}

fn preview(direction: Direction, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    let planned = match direction {
        Direction::Redo => workspace.plan_redo()?,
        _ => workspace.plan_undo()?,
    };
    let Some((plan, taken_back)) = planned else { return nothing(&workspace, direction, invocation) };
    let output = &invocation.output;
    if output.is_json() {
        output.json(&RestoreJson::from(&plan).concerning(&taken_back.deleted, direction))?;
    } else {
        let restore = named(&workspace, &taken_back);
        output.text(&restore.plan_text(&plan, direction, &invocation.now, output.paint))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn walk(direction: Direction, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace_to_restore()?;
    let now = invocation.now.timestamp();
    let progress = invocation.output.progress(&workspace, "restoring");
    let done = match direction {
        Direction::Redo => workspace.redo(now),
        _ => workspace.undo(now),
    };
    drop(progress);
    match done? {
        Some(done) => {
            if let (Direction::Undo, Some(safety), true) = (direction, done.safety, done.unsaved > 0) {
                let id = safety.short();
                invocation
                    .output
                    .note(&format!("unsaved changes are kept in {id}; get them back with: backtrail redo"));
            }
            tell(&workspace, &done, direction, invocation)
        }
        None => nothing(&workspace, direction, invocation),
    }
}

fn nothing(workspace: &Workspace, direction: Direction, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let output = &invocation.output;
    if output.is_json() {
        output.json(&RestoreJson::nothing(workspace.current()?))?;
    } else {
        let what = if direction == Direction::Redo { "no undo to take back" } else { "no restore to take back" };
        output.done(what)?;
    }
    output.note(match workspace.current()? {
        Some(_) => "to go back to the last checkpoint: backtrail restore @",
        None => NOTHING_SAVED,
    });
    Ok(ExitCode::SUCCESS)
}
