//! `history`: shows every version of one path.

use std::{collections::HashMap, path::PathBuf, process::ExitCode};

use backtrail::{ChangeStatus, Checkpoint, CheckpointId, ListFilter, OnDisk, Version, Workspace, json::HistoryJson};
use clap::Args;

use crate::{
    failure::Failure,
    invocation::{Invocation, NOTHING_SAVED},
    output::{HistoryTable, Remarks, plural, shell_path},
};

/// Show every version of a file, newest first
///
/// Each version is shown with the first checkpoint that has it, the time of that checkpoint, and the number of added
/// and removed lines. Versions that are only in safety checkpoints are shown with --all, or if there are no others.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The file
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Also show versions that are only in safety checkpoints: unsaved work that a restore set aside
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(args: &HistoryArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    let path = invocation.path(&workspace, &args.path)?;
    let all = workspace.history_with_safety(&path).map_err(|error| {
        let failure = invocation.explain_path(&workspace, error.into(), &args.path);
        // Before the first checkpoint, the path is not the cause.
        if matches!(workspace.current(), Ok(None)) { failure.with_hint(NOTHING_SAVED) } else { failure }
    })?;
    let is_saved = all.iter().any(|version| !version.safety);
    let shown = |version: &&Version| args.all || !is_saved || !version.safety;
    let versions: Vec<Version> = all.iter().filter(shown).cloned().collect();
    let output = &invocation.output;
    if output.is_json() {
        output.json(&HistoryJson::new(&path, &versions))?;
        return Ok(ExitCode::SUCCESS);
    }
    let checkpoints = checkpoints_of(&versions, &workspace)?;
    let on_disk = workspace.path_on_disk(&path, &all)?;
    let same = match &on_disk {
        OnDisk::As(ids) => ids.first().map(|id| workspace.get(id)).transpose()?,
        _ => None,
    };
    let table = HistoryTable { now: &invocation.now, width: output.width(), paint: output.paint };
    let text = table.on_disk(&on_disk, same.as_ref()) + &table.draw(&versions, &checkpoints);
    let mut remarks = Remarks::default();
    let named = shell_path(&args.path);
    if !is_saved {
        remarks.notes.push("only safety checkpoints have it: a restore set it aside before it was saved".to_owned());
    }
    if let Some((which, version)) = worth_bringing_back(&versions, &on_disk, same.as_ref()) {
        let which = if is_saved { which } else { "it" };
        let id = version.checkpoint.short();
        remarks.notes.push(format!("restore {which} with: backtrail restore {id} {named}"));
    }
    let hidden = all.len() - versions.len();
    if hidden > 0 {
        let more = plural(hidden, "more version");
        remarks.notes.push(format!("{more} in safety checkpoints; show with: backtrail history --all {named}"));
    }
    output.paged_if_long(&text, &remarks)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the checkpoints of the versions. Reads the timeline once: a path can have thousands of versions.
fn checkpoints_of(versions: &[Version], workspace: &Workspace) -> Result<Vec<Checkpoint>, Failure> {
    let listed = workspace.list(&ListFilter { brief: true, ..ListFilter::default() })?;
    let mut by_id: HashMap<CheckpointId, Checkpoint> =
        listed.into_iter().map(|checkpoint| (checkpoint.id, checkpoint)).collect();
    let known = |version: &Version| match by_id.remove(&version.checkpoint) {
        Some(checkpoint) => Ok(checkpoint),
        None => workspace.get(&version.checkpoint).map_err(Failure::from),
    };
    versions.iter().map(known).collect()
}

/// Returns the version that the user probably wants back: the newest one before the version on disk, or the newest of
/// all if the version on disk was never saved. Returns `None` if there is no version other than the one on disk.
fn worth_bringing_back<'v>(
    versions: &'v [Version],
    on_disk: &OnDisk,
    same: Option<&Checkpoint>,
) -> Option<(&'static str, &'v Version)> {
    let is_there = |version: &&Version| version.status != ChangeStatus::Deleted;
    let OnDisk::As(ids) = on_disk else {
        return versions.iter().find(is_there).map(|version| ("the last saved version", version));
    };
    let position = versions.iter().position(|version| Some(version.checkpoint) == same.map(|same| same.id));
    let earlier = &versions[position.map_or(0, |position| position + 1)..];
    let other = earlier.iter().filter(is_there).find(|version| !ids.contains(&version.checkpoint))?;
    let which = match position {
        None => "the last saved version",
        Some(0) => "the version before the last change",
        Some(_) => "the version before that",
    };
    Some((which, other))
}
