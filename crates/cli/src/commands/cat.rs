//! `cat`: prints one file or attachment of a checkpoint.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;

use crate::{cli::text, failure::Failure, invocation::Invocation, output::OutputError};

/// Print a file or an attachment as it was at a checkpoint
#[derive(Debug, Args)]
pub(crate) struct CatArgs {
    /// The checkpoint
    #[arg(value_name = "ID", value_parser = text())]
    checkpoint: String,
    /// The file
    #[arg(required_unless_present = "attachment", conflicts_with = "attachment")]
    path: Option<PathBuf>,
    /// Print the attachment of this name instead of a file
    #[arg(long, value_name = "NAME", value_parser = text())]
    attachment: Option<String>,
}

pub(crate) fn run(args: &CatArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    let id = invocation.checkpoint(&workspace, &args.checkpoint)?;
    if let Some(name) = &args.attachment {
        invocation.output.bytes(&workspace.attachment(&id, name)?)?;
    }
    if let Some(named) = &args.path {
        let path = invocation.path(&workspace, named)?;
        let printed = workspace.cat(&id, &path, &mut |bytes| invocation.output.pass_on(bytes));
        printed
            .map_err(|error| invocation.explain_path(&workspace, error.into(), named))?
            .map_err(OutputError::from)?;
    }
    Ok(ExitCode::SUCCESS)
}
