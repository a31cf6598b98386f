//! Lets the user choose a checkpoint on a terminal, and shows the changes that restoring it would make.

use backtrail::{CheckpointId, ListFilter, RestoreRequest, Workspace};

use crate::{
    commands::list::timeline,
    failure::Failure,
    invocation::Invocation,
    output::{plan_text, title},
    question::{ask, can_be_asked, is_yes},
};

/// The number of checkpoints that are offered.
const OFFERED: usize = 20;

/// Lets the user choose. Returns `None` if the user cancels.
pub(crate) fn choose(workspace: &Workspace, invocation: &Invocation) -> Result<Option<CheckpointId>, Failure> {
    let output = &invocation.output;
    if !can_be_asked(invocation) {
        let hint = "list the checkpoints with: backtrail list; then run: backtrail restore ID";
        return Err(Failure::usage("restore needs the ID of a checkpoint", Some(hint)));
    }
    let filter = ListFilter { limit: Some(OFFERED), hide_safety: true, ..ListFilter::default() };
    let offered = workspace.list(&filter)?;
    if offered.is_empty() {
        return Err(Failure::usage("there is no checkpoint yet", Some("take one with: backtrail save")));
    }
    let drawn = timeline(workspace, invocation)?.draw(&offered);
    for (number, line) in drawn.lines().enumerate() {
        output.text(&format!("{:>3}  {line}\n", number + 1))?;
    }
    loop {
        let Some(answer) = ask("which checkpoint? (number or ID; q to quit) ", invocation)? else { return Ok(None) };
        if is_leave(&answer) {
            output.done("nothing was restored")?;
            return Ok(None);
        }
        let chosen = match answer.parse::<usize>().ok().and_then(|number| offered.get(number.checked_sub(1)?)) {
            Some(checkpoint) => checkpoint.id,
            None => match invocation.checkpoint(workspace, &answer) {
                Ok(id) => id,
                Err(failure) => {
                    output.error(&failure.message());
                    continue;
                }
            },
        };
        let plan = workspace.plan_restore(&RestoreRequest::whole(chosen))?;
        let target = workspace.get(&chosen)?;
        let lacking = workspace.unprotected_at(&chosen)?;
        output.text(&plan_text(&plan, &lacking, &target, output.paint))?;
        let question = format!("restore {}? (y/n, q to quit) ", title(&target));
        let answer = ask(&question, invocation)?;
        if is_yes(answer.as_deref()) {
            return Ok(Some(chosen));
        }
        match answer {
            None => return Ok(None),
            Some(answer) if is_leave(&answer) => {
                output.done("nothing was restored")?;
                return Ok(None);
            }
            Some(_) => {}
        }
    }
}

/// Returns whether the user wants to cancel.
fn is_leave(answer: &str) -> bool {
    answer.is_empty() || ["q", "quit", "exit"].iter().any(|word| answer.eq_ignore_ascii_case(word))
}
