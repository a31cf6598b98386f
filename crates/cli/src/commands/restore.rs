//! `restore`: make the workspace, or some paths, equal to a checkpoint.

use std::{path::PathBuf, process::ExitCode};

use backtrail::{Direction, Only, RestoreOutcome, RestoreRequest, Workspace, json::RestoreJson};
use clap::{Args, ValueEnum};

use crate::{
    cli::text,
    failure::Failure,
    invocation::Invocation,
    output::{plan_text, restored_text, restored_warnings, way_back},
    picker,
};

/// Make the workspace, or just some paths, equal to a checkpoint
///
/// A safety checkpoint is taken first, so that nothing is lost and `backtrail undo` takes it back. What the checkpoint
/// left out, and what is not captured, is never touched. Without an ID, on a terminal, you choose one.
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The checkpoint
    #[arg(value_name = "ID", value_parser = text())]
    id: Option<String>,
    /// Only these files and directories
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Show what would happen, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Only files, or only the agent's own state files
    #[arg(long, value_enum, default_value_t = OnlyWord::All)]
    only: OnlyWord,
    /// Also remove what an incomplete checkpoint lacks
    #[arg(long)]
    exact: bool,
    /// Leave out what something stands in the way of, rather than refuse
    #[arg(long)]
    skip_conflicts: bool,
    /// Also move the git repository's HEAD, branch and index back to where they were
    #[arg(long, conflicts_with = "paths")]
    git: bool,
    /// Go on only where the plan is still the one that --dry-run showed
    #[arg(long, value_name = "HASH")]
    plan: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OnlyWord {
    All,
    Files,
    State,
}

impl From<OnlyWord> for Only {
    fn from(word: OnlyWord) -> Self {
        match word {
            OnlyWord::All => Self::All,
            OnlyWord::Files => Self::Files,
            OnlyWord::State => Self::State,
        }
    }
}

pub(crate) fn run(args: &RestoreArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = if args.dry_run { invocation.workspace()? } else { invocation.workspace_to_restore()? };
    let target = match &args.id {
        Some(word) => invocation.checkpoint_not_path(&workspace, word, "restore @", &args.paths)?,
        None => match picker::choose(&workspace, invocation)? {
            Some(target) => target,
            None => return Ok(ExitCode::SUCCESS),
        },
    };
    let request = RestoreRequest {
        target,
        scope: invocation.scope(&workspace, &args.paths)?,
        only: args.only.into(),
        exact: args.exact,
        skip_conflicts: args.skip_conflicts,
        git: args.git,
        plan: args.plan.clone(),
    };
    if args.dry_run {
        return preview(&workspace, &request, invocation);
    }
    let progress = invocation.output.progress(&workspace, "restoring");
    let done = workspace.restore(&request, invocation.now.timestamp());
    drop(progress);
    tell(&workspace, &done?, Direction::Forward, invocation)
}

fn preview(workspace: &Workspace, request: &RestoreRequest, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let plan = workspace.plan_restore(request)?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&RestoreJson::from(&plan))?;
    } else {
        output.text(&plan_text(&plan, &workspace.get(&request.target)?, output.paint))?;
        output.note(&format!("do just this with: --plan {}", plan.hash));
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells what a restore of any sort did.
pub(crate) fn tell(
    workspace: &Workspace,
    done: &RestoreOutcome,
    direction: Direction,
    invocation: &Invocation,
) -> Result<ExitCode, Failure> {
    let output = &invocation.output;
    if output.is_json() {
        output.json(&RestoreJson::from(done))?;
    } else {
        output.done(&restored_text(done, direction, &workspace.get(&done.target)?, output.paint))?;
        if !done.changes.is_empty() {
            output.note(way_back(direction));
        }
    }
    restored_warnings(done).iter().for_each(|warning| output.warn(warning));
    Ok(ExitCode::SUCCESS)
}
