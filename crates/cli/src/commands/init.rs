//! `init`: creates the store without a checkpoint.

use std::process::ExitCode;

use clap::Args;

use crate::{
    failure::Failure,
    invocation::{Invocation, Protection},
    output::{InitJson, visible_path},
};

/// Create the store of the workspace, without a checkpoint
///
/// The first `save` does this by itself. If there is a store already, nothing changes.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Allow a protected directory, such as the home directory, as the workspace
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &InitArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace_to_make(Protection::unless(args.force))?;
    let created = workspace.init(invocation.now.timestamp())?;
    let store = workspace.store_directory();
    let shown = visible_path(store);
    let output = &invocation.output;
    if output.is_json() {
        output.json(&InitJson::new(workspace.root(), store, created))?;
    } else if created {
        output.done(&format!("created the store {shown}; take a checkpoint with: backtrail save"))?;
    } else {
        output.done(&format!("the store {shown} already exists"))?;
    }
    Ok(ExitCode::SUCCESS)
}
