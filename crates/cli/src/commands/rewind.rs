//! `rewind`: goes back some checkpoints, or to before a prompt.

use std::{path::PathBuf, process::ExitCode};

use backtrail::{Checkpoint, CheckpointId, Direction, Error, Kind, OthersWork, RestoreRequest, Workspace};
use clap::Args;
use jiff::{Timestamp, tz::TimeZone};

use crate::{
    cli::text,
    commands::restore::{conversation, lacking, preview, restore_with, tell_with},
    failure::Failure,
    hooks,
    invocation::Invocation,
    output::{plural, shell_words},
    question::{ask, can_be_asked, is_yes},
};

/// Go back N checkpoints from the one that the workspace stands on
///
/// With --turn, go back to before the N-th last prompt, and with --session to before the first prompt of that session.
/// If work of another session or edits by hand would go back, too, you are asked first on a terminal.
#[derive(Debug, Args)]
pub(crate) struct RewindArgs {
    /// The number of checkpoints, or of prompts with --turn [default: 1]
    #[arg(value_name = "N", allow_negative_numbers = true)]
    steps: Option<u64>,
    /// Only these files and directories
    #[arg(last = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Go back to before the N-th last prompt instead
    #[arg(long)]
    turn: bool,
    /// Go back to before the first prompt of this session; with --turn: count only the prompts of this session
    #[arg(long, value_name = "ID", value_parser = text())]
    session: Option<String>,
    /// Show what would happen, but change nothing
    #[arg(long)]
    dry_run: bool,
    /// Don't ask before work of another session or edits by hand go back, too
    #[arg(short, long)]
    yes: bool,
    /// Also restore HEAD and the branch of your git repository, and reset the index to that commit
    #[arg(long, conflicts_with = "paths")]
    git: bool,
    /// Also remove files that an incomplete checkpoint does not have
    #[arg(long)]
    exact: bool,
    /// Skip paths that have something in the way, instead of refusing
    #[arg(long)]
    skip_conflicts: bool,
    /// Go back only if the plan is still the one that --dry-run showed
    #[arg(long, value_name = "HASH")]
    plan: Option<String>,
    /// Also restore the agent's conversation, as a new session
    #[arg(long)]
    conversation: bool,
}

pub(crate) fn run(args: &RewindArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let steps = steps(args)?;
    let workspace = if args.dry_run { invocation.workspace()? } else { invocation.workspace_to_restore()? };
    let prompt = prompt(args, steps, &workspace)?;
    let target = match &prompt {
        Some(prompt) => prompt.id,
        None => invocation.checkpoint(&workspace, &format!("@~{steps}"))?,
    };
    let request = request(args, target, prompt.is_some(), &workspace, invocation)?;
    if let Some(prompt) = &prompt
        && !may_go_on(args, prompt, steps, &request, &workspace, invocation)?
    {
        invocation.output.done("nothing was changed")?;
        return Ok(ExitCode::SUCCESS);
    }
    if !args.git {
        note_moved_head(&workspace, &target, invocation)?;
    }
    let late = prompt.filter(hooks::is_late);
    if let Some(late) = &late {
        note_late(late, invocation);
    }
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
    let is_plain_turn = args.turn && args.session.is_none() && args.paths.is_empty();
    if is_plain_turn && done.changes.is_empty() && late.is_none() && lacking.is_empty() {
        note_way_further(&workspace, steps, stood == Some(target), invocation);
    }
    Ok(told)
}

/// Returns the number of checkpoints or prompts to go back.
fn steps(args: &RewindArgs) -> Result<u64, Failure> {
    match (args.turn, args.session.is_some(), args.steps) {
        (true, _, Some(0)) => {
            Err(Failure::usage("--turn 0 is not valid: 1 is the last prompt", Some("write: rewind --turn 1")))
        }
        (false, true, Some(steps)) => {
            let hint = format!("to count the prompts of the session: rewind --turn {steps} --session ID");
            Err(Failure::usage(
                "--session alone goes back to before the first prompt, and takes no number",
                Some(&hint),
            ))
        }
        (_, _, steps) => Ok(steps.unwrap_or(1)),
    }
}

/// Returns the prompt to go back to. Returns `None` if checkpoints are counted.
fn prompt(args: &RewindArgs, steps: u64, workspace: &Workspace) -> Result<Option<Checkpoint>, Failure> {
    let Some(session) = &args.session else {
        return if args.turn { turn(workspace, steps).map(Some) } else { Ok(None) };
    };
    let mut turns = workspace.turns_behind()?;
    turns.retain(|turn| turn.origin.session.as_ref() == Some(session));
    let Some(last) = turns.len().checked_sub(1) else {
        return Err(Error::UnknownSession { session: session.clone() }.into());
    };
    let position = if args.turn { usize::try_from(steps - 1).unwrap_or(usize::MAX) } else { last };
    if position > last {
        let unknown = Error::UnknownCheckpoint { word: format!("--turn {steps}"), nearest: None };
        let hint = format!("only {} of that session before this checkpoint", plural(turns.len(), "prompt"));
        return Err(Failure::from(unknown).with_hint(hint));
    }
    Ok(Some(turns.swap_remove(position)))
}

fn request(
    args: &RewindArgs,
    target: CheckpointId,
    is_prompt: bool,
    workspace: &Workspace,
    invocation: &Invocation,
) -> Result<RestoreRequest, Failure> {
    let scope = invocation.known_scope(workspace, &args.paths)?;
    let mut also = if is_prompt { workspace.captured_later(&target)? } else { Vec::new() };
    also.retain(|later| scope.contains(&later.path));
    Ok(RestoreRequest {
        scope,
        also,
        git: args.git,
        exact: args.exact,
        skip_conflicts: args.skip_conflicts,
        plan: args.plan.clone(),
        ..RestoreRequest::whole(target)
    })
}

/// Tells the user whose other work goes back together with a prompt, and how to keep it. On a terminal, asks whether to
/// go on, and returns the answer.
fn may_go_on(
    args: &RewindArgs,
    prompt: &Checkpoint,
    steps: u64,
    request: &RestoreRequest,
    workspace: &Workspace,
    invocation: &Invocation,
) -> Result<bool, Failure> {
    let OthersWork { sessions, by_hand } = workspace.others_work_since(&prompt.id, &request.scope)?;
    let files = |count: usize| plural(count, "file");
    let mut whose: Vec<String> =
        sessions.iter().map(|(session, count)| format!("{} of the session {session}", files(*count))).collect();
    if by_hand > 0 {
        whose.push(format!("{} edited by hand", files(by_hand)));
    }
    if whose.is_empty() {
        return Ok(true);
    }
    let (what, way) = revert_instead(args, prompt, steps);
    invocation.output.note(&format!("this takes along {}; to take back {what} alone: {way}", whose.join(" and ")));
    if args.yes || args.dry_run || !can_be_asked(invocation) {
        return Ok(true);
    }
    let answer = ask("go back anyway? (y/n) ", invocation)?;
    Ok(is_yes(answer.as_deref()))
}

/// Returns the work of the prompt, and the command that takes back nothing else.
fn revert_instead(args: &RewindArgs, prompt: &Checkpoint, steps: u64) -> (&'static str, String) {
    match (&args.session, prompt.origin.turn) {
        (Some(session), _) if !args.turn => {
            ("that session", format!("backtrail revert --session {}", shell_words([session])))
        }
        (Some(session), Some(turn)) => {
            ("that prompt", format!("backtrail revert turn:{turn} --session {}", shell_words([session])))
        }
        _ if steps == 1 => ("that prompt", "backtrail revert --turn".to_owned()),
        _ => ("that prompt", format!("backtrail revert --turn {steps}")),
    }
}

/// Tells the user if the repository was moved to another commit or branch since the checkpoint.
fn note_moved_head(workspace: &Workspace, target: &CheckpointId, invocation: &Invocation) -> Result<(), Failure> {
    let (Some(then), Some(now)) = (workspace.get(target)?.git, workspace.git_position()) else { return Ok(()) };
    if (&then.commit, &then.branch) == (&now.commit, &now.branch) || then.commit.is_none() {
        return Ok(());
    }
    let place = |branch: &Option<String>, commit: &Option<String>| {
        let commit: String = commit.as_deref().unwrap_or("no commit").chars().take(12).collect();
        branch.as_ref().map_or_else(|| commit.clone(), |branch| format!("{branch} at {commit}"))
    };
    let (then, now) = (place(&then.branch, &then.commit), place(&now.branch, &now.commit));
    let way = "only the files go back; to move your repository, too: add --git";
    invocation.output.note(&format!("your repository has moved since, from {then} to {now}; {way}"));
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
