//! `delete`: deletes checkpoints.

use std::{process::ExitCode, time::Duration};

use backtrail::{CheckpointId, Error, Kind, Workspace, settings::parse_duration};
use clap::Args;

use crate::{
    cli::{kind, text},
    failure::Failure,
    invocation::{Invocation, Protection},
    output::{DeletedJson, deleted_text, loss_lines, plural},
    question::{ask, can_be_asked, is_yes},
};

/// Delete checkpoints
///
/// This can't be undone: look first with --dry-run. The files of the workspace do not change. With --older-than, on a
/// terminal, you are asked first. The space is reclaimed by `backtrail prune`, or automatically later.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The checkpoints
    #[arg(value_name = "ID", value_parser = text(), required_unless_present = "older_than")]
    ids: Vec<String>,
    /// Delete all that are older, such as 7d; except pinned and feature ones, and the one that the workspace stands on
    #[arg(long, value_name = "AGE", value_parser = parse_duration, conflicts_with = "ids")]
    older_than: Option<Duration>,
    /// With --older-than: only checkpoints of this kind
    #[arg(long, value_parser = kind(), requires = "older_than", conflicts_with = "ids")]
    kind: Option<Kind>,
    /// Show what would be deleted, but delete nothing
    #[arg(long)]
    dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Also delete feature checkpoints
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &DeleteArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace =
        if args.dry_run { invocation.workspace()? } else { invocation.workspace_to_write(Protection::Waived)? };
    let mut deleted = wanted(args, &workspace, invocation)?;
    // Read before the deletion, because they are printed after it.
    let checkpoints = deleted.iter().map(|id| workspace.get(id)).collect::<Result<Vec<_>, _>>()?;
    if let Some(feature) = checkpoints.iter().find(|checkpoint| checkpoint.kind == Kind::Feature && !args.force) {
        return Err(Error::FeatureCheckpoint { id: feature.id }.into());
    }
    let output = &invocation.output;
    if args.older_than.is_some() {
        warn_of_age(&workspace, &deleted, invocation)?;
    }
    let is_asked = args.older_than.is_some() && !args.dry_run && !args.yes && !deleted.is_empty();
    if is_asked && can_be_asked(invocation) {
        output.text(&format!("{}\n", deleted_text(&checkpoints, "going to delete", &invocation.now, output.paint)))?;
        let question = format!("delete {} for good? (y/n) ", plural(checkpoints.len(), "checkpoint"));
        if !is_yes(ask(&question, invocation)?.as_deref()) {
            output.done("nothing was deleted")?;
            output.note("list all of them with --dry-run");
            return Ok(ExitCode::SUCCESS);
        }
    }
    if !args.dry_run && !deleted.is_empty() {
        deleted = workspace.delete(&deleted, args.force, invocation.now.timestamp())?;
    }
    if output.is_json() {
        output.json(&DeletedJson::new(&deleted))?;
        return Ok(ExitCode::SUCCESS);
    }
    let said = if args.dry_run { "would delete" } else { "deleted" };
    let text = deleted_text(&checkpoints, said, &invocation.now, output.paint);
    if args.dry_run {
        output.text(&format!("{text}\n"))?
    } else {
        output.done(&text)?
    }
    match (args.dry_run, deleted.is_empty()) {
        (_, true) => {}
        (true, false) => output.note("nothing was deleted; without --dry-run they are deleted, which can't be undone"),
        (false, false) => {
            if args.older_than.is_some() {
                output.note("this can't be undone; --dry-run shows in advance what would be deleted");
            }
            output.note("reclaim the space now with: backtrail prune");
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Warns about contents that are lost for good, and about ages that may be wrong.
fn warn_of_age(workspace: &Workspace, going: &[CheckpointId], invocation: &Invocation) -> Result<(), Failure> {
    if going.is_empty() {
        return Ok(());
    }
    let output = &invocation.output;
    if let Some(doubt) = workspace.clock_doubt(invocation.now.timestamp())? {
        output.warn(&format!("the age of checkpoints may be wrong: {doubt}"));
    }
    loss_lines(&workspace.losses_without(going)?).iter().for_each(|line| output.warn(line));
    Ok(())
}

fn wanted(args: &DeleteArgs, workspace: &Workspace, invocation: &Invocation) -> Result<Vec<CheckpointId>, Failure> {
    if let Some(age) = args.older_than {
        return Ok(workspace.older_than(age, args.kind, args.force, invocation.now.timestamp())?);
    }
    let mut ids: Vec<CheckpointId> = Vec::new();
    for word in &args.ids {
        let id = invocation.checkpoint(workspace, word)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}
