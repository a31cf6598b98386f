//! `rewind`: goes back some checkpoints, or to before a prompt.

use std::process::ExitCode;

use backtrail::{Checkpoint, CheckpointId, Direction, Error, Kind, OthersWork, RestoreRequest, Workspace};
use clap::Args;
use jiff::{Timestamp, tz::TimeZone};

use crate::{
    commands::restore::{conversation, lacking, preview, restore_with, tell_with},
    failure::Failure,
    hooks,
    invocation::Invocation,
    output::plural,
};

/// Go back N checkpoints from the one that the workspace stands on
#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// The number of checkpoints, or of prompts with --turn
    #[arg(value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    steps: u64,
    /// Go back to before the N-th last prompt instead
    #[arg(long)]
    turn: bool,
    /// Show what would happen, but change nothing
    #[arg(long)]
    dry_run: bool,
    /// Also restore the agent's conversation, as a new session
    #[arg(long)]
    conversation: bool,
}

pub(crate) fn run(args: &RewindArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    if args.turn && args.steps == 0 {
        return Err(Failure::usage("--turn 0 is not valid: 1 is the last prompt", Some("write: rewind --turn 1")));
    }
    let workspace = if args.dry_run { invocation.workspace()? } else { invocation.workspace_to_restore()? };
    let prompt = args.turn.then(|| turn(&workspace, args.steps)).transpose()?;
    let target = match &prompt {
        Some(prompt) => prompt.id,
        None => invocation.checkpoint(&workspace, &format!("@~{}", args.steps))?,
    };
    if args.turn {
        note_others_work(&workspace, &target, args.steps, invocation)?;
    }
    let late = prompt.filter(hooks::is_late);
    if let Some(late) = &late {
        note_late(late, invocation);
    }
    let also = if args.turn { workspace.captured_later(&target)? } else { Vec::new() };
    let request = RestoreRequest { also, ..RestoreRequest::whole(target) };
    let fork = args.conversation.then(|| conversation(&workspace, &target, invocation)).transpose()?;
    if args.dry_run {
        return preview(&workspace, &request, fork.as_ref(), invocation);
    }
    let stood = workspace.resolve("@", &invocation.now).ok();
    let lacking = lacking(&workspace, &request)?;
    let done = restore_with(&workspace, &request, fork.as_ref(), invocation)?;
    if let (Some(safety), true) = (done.safety, done.unsaved > 0) {
        invocation.output.note(&format!("unsaved changes are kept in {}", safety.short()));
    }
    let told = tell_with(&workspace, &done, &lacking, Direction::Forward, fork.as_ref(), invocation)?;
    if args.turn && done.changes.is_empty() && late.is_none() && lacking.is_empty() {
        note_way_further(&workspace, args.steps, stood == Some(target), invocation);
    }
    Ok(told)
}

/// Tells the user whose other work goes back together with a prompt, and how to keep it.
fn note_others_work(
    workspace: &Workspace,
    target: &CheckpointId,
    steps: u64,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let OthersWork { sessions, by_hand } = workspace.others_work_since(target)?;
    let files = |count: usize| plural(count, "file");
    let mut whose: Vec<String> =
        sessions.iter().map(|(session, count)| format!("{} of the session {session}", files(*count))).collect();
    if by_hand > 0 {
        whose.push(format!("{} edited by hand", files(by_hand)));
    }
    if !whose.is_empty() {
        let number = if steps == 1 { String::new() } else { format!(" {steps}") };
        let way = format!("to take back that prompt alone: backtrail revert --turn{number}");
        invocation.output.note(&format!("this takes along {}; {way}", whose.join(" and ")));
    }
    Ok(())
}

/// Tells the user that the checkpoint of a prompt was taken too late to show the files before it, and names the one
/// before.
fn note_late(prompt: &Checkpoint, invocation: &Invocation) {
    let meaning = hooks::MEANING_OF_LATE;
    let way = prompt
        .parent
        .map(|before| format!("; to go to the checkpoint before it: backtrail restore {}", before.short()));
    invocation.output.note(&format!("the checkpoint of that prompt was {meaning}{}", way.unwrap_or_default()));
}

/// Tells the user how to get to before the previous prompt. Called if no file has changed since this prompt.
fn note_way_further(workspace: &Workspace, steps: u64, stayed: bool, invocation: &Invocation) {
    let further = if stayed { steps.saturating_add(1) } else { 1 };
    if turn(workspace, further).is_ok() {
        let number = if further == 1 { String::new() } else { format!(" {further}") };
        let way = format!("backtrail rewind --turn{number}");
        invocation
            .output
            .note(&format!("nothing changed since that prompt; to go back to before the previous prompt: {way}"));
    }
}

/// Returns whether the workspace stands on the checkpoint of a prompt. An error only makes the hint less precise.
fn is_at_a_prompt(workspace: &Workspace) -> bool {
    // "@" does not depend on the time.
    let anytime = Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
    let current = workspace.resolve("@", &anytime).and_then(|id| workspace.get(&id));
    current.is_ok_and(|current| current.kind == Kind::Turn)
}

/// Returns the checkpoint of the N-th last prompt.
pub(crate) fn turn(workspace: &Workspace, steps: u64) -> Result<Checkpoint, Failure> {
    let mut turns = workspace.turns_behind()?;
    let position = usize::try_from(steps).unwrap_or(usize::MAX).saturating_sub(1);
    let unknown = || Error::UnknownCheckpoint { word: format!("--turn {steps}"), nearest: None };
    let hint = match turns.len() {
        0 if is_at_a_prompt(workspace) => {
            "the workspace is already at the first prompt; to go forward again: backtrail undo".to_owned()
        }
        0 => "no prompt has a checkpoint; an agent's hooks take them, see: backtrail install --list".to_owned(),
        count => format!("only {} before this checkpoint; list with: backtrail list --turns", plural(count, "prompt")),
    };
    match turns.len() > position {
        true => Ok(turns.swap_remove(position)),
        false => Err(Failure::from(unknown()).with_hint(hint)),
    }
}
