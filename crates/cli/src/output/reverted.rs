//! Output of reverts, for users.

use backtrail::{Conflict, RevertOutcome, RevertPlan, WorkspacePath};

use super::{
    Paint,
    changes::{change_list, summary},
    restored::{first_changes, restored_warnings},
    visible::visible,
    wording::plural,
};

/// Returns the changes that a revert would make.
pub(crate) fn revert_plan_text(plan: &RevertPlan, said: &str, paint: Paint) -> String {
    let restore = &plan.restore;
    let mut text = match (restore.changes.is_empty(), restore.conflicts.is_empty()) {
        (true, true) => format!("{}\n", nothing_to_do(said)),
        (true, false) => format!("taking back {said} would change no file\n"),
        (false, _) => format!("taking back {said} would change:\n{}", change_list(&restore.changes, paint)),
    };
    let told = merged_line(&restore.merged, "would be merged").into_iter();
    let told = told.chain(restore.moved.iter().map(|moved| moved_line(&moved.from, &moved.to)));
    let told = told.chain(restore.conflicts.iter().map(conflict_line)).chain(shared_line(&plan.shared));
    told.for_each(|line| text.push_str(&format!("  {line}\n")));
    text
}

/// Returns a sentence about the result of a revert, followed by the changed paths, or the first of them.
pub(crate) fn reverted_text(done: &RevertOutcome, said: &str, paint: Paint) -> String {
    let restore = &done.restore;
    if restore.changes.is_empty() {
        return match restore.conflicts.is_empty() {
            true => nothing_to_do(said),
            false => format!("no file was changed; not all of {said} could be taken back"),
        };
    }
    let (count, sum) = (plural(restore.changes.len(), "path"), summary(&restore.changes));
    let mut text = format!("took back {said} in {count}: {sum}\n{}", first_changes(&restore.changes, paint));
    let told = merged_line(&restore.merged, "merged").into_iter();
    let told = told.chain(restore.moved.iter().map(|moved| moved_line(&moved.from, &moved.to)));
    told.for_each(|line| text.push_str(&format!("\n{line}")));
    text
}

/// Returns the warnings about a revert: conflicts, and paths that are left to other sessions.
pub(crate) fn reverted_warnings(done: &RevertOutcome) -> Vec<String> {
    restored_warnings(&done.restore).into_iter().chain(shared_line(&done.shared)).collect()
}

fn nothing_to_do(said: &str) -> String {
    format!("nothing to do: {said} is taken back already, or changed no file")
}

pub(super) fn merged_line(merged: &[WorkspacePath], word: &str) -> Option<String> {
    (!merged.is_empty()).then(|| format!("{word} with later edits: {}", listed(merged)))
}

pub(super) fn moved_line(from: &WorkspacePath, to: &WorkspacePath) -> String {
    format!("{} was moved to {}, and is changed there", visible(from.as_bytes()), visible(to.as_bytes()))
}

fn shared_line(shared: &[WorkspacePath]) -> Option<String> {
    let said = "left alone, as another session may have changed it at the same time";
    (!shared.is_empty()).then(|| format!("{said}: {}", listed(shared)))
}

/// Returns a conflict with its path, its reason and its lines.
pub(crate) fn conflict_line(conflict: &Conflict) -> String {
    format!("conflict  {}: {}{}", visible(conflict.path.as_bytes()), conflict.reason, lines_of(conflict))
}

/// Returns the lines of a conflict in parentheses.
pub(super) fn lines_of(conflict: &Conflict) -> String {
    let range = |[first, last]: &[u64; 2]| if first == last { format!("{first}") } else { format!("{first}-{last}") };
    match conflict.lines.as_slice() {
        [] => String::new(),
        [[first, last]] if first == last => format!(" (line {first})"),
        lines => format!(" (lines {})", lines.iter().map(range).collect::<Vec<_>>().join(", ")),
    }
}

fn listed(paths: &[WorkspacePath]) -> String {
    const NAMED: usize = 10;
    let mut names: Vec<String> = paths.iter().take(NAMED).map(|path| visible(path.as_bytes()).to_string()).collect();
    if paths.len() > NAMED {
        names.push(format!("and {} more", paths.len() - NAMED));
    }
    names.join(", ")
}
