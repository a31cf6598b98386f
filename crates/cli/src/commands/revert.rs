//! `revert`: takes back one thing that was done, and keeps all later work.

use std::{path::PathBuf, process::ExitCode};

use backtrail::{
    Checkpoint, CheckpointId, Error, OnConflict, RevertRequest, RevertTarget, Workspace, json::RevertJson,
};
use clap::Args;

use crate::{
    cli::{from_one, text},
    commands::{restore::HunkArgs, rewind::turn, wrap::WRAPPED},
    failure::Failure,
    invocation::Invocation,
    output::{conflict_line, revert_plan_text, reverted_text, reverted_warnings, title, way_back},
};

/// Take back what a checkpoint, a prompt or a session changed, and keep all later work
///
/// Each changed file is merged with the edits that came after. If the same lines were changed since, nothing is written
/// and the conflicts are listed. A safety checkpoint is taken first, so that `backtrail undo` takes it back.
#[derive(Debug, Args)]
pub(crate) struct RevertArgs {
    /// The checkpoint; FROM..TO for everything between two; turn:N for a prompt
    #[arg(value_name = "WHAT", value_parser = text())]
    what: Option<String>,
    /// The agent's work for the N-th last prompt
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1", value_parser = from_one)]
    turn: Option<u64>,
    /// All the agent's work in this session; next to turn:N, the session of the prompt
    #[arg(long, value_name = "S", value_parser = text())]
    session: Option<String>,
    /// Only these files and directories
    #[arg(value_name = "PATH", last = true)]
    paths: Vec<PathBuf>,
    /// Show what would happen, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Go on only where the plan is still the one that --dry-run showed
    #[arg(long, value_name = "HASH")]
    plan: Option<String>,
    /// Leave files with conflicts as they are, rather than refuse
    #[arg(long, conflicts_with = "markers")]
    skip_conflicts: bool,
    /// Write overlapping lines into the file with conflict markers, rather than refuse
    #[arg(long)]
    markers: bool,
    #[command(flatten)]
    hunks: HunkArgs,
}

pub(crate) fn run(args: &RevertArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let hunks = args.hunks.choice(invocation)?;
    let workspace = if args.dry_run { invocation.workspace()? } else { invocation.workspace_to_restore()? };
    let target = target(args, &workspace, invocation)?;
    let mut request = RevertRequest {
        scope: invocation.scope(&workspace, &args.paths)?,
        on_conflict: on_conflict(args),
        plan: args.plan.clone(),
        hunks,
        ..RevertRequest::whole(target)
    };
    let explained = |error: Error| explain(error, &workspace, args, invocation);
    if args.hunks.patch && !args.dry_run {
        let plan = workspace.plan_revert(&request).map_err(explained)?;
        match args.hunks.ask(&plan.restore.changes, "take back", invocation)? {
            Some(chosen) => request.hunks = chosen,
            None => return Ok(ExitCode::SUCCESS),
        }
    }
    if args.dry_run {
        preview(&workspace, &request, invocation, explained)
    } else {
        apply(&workspace, &request, invocation, explained)
    }
}

fn on_conflict(args: &RevertArgs) -> OnConflict {
    match (args.skip_conflicts, args.markers) {
        (true, _) => OnConflict::Skip,
        (_, true) => OnConflict::Markers,
        _ => OnConflict::Refuse,
    }
}

/// Returns what the arguments ask to take back. Exactly one of them must say it.
fn target(args: &RevertArgs, workspace: &Workspace, invocation: &Invocation) -> Result<RevertTarget, Failure> {
    match (&args.what, args.turn, &args.session) {
        (Some(what), None, session) if session.is_none() || what.starts_with("turn:") => {
            let now = invocation.now.for_address(what);
            match workspace.resolve_revert(what, session.as_deref(), &now) {
                // The other words are explained as for every command.
                Err(Error::UnknownCheckpoint { .. } | Error::MalformedAddress { .. }) if !what.contains("..") => {
                    invocation.checkpoint_not_path(workspace, what, "revert @ --", &[]).map(RevertTarget::Checkpoint)
                }
                found => Ok(found?),
            }
        }
        (None, Some(back), None) => Ok(RevertTarget::Checkpoint(turn(workspace, back)?.id)),
        (None, None, Some(session)) => Ok(RevertTarget::Session(session.clone())),
        (None, None, None) => Err(nothing_named(workspace)?),
        _ => Err(Failure::usage("WHAT, --turn and --session each say what to take back", Some("give one of them"))),
    }
}

/// Returns the failure for a command line that does not say what to take back. Its hint names the newest prompt.
fn nothing_named(workspace: &Workspace) -> Result<Failure, Failure> {
    let newest: Option<Checkpoint> = workspace.turns_behind()?.into_iter().next();
    let hint = match newest {
        Some(prompt) => format!("the newest prompt is {}: backtrail revert --turn", title(&prompt)),
        None => "name a checkpoint; see them with: backtrail list".to_owned(),
    };
    Ok(Failure::usage("nothing to take back is named", Some(&hint)))
}

fn explain(error: Error, workspace: &Workspace, args: &RevertArgs, invocation: &Invocation) -> Failure {
    let hint = match &error {
        Error::Conflict { .. } => {
            "see them with --dry-run; take back the rest with --skip-conflicts, or write them into the files with \
             --markers"
                .to_owned()
        }
        Error::ParentDeleted { id, before: Some(before) } => {
            format!(
                "take back everything since the one before it with: backtrail revert {}..{}",
                before.short(),
                id.short()
            )
        }
        Error::FirstCheckpoint { .. } => match workspace.turns_behind() {
            Ok(turns) if !turns.is_empty() => "to take back a prompt: backtrail revert --turn".to_owned(),
            _ => "name a later one; see them with: backtrail list".to_owned(),
        },
        _ => {
            return args
                .paths
                .iter()
                .fold(error.into(), |failure, named| invocation.explain_path(workspace, failure, named));
        }
    };
    Failure::from(error).with_hint(hint)
}

fn preview(
    workspace: &Workspace,
    request: &RevertRequest,
    invocation: &Invocation,
    explained: impl Fn(Error) -> Failure,
) -> Result<ExitCode, Failure> {
    let plan = workspace.plan_revert(request).map_err(explained)?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&RevertJson::from(&plan))?;
        return Ok(ExitCode::SUCCESS);
    }
    output.text(&revert_plan_text(&plan, &said(workspace, &request.target), output.paint))?;
    note_wrapped(workspace, &plan.reverted, invocation);
    output.note(&format!("do just this with: --plan {}", plan.restore.hash));
    Ok(ExitCode::SUCCESS)
}

fn apply(
    workspace: &Workspace,
    request: &RevertRequest,
    invocation: &Invocation,
    explained: impl Fn(Error) -> Failure,
) -> Result<ExitCode, Failure> {
    let output = &invocation.output;
    let progress = output.progress(workspace, "reverting");
    let done = workspace.revert(request, invocation.now.timestamp());
    drop(progress);
    if let Err(Error::Conflict { .. }) = &done {
        list_conflicts(workspace, request, invocation);
    }
    let done = done.map_err(explained)?;
    if output.is_json() {
        output.json(&RevertJson::from(&done))?;
    } else {
        output.done(&reverted_text(&done, &said(workspace, &request.target), output.paint))?;
        note_wrapped(workspace, &done.reverted, invocation);
        if !done.restore.changes.is_empty() {
            output.note(way_back(backtrail::Direction::Forward));
        }
    }
    reverted_warnings(&done).iter().for_each(|warning| output.warn(warning));
    Ok(ExitCode::SUCCESS)
}

/// Tells the user that the work of an agent without hooks can't be told from other changes.
fn note_wrapped(workspace: &Workspace, reverted: &[CheckpointId], invocation: &Invocation) {
    let is_wrapped = |id: &CheckpointId| {
        workspace.get(id).is_ok_and(|found| found.metadata.get("event").is_some_and(|event| event == WRAPPED))
    };
    if reverted.iter().any(is_wrapped) {
        let note = "this agent has no hooks: all changes made while it ran are taken back, edits by hand included";
        invocation.output.note(note);
    }
}

/// Lists all conflicts. The error names only the first one.
fn list_conflicts(workspace: &Workspace, request: &RevertRequest, invocation: &Invocation) {
    // Only the list depends on this: the conflict itself is reported anyway.
    let plan = workspace.plan_revert(request);
    let conflicts = plan.as_ref().map(|plan| plan.conflicts()).unwrap_or_default();
    conflicts.iter().for_each(|conflict| invocation.output.note(&conflict_line(conflict)));
}

/// Returns the thing that is taken back, as text. A deleted checkpoint has only its id.
fn said(workspace: &Workspace, target: &RevertTarget) -> String {
    match target {
        RevertTarget::Checkpoint(id) => workspace.get(id).map_or_else(|_| id.short(), |found| title(&found)),
        RevertTarget::Range { from, to } => format!("{}..{}", from.short(), to.short()),
        RevertTarget::Session(session) => format!("session {session}"),
    }
}
