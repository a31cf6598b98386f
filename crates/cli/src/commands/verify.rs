//! `verify`: checks everything in the store.

use std::process::ExitCode;

use clap::Args;

use crate::{
    failure::{DAMAGED, Failure},
    invocation::Invocation,
    output::{VerifyJson, plural, visible},
};

/// Check every object, ref and record of the store
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {}

pub(crate) fn run(_: &VerifyArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace()?;
    let progress = invocation.output.progress(&workspace, "verifying");
    let found = workspace.verify();
    drop(progress);
    let found = found?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&VerifyJson::from(&found))?;
    } else {
        let damage =
            found.damaged.iter().map(|damage| format!("{}: {}\n", visible(&damage.id), visible(&damage.reason)));
        output.text(&damage.collect::<String>())?;
    }
    if !found.damaged.is_empty() {
        let count = plural(found.damaged.len(), "problem");
        output.error(&format!("the store {} is damaged: {count}", workspace.store_directory().display()));
        return Ok(ExitCode::from(DAMAGED));
    }
    if !output.is_json() {
        output.done(&format!("{}, no damage found", plural(found.checkpoints, "checkpoint")))?;
    }
    Ok(ExitCode::SUCCESS)
}
