//! `history`: every version of one path.

use std::{path::PathBuf, process::ExitCode};

use backtrail::{ChangeStatus, Version, Workspace, WorkspacePath, json::HistoryJson};
use clap::Args;

use crate::{
    failure::Failure,
    invocation::Invocation,
    output::{bytes, title, visible, when},
};

/// Show every version of a file, newest first
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
    for version in &versions {
        output.text(&line(&workspace, version, invocation)?)?;
    }
    if let Some(last) = versions.iter().find(|version| version.status != ChangeStatus::Deleted) {
        output.note(&format!("bring one back with: backtrail restore {} {}", last.checkpoint.short(), shown(&path)));
    }
    Ok(ExitCode::SUCCESS)
}

fn line(workspace: &Workspace, version: &Version, invocation: &Invocation) -> Result<String, Failure> {
    let checkpoint = workspace.get(&version.checkpoint)?;
    let size = version.bytes.map_or_else(|| "-".to_owned(), bytes);
    let status = version.status.as_str().replace('_', " ");
    Ok(format!("{:<16} {status:<12} {size:>8}  {}\n", when(checkpoint.time, &invocation.now), title(&checkpoint)))
}

fn shown(path: &WorkspacePath) -> String {
    visible(path.as_bytes())
}
