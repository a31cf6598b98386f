//! `history`: every version of one path.

use std::{path::PathBuf, process::ExitCode};

use backtrail::{ChangeStatus, Scope, Version, Workspace, WorkspacePath, json::HistoryJson};
use clap::Args;

use crate::{
    failure::Failure,
    invocation::Invocation,
    output::{history_text, shell_path},
};

/// Show every version of a file, newest first
///
/// Each with the checkpoint that has it first, when that was taken, and the lines that came and went.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    /// The file
    #[arg(value_name = "PATH")]
    path: PathBuf,
}

pub(crate) fn run(args: &HistoryArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    let path = invocation.path(&workspace, &args.path)?;
    let versions = workspace.history(&path)?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&HistoryJson::new(&path, &versions))?;
        return Ok(ExitCode::SUCCESS);
    }
    let checkpoints =
        versions.iter().map(|version| workspace.get(&version.checkpoint)).collect::<Result<Vec<_>, _>>()?;
    output.text(&history_text(&versions, &checkpoints, &invocation.now, output.paint))?;
    if let Some(wanted) = last_good(&workspace, &path, &versions)? {
        let id = wanted.checkpoint.short();
        let named = shell_path(&args.path);
        output.note(&format!("bring back the one before the last change with: backtrail restore {id} {named}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// The version before the last change: what somebody wants back who looks for one. Where the file on disk was changed
/// since it was last saved, that is the newest; none where there is only what is on disk.
fn last_good<'v>(
    workspace: &Workspace,
    path: &WorkspacePath,
    versions: &'v [Version],
) -> Result<Option<&'v Version>, Failure> {
    let Some(newest) = versions.first() else { return Ok(None) };
    let scope = Scope::of_paths(vec![path.clone()]);
    let is_on_disk = workspace.diff(Some(newest.checkpoint), None, &scope)?.changes.is_empty();
    let earlier = &versions[usize::from(is_on_disk)..];
    Ok(earlier.iter().find(|version| version.status != ChangeStatus::Deleted))
}
