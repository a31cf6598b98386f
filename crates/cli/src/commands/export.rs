//! `export`: writes the files of a checkpoint into another directory.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

use crate::{
    cli::text,
    failure::Failure,
    invocation::Invocation,
    output::{ExportJson, plural, title, visible_path},
};

/// Write the files of a checkpoint into a new or empty directory
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The checkpoint
    #[arg(value_name = "ID", value_parser = text())]
    id: String,
    /// The directory
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

pub(crate) fn run(args: &ExportArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    let id = invocation.checkpoint(&workspace, &args.id)?;
    let directory = invocation.file(&args.directory)?;
    let files = workspace.export(&id, &directory)?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&ExportJson { directory: directory.to_string_lossy().into_owned(), files })?;
    } else {
        let files = plural(usize::try_from(files).unwrap_or(usize::MAX), "file");
        output.done(&format!("wrote {files} of {} into {}", title(&workspace.get(&id)?), visible_path(&directory)))?;
    }
    Ok(ExitCode::SUCCESS)
}
