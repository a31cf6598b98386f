//! Formats the answer of `bisect` for the user.

use backtrail::{Bisection, Candidate, Change, Checkpoint, Error, Workspace};

use super::{
    Paint,
    changes::stat,
    visible::first_line,
    wording::{plural, title},
};

/// Returns the title of a state that was tested.
pub(crate) fn candidate_title(workspace: &Workspace, candidate: Candidate) -> String {
    match candidate {
        Candidate::Checkpoint(id) => workspace.get(&id).map_or_else(|_| id.short(), |checkpoint| title(&checkpoint)),
        Candidate::OnDisk => "unsaved work".to_owned(),
    }
}

/// Returns the answer: the first bad state, its prompt and its changes.
pub(crate) fn culprit_text(
    workspace: &Workspace,
    bisection: &Bisection,
    changes: &[Change],
    paint: Paint,
) -> Result<String, Error> {
    let culprit = bisection.culprit();
    let Some(bad) = culprit.first_bad else {
        return Ok("nothing to find: the command passes at the bad end\n".to_owned());
    };
    let named = candidate_title(workspace, bad);
    let mut out = match culprit.last_good {
        None => format!("the command already fails at the good end: {named}\n"),
        Some(_) => format!("first bad: {named}\n"),
    };
    if let Some(id) = bad.checkpoint() {
        out.push_str(&prompt_line(&workspace.get(&id)?));
    }
    if let Some(good) = culprit.last_good {
        out.push_str(&format!("last good: {}\n", candidate_title(workspace, Candidate::Checkpoint(good))));
    }
    if culprit.untested > 0 {
        let count = plural(culprit.untested, "checkpoint");
        out.push_str(&format!("{count} between them can't be tested, and may be the first bad one\n"));
    }
    if !changes.is_empty() {
        out.push_str(&stat(changes, paint));
    }
    Ok(out)
}

/// Returns a line with the prompt that a checkpoint belongs to, or nothing.
fn prompt_line(checkpoint: &Checkpoint) -> String {
    let origin = &checkpoint.origin;
    match (origin.turn, origin.prompt.as_deref().map(first_line)) {
        (Some(turn), Some(prompt)) => format!("prompt {turn}: {prompt}\n"),
        (Some(turn), None) => format!("prompt {turn}\n"),
        (None, Some(prompt)) => format!("prompt: {prompt}\n"),
        (None, None) => String::new(),
    }
}
