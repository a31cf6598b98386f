//! `delete`: deletes checkpoints.

use std::{process::ExitCode, time::Duration};

use backtrail::{
    CheckpointId, Deleted, Error, Kind, Workspace,
    settings::{duration_text, parse_duration},
};
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
/// They go to a bin, where `backtrail undo` gets them back for a day, or as long as [retention] deleted says. For all
/// other commands they are gone at once. `backtrail prune` empties the bin and reclaims the space. The files of the
/// workspace do not change. With --older-than or --now, on a terminal, you are asked first.
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The checkpoints
    #[arg(value_name = "ID", value_parser = text(), required_unless_present_any = ["older_than", "now"])]
    ids: Vec<String>,
    /// Delete all that are older, such as 7d; except pinned and feature ones, and the one that the workspace stands on
    #[arg(long, value_name = "AGE", value_parser = parse_duration, conflicts_with = "ids")]
    older_than: Option<Duration>,
    /// With --older-than: only checkpoints of this kind
    #[arg(long, value_parser = kind(), requires = "older_than", conflicts_with = "ids")]
    kind: Option<Kind>,
    /// Delete for good, without the bin; with no ID, empty the bin
    #[arg(long)]
    now: bool,
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
    let binned = workspace.deleted()?;
    let mut deleted = wanted(args, &workspace, &binned, invocation)?;
    // Read before the deletion, because they are printed after it.
    let checkpoint = |id: &CheckpointId| match binned.iter().find(|binned| binned.checkpoint.id == *id) {
        Some(binned) => Ok(binned.checkpoint.clone()),
        None => workspace.get(id),
    };
    let checkpoints = deleted.iter().map(checkpoint).collect::<Result<Vec<_>, _>>()?;
    if let Some(feature) = checkpoints.iter().find(|checkpoint| checkpoint.kind == Kind::Feature && !args.force) {
        return Err(Error::FeatureCheckpoint { id: feature.id }.into());
    }
    let output = &invocation.output;
    let is_final = args.now || workspace.settings().retention.deleted.is_zero();
    if args.older_than.is_some() {
        warn_of_age(&workspace, &deleted, invocation)?;
    }
    let is_much = args.older_than.is_some() || args.now;
    if is_much && !args.dry_run && !args.yes && !deleted.is_empty() && can_be_asked(invocation) {
        output.text(&format!("{}\n", deleted_text(&checkpoints, "going to delete", &invocation.now, output.paint)))?;
        let for_good = if is_final { " for good" } else { "" };
        let question = format!("delete {}{for_good}? (y/n) ", plural(checkpoints.len(), "checkpoint"));
        if !is_yes(ask(&question, invocation)?.as_deref()) {
            output.done("nothing was deleted")?;
            output.note("list all of them with --dry-run");
            return Ok(ExitCode::SUCCESS);
        }
    }
    if !args.dry_run && !deleted.is_empty() {
        let now = invocation.now.timestamp();
        deleted = match args.now {
            true => workspace.delete_for_good(&deleted, args.force, now)?,
            false => workspace.delete(&deleted, args.force, now)?,
        };
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
    if !deleted.is_empty() {
        tell_the_way_back(args.dry_run, is_final, &deleted, &workspace, invocation)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells the user how to get the deleted checkpoints back, if that is possible.
fn tell_the_way_back(
    is_plan: bool,
    is_final: bool,
    deleted: &[CheckpointId],
    workspace: &Workspace,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let output = &invocation.output;
    if is_plan {
        let finally = if is_final { ", which can't be undone" } else { "" };
        output.note(&format!("nothing was deleted; without --dry-run they are deleted{finally}"));
        return Ok(());
    }
    // On a full disk, they are deleted for good.
    let is_kept = !is_final && workspace.deleted()?.iter().any(|kept| deleted.contains(&kept.checkpoint.id));
    if is_kept {
        let time = duration_text(workspace.settings().retention.deleted);
        output.note(&format!("take it back with: backtrail undo (within {time})"));
        output.note("reclaim the space now, for good, with: backtrail prune");
    } else {
        output.note("reclaim the space now with: backtrail prune");
    }
    Ok(())
}

/// Warns about contents that no other checkpoint has, and about ages that may be wrong.
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

fn wanted(
    args: &DeleteArgs,
    workspace: &Workspace,
    binned: &[Deleted],
    invocation: &Invocation,
) -> Result<Vec<CheckpointId>, Failure> {
    if let Some(age) = args.older_than {
        return Ok(workspace.older_than(age, args.kind, args.force, invocation.now.timestamp())?);
    }
    let binned: Vec<CheckpointId> = binned.iter().map(|binned| binned.checkpoint.id).collect();
    if args.ids.is_empty() {
        return Ok(binned);
    }
    let mut ids: Vec<CheckpointId> = Vec::new();
    for word in &args.ids {
        let in_bin = args.now.then(|| binned.iter().find(|id| word.len() >= 8 && id.to_string().starts_with(word)));
        let id = match in_bin.flatten() {
            Some(id) => *id,
            None => invocation.checkpoint(workspace, word)?,
        };
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}
