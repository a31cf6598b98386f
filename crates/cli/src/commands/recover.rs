//! `recover`: finishes an interrupted restore, or takes it back.

use std::process::ExitCode;

use backtrail::{CheckpointId, Recovered, Recovery, RestoreRequest, Way, Workspace, json::ConflictJson};
use clap::Args;

use crate::{
    failure::Failure,
    invocation::Invocation,
    output::{RecoverJson, restored_warnings},
    process_pins::{HeldPin, abandoned_bisect, let_go_of_abandoned},
};

/// Finish a restore that was interrupted, or take it back
///
/// Every command that writes finishes it first. Use this command to finish it now, or to take it back. After a
/// `bisect --in-place` that was killed, this restores the files from before it.
#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// Take the restore back instead of finishing it
    #[arg(long)]
    abort: bool,
}

pub(crate) fn run(args: &RecoverArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace_to_restore()?;
    let way = if args.abort { Way::Back } else { Way::Forward };
    // Conflicts are printed by the listener of the workspace's events.
    let Recovered { outcome, conflicts } = workspace.recover(way, invocation.now.timestamp())?;
    if let Some((id, note)) = abandoned_bisect(&workspace, invocation) {
        return end_bisect(&workspace, id, note, invocation);
    }
    let output = &invocation.output;
    if output.is_json() {
        let recovered = matches!(outcome, Recovery::Finished | Recovery::TakenBack);
        let conflicts = conflicts.iter().map(ConflictJson::from).collect();
        output.json(&RecoverJson { recovered, outcome: outcome.as_str(), conflicts })?;
    } else {
        output.done(match outcome {
            Recovery::Nothing => "no restore was interrupted",
            Recovery::Finished if !conflicts.is_empty() => {
                "the interrupted restore is finished, except for the paths above; take it back with: backtrail undo"
            }
            Recovery::Finished => "the interrupted restore is finished; take it back with: backtrail undo",
            Recovery::TakenBack if !conflicts.is_empty() => {
                "the interrupted restore is taken back, except for the paths above"
            }
            Recovery::TakenBack => "the interrupted restore is taken back: the files are as they were before it",
            Recovery::SetAside => {
                "the interrupted restore can't be finished here and was set aside; the files stay as they are; the \
                 files from before it are in the latest safety checkpoint: backtrail list --kind safety"
            }
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Brings back the files from before a search that was killed.
fn end_bisect(
    workspace: &Workspace,
    id: CheckpointId,
    note: HeldPin,
    invocation: &Invocation,
) -> Result<ExitCode, Failure> {
    let request = RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(id) };
    let done = workspace.restore(&request, invocation.now.timestamp())?;
    note.forget();
    let_go_of_abandoned(workspace, invocation);
    let output = &invocation.output;
    restored_warnings(&done).iter().for_each(|warning| output.warn(warning));
    if output.is_json() {
        let conflicts = done.conflicts.iter().map(ConflictJson::from).collect();
        output.json(&RecoverJson { recovered: true, outcome: Recovery::TakenBack.as_str(), conflicts })?;
    } else {
        output.done("the interrupted bisect is taken back: the files from before it are on disk again")?;
    }
    Ok(ExitCode::SUCCESS)
}
