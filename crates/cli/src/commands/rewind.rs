//! `rewind`: goes back some checkpoints, or to before a prompt.

use std::process::ExitCode;

use backtrail::{Checkpoint, Direction, Error, RestoreRequest, Workspace};
use clap::Args;

use crate::{
    commands::restore::{conversation, lacking, preview, restore_with, tell_with},
    failure::Failure,
    hooks,
    invocation::Invocation,
    output::plural,
};

/// Go back N checkpoints from where the workspace stands
#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// How many
    #[arg(value_name = "N", default_value_t = 1, allow_negative_numbers = true)]
    steps: u64,
    /// Go back to before the N-th last prompt instead
    #[arg(long)]
    turn: bool,
    /// Show what would happen, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Also bring back the agent's conversation, as a session of its own
    #[arg(long)]
    conversation: bool,
}

pub(crate) fn run(args: &RewindArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    if args.turn && args.steps == 0 {
        return Err(Failure::usage("there is no prompt 0 back: the last one is 1", Some("write: rewind --turn 1")));
    }
    let workspace = if args.dry_run { invocation.workspace()? } else { invocation.workspace_to_restore()? };
    let prompt = args.turn.then(|| turn(&workspace, args.steps)).transpose()?;
    let target = match &prompt {
        Some(prompt) => prompt.id,
        None => invocation.checkpoint(&workspace, &format!("@~{}", args.steps))?,
    };
    let late = prompt.filter(hooks::is_late);
    if let Some(late) = &late {
        note_late(late, invocation);
    }
    let fork = args.conversation.then(|| conversation(&workspace, &target, invocation)).transpose()?;
    if args.dry_run {
        return preview(&workspace, &RestoreRequest::whole(target), fork.as_ref(), invocation);
    }
    let stood = workspace.resolve("@", &invocation.now).ok();
    let request = RestoreRequest::whole(target);
    let lacking = lacking(&workspace, &request)?;
    let done = restore_with(&workspace, &request, fork.as_ref(), invocation)?;
    if let (Some(safety), true) = (done.safety, done.unsaved > 0) {
        invocation.output.note(&format!("unsaved changes were set aside in {}", safety.short()));
    }
    let told = tell_with(&workspace, &done, &lacking, Direction::Forward, fork.as_ref(), invocation)?;
    if args.turn && done.changes.is_empty() && late.is_none() && lacking.is_empty() {
        note_way_further(&workspace, args.steps, stood == Some(target), invocation);
    }
    Ok(told)
}

/// Tells the user that the checkpoint of a prompt was taken too late to show the files before it, and names the one
/// before.
fn note_late(prompt: &Checkpoint, invocation: &Invocation) {
    let meaning = hooks::MEANING_OF_LATE;
    let way = prompt.parent.map(|before| format!("; to the one before it: backtrail restore {}", before.short()));
    invocation.output.note(&format!("the checkpoint of that prompt was {meaning}{}", way.unwrap_or_default()));
}

/// Tells the user how to get to before the previous prompt. Called if no file has changed since this prompt.
fn note_way_further(workspace: &Workspace, steps: u64, stayed: bool, invocation: &Invocation) {
    let further = if stayed { steps.saturating_add(1) } else { 1 };
    if turn(workspace, further).is_ok() {
        let number = if further == 1 { String::new() } else { format!(" {further}") };
        let way = format!("backtrail rewind --turn{number}");
        invocation.output.note(&format!("nothing changed since that prompt; to before the one in front of it: {way}"));
    }
}

/// Returns the checkpoint of the N-th last prompt.
pub(crate) fn turn(workspace: &Workspace, steps: u64) -> Result<Checkpoint, Failure> {
    let mut turns = workspace.turns_behind()?;
    let position = usize::try_from(steps).unwrap_or(usize::MAX).saturating_sub(1);
    let unknown = || Error::UnknownCheckpoint { word: format!("the prompt {steps} back"), nearest: None };
    let hint = match turns.len() {
        0 => "no prompt has a checkpoint: they come from an agent's hooks, see: backtrail install --list".to_owned(),
        count => format!("{} behind this checkpoint; see with: backtrail list --turns", plural(count, "prompt")),
    };
    match turns.len() > position {
        true => Ok(turns.swap_remove(position)),
        false => Err(Failure::from(unknown()).with_hint(hint)),
    }
}
