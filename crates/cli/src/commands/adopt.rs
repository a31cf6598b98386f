//! `adopt`: brings the work of a fork back into this workspace.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use backtrail::{AdoptRequest, Direction, Error, OnConflict, Options, OptionsOf, Workspace, json::AdoptJson};
use clap::Args;

use crate::{
    failure::Failure,
    invocation::Invocation,
    output::{adopt_plan_text, adopted_text, conflict_line, restored_warnings, visible_path, way_back},
};

/// Bring the files of a fork back into this workspace
///
/// The files of the fork, as they are on disk there, are merged with those here; the fork point is the base. If the same
/// lines were changed in both, nothing is written and the conflicts are listed. The fork stays as it is. A safety
/// checkpoint is taken first, so that `backtrail undo` takes it back.
#[derive(Debug, Args)]
pub(crate) struct AdoptArgs {
    /// The directory of the fork
    #[arg(value_name = "DIR")]
    directory: PathBuf,
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
}

pub(crate) fn run(args: &AdoptArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = if args.dry_run { invocation.workspace()? } else { invocation.workspace_to_restore()? };
    let request = AdoptRequest {
        directory: invocation.file(&args.directory)?,
        on_conflict: on_conflict(args),
        plan: args.plan.clone(),
    };
    let user = invocation.user_settings()?;
    let options = |root: &Path| invocation.options_at(&user, root);
    if args.dry_run {
        preview(&workspace, &request, &options, &args.directory, invocation)
    } else {
        apply(&workspace, &request, &options, &args.directory, invocation)
    }
}

fn on_conflict(args: &AdoptArgs) -> OnConflict {
    match (args.skip_conflicts, args.markers) {
        (true, _) => OnConflict::Skip,
        (_, true) => OnConflict::Markers,
        _ => OnConflict::Refuse,
    }
}

fn preview(
    workspace: &Workspace,
    request: &AdoptRequest,
    options: &dyn Fn(&Path) -> Options,
    named: &Path,
    invocation: &Invocation,
) -> Result<ExitCode, Failure> {
    let plan = workspace.plan_adopt_fork(request, OptionsOf(options), invocation.now.timestamp()).map_err(explained)?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&AdoptJson::from(&plan))?;
        return Ok(ExitCode::SUCCESS);
    }
    output.text(&adopt_plan_text(&plan, &visible_path(named), output.paint))?;
    output.note(&format!("do just this with: --plan {}", plan.hash));
    Ok(ExitCode::SUCCESS)
}

fn apply(
    workspace: &Workspace,
    request: &AdoptRequest,
    options: &dyn Fn(&Path) -> Options,
    named: &Path,
    invocation: &Invocation,
) -> Result<ExitCode, Failure> {
    let output = &invocation.output;
    let progress = output.progress(workspace, "adopting");
    let done = workspace.adopt_fork(request, OptionsOf(options), invocation.now.timestamp());
    drop(progress);
    if let Err(Error::Conflict { .. }) = &done {
        list_conflicts(workspace, request, options, invocation);
    }
    let done = done.map_err(explained)?;
    if output.is_json() {
        output.json(&AdoptJson::from(&done))?;
    } else {
        output.done(&adopted_text(&done, &visible_path(named), output.paint))?;
        if !done.changes.is_empty() {
            output.note(way_back(Direction::Forward));
        }
    }
    restored_warnings(&done).iter().for_each(|warning| output.warn(warning));
    Ok(ExitCode::SUCCESS)
}

/// Lists all conflicts. The error names only the first one.
fn list_conflicts(
    workspace: &Workspace,
    request: &AdoptRequest,
    options: &dyn Fn(&Path) -> Options,
    invocation: &Invocation,
) {
    // Only the list depends on this: the conflict itself is reported anyway.
    let plan = workspace.plan_adopt_fork(request, OptionsOf(options), invocation.now.timestamp());
    let conflicts = plan.as_ref().map(|plan| plan.conflicts.as_slice()).unwrap_or_default();
    conflicts.iter().for_each(|conflict| invocation.output.note(&conflict_line(conflict)));
}

fn explained(error: Error) -> Failure {
    let hint = match &error {
        Error::Conflict { .. } => {
            "see them with --dry-run; bring in the rest with --skip-conflicts, or write them into the files with --markers"
        }
        _ => return error.into(),
    };
    Failure::from(error).with_hint(hint)
}
