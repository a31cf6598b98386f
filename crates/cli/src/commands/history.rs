//! `history`: shows every version of one path.

use std::{path::PathBuf, process::ExitCode};

use backtrail::{ChangeStatus, Checkpoint, OnDisk, Version, json::HistoryJson};
use clap::Args;

use crate::{
    failure::Failure,
    invocation::{Invocation, NOTHING_SAVED},
    output::{HistoryTable, plural, shell_path},
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
        let failure = invocation.explain_path(error.into(), &args.path);
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
    let checkpoints =
        versions.iter().map(|version| workspace.get(&version.checkpoint)).collect::<Result<Vec<_>, _>>()?;
    let on_disk = workspace.path_on_disk(&path, &all)?;
    let same = match &on_disk {
        OnDisk::As(ids) => ids.first().map(|id| workspace.get(id)).transpose()?,
        _ => None,
    };
    let table = HistoryTable { now: &invocation.now, width: output.width(), paint: output.paint };
    output.text(&table.on_disk(&on_disk, same.as_ref()))?;
    output.text(&table.draw(&versions, &checkpoints))?;
    let named = shell_path(&args.path);
    if !is_saved {
        output.note("only safety checkpoints have it: a restore set it aside before it was saved");
    }
    if let Some((which, version)) = worth_bringing_back(&versions, &on_disk, same.as_ref()) {
        let which = if is_saved { which } else { "it" };
        let id = version.checkpoint.short();
        output.note(&format!("restore {which} with: backtrail restore {id} {named}"));
    }
    let hidden = all.len() - versions.len();
    if hidden > 0 {
        let more = plural(hidden, "more version");
        output.note(&format!("{more} in safety checkpoints; show with: backtrail history --all {named}"));
    }
    Ok(ExitCode::SUCCESS)
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
