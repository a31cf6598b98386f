//! Output of restores, for users and programs.

use backtrail::{
    CapturedLater, Change, ChangeStatus, Checkpoint, Conflict, Direction, Dropped, GitState, RestoreOutcome,
    RestorePlan, json::ConflictJson,
};
use jiff::{Timestamp, Zoned};
use serde::Serialize;

use super::{
    Paint,
    changes::{change_list, summary},
    reverted::lines_of,
    visible::visible,
    wording::{plural, title, when},
};

/// The maximum number of changes that are all named after a restore.
const MAX_NAMED: usize = 20;
/// The number of changes that are named if there are more than [`MAX_NAMED`].
const FIRST_NAMED: usize = 10;

/// The restore or deletion that an undo takes back, or whose undo a redo takes back, as text for the user.
pub(crate) struct Restore {
    /// The title of the restored or deleted checkpoint: `3f9c2a1b "before the agent"`.
    pub(crate) target: String,
    /// The time of the restore, if it is known.
    pub(crate) time: Option<Timestamp>,
    /// Set if it was a revert: `target` is the newest checkpoint that it took back.
    pub(crate) is_revert: bool,
    /// Set if it brought in the changes of a fork: `target` is the checkpoint that the workspace stood on.
    pub(crate) is_adoption: bool,
    /// The number of checkpoints that it deleted, if it was a deletion: `target` is the first of them.
    pub(crate) deleted: usize,
}

impl Restore {
    pub(crate) fn said(&self, now: &Zoned) -> String {
        let when = self.time.map(|time| format!(" ({})", when(time, now))).unwrap_or_default();
        let what = match (self.is_revert, self.is_adoption) {
            _ if self.deleted > 1 => return format!("the deletion of {} checkpoints{when}", self.deleted),
            _ if self.deleted == 1 => "the deletion of",
            (true, _) => "the revert of",
            (_, true) => "the adoption of a fork on",
            _ => "the restore to",
        };
        format!("{what} {}{when}", self.target)
    }

    /// Returns the changes that an undo or redo of this restore would make.
    pub(crate) fn plan_text(&self, plan: &RestorePlan, direction: Direction, now: &Zoned, paint: Paint) -> String {
        let doing = match direction {
            Direction::Redo => "taking back the undo of",
            _ => "taking back",
        };
        let said = format!("{doing} {}", self.said(now));
        if self.deleted > 0 {
            let come = if direction == Direction::Redo { "delete" } else { "bring back" };
            return format!("{said} would {come} {}\n", plural(self.deleted, "checkpoint"));
        }
        if plan.changes.is_empty() && plan.conflicts.is_empty() {
            return format!("{said} would change no file\n{}", staying(plan));
        }
        format!("{said} would change:\n{}{}{}", change_list(&plan.changes, paint), in_the_way(plan), staying(plan))
    }
}

fn in_the_way(plan: &RestorePlan) -> String {
    lines("in the way", &plan.conflicts)
}

fn staying(plan: &RestorePlan) -> String {
    lines("stays", &plan.stays())
}

fn lines(word: &str, conflicts: &[Conflict]) -> String {
    let line = |path: &[u8], reason: &str| format!("  {word:<7}  {}: {reason}\n", visible(path));
    conflicts.iter().map(|conflict| line(conflict.path.as_bytes(), &conflict.reason)).collect()
}

/// Returns the changes that a restore would make.
pub(crate) fn plan_text(plan: &RestorePlan, lacking: &[Dropped], target: &Checkpoint, paint: Paint) -> String {
    let git = plan.git().map(|git| format!("git would be on {}\n", standing(git))).unwrap_or_default();
    if plan.changes.is_empty() && plan.conflicts.is_empty() {
        if !git.is_empty() {
            return git + &staying(plan);
        }
        if !plan.stays().is_empty() {
            return format!("restoring {} would change no file\n{}", title(target), staying(plan));
        }
        if !target.complete {
            return format!("nothing to restore; {}\n", removes_nothing(target, "would be"));
        }
        if !lacking.is_empty() {
            return format!("no file of {} would change\n", title(target));
        }
        return format!("nothing to do: the files are already those of {}\n", title(target));
    }
    let mut text = format!("restoring {} would change:\n{}", title(target), change_list(&plan.changes, paint));
    text.push_str(&git);
    text.push_str(&in_the_way(plan));
    text.push_str(&staying(plan));
    if !target.complete && removed(&plan.changes) == 0 {
        text.push_str(&format!("{}\n", removes_nothing(target, "would be")));
    }
    text
}

/// Explains why a restore of an incomplete checkpoint removes no new files.
fn removes_nothing(target: &Checkpoint, is: &str) -> String {
    format!("{} is incomplete, so nothing {is} removed (use --exact to remove files)", title(target))
}

fn removed(changes: &[Change]) -> usize {
    changes.iter().filter(|change| change.status == ChangeStatus::Deleted).count()
}

/// Returns a sentence about the result of a restore, followed by the changed paths, or the first of them.
pub(crate) fn restored_text(
    done: &RestoreOutcome,
    lacking: &[Dropped],
    direction: Direction,
    target: &Checkpoint,
    taken_back: Option<String>,
    paint: Paint,
) -> String {
    let named = title(target);
    let said = taken_back.unwrap_or_else(|| "the last restore".to_owned());
    if let (true, Some(git)) = (done.changes.is_empty(), &done.git) {
        return format!("no file had to change; git is on {}", standing(git));
    }
    if let Some(said) = deletion_text(done, &said) {
        return said;
    }
    if done.changes.is_empty() {
        return match direction {
            Direction::Forward if !done.conflicts.is_empty() => {
                format!("no file was changed; not all of {named} could be restored")
            }
            Direction::Forward if !target.complete => {
                format!("nothing to restore; {}", removes_nothing(target, "was"))
            }
            Direction::Forward if !lacking.is_empty() => format!("no file of {named} had to change"),
            Direction::Forward => format!("nothing to do: the files are already those of {named}"),
            Direction::Undo => format!("took back {said}: no file had to change"),
            Direction::Redo => format!("took back the undo of {said}: no file had to change"),
        };
    }
    let sum = summary(&done.changes);
    let mut text = match direction {
        Direction::Forward => format!("restored {} to {named}: {sum}", plural(done.changes.len(), "path")),
        Direction::Undo => format!("took back {said}: {sum}"),
        Direction::Redo => format!("took back the undo of {said}: {sum}"),
    };
    text.push('\n');
    text.push_str(&first_changes(&done.changes, paint));
    if let Some(git) = &done.git {
        text.push_str(&format!("\ngit is on {}", standing(git)));
    }
    if direction == Direction::Forward && !target.complete && removed(&done.changes) == 0 {
        text.push_str(&format!("\n{}", removes_nothing(target, "was")));
    }
    text
}

/// Returns a sentence about the undo or redo of a deletion. Returns `None` if something else was taken back.
fn deletion_text(done: &RestoreOutcome, said: &str) -> Option<String> {
    if !done.undeleted.is_empty() {
        return Some(format!("took back {said}: {} back", are(done.undeleted.len())));
    }
    (!done.deleted.is_empty()).then(|| format!("took back the undo of {said}: {} deleted", are(done.deleted.len())))
}

fn are(checkpoints: usize) -> String {
    format!("{} {}", plural(checkpoints, "checkpoint"), if checkpoints == 1 { "is" } else { "are" })
}

/// Returns the changes, or the first of them if there are many, without a newline at the end.
pub(super) fn first_changes(changes: &[Change], paint: Paint) -> String {
    let named = if changes.len() <= MAX_NAMED { changes.len() } else { FIRST_NAMED };
    let mut text = change_list(&changes[..named], paint).trim_end_matches('\n').to_owned();
    if named < changes.len() {
        text.push_str(&format!("\n  and {} more", changes.len() - named));
    }
    text
}

/// Returns a branch and a commit as text.
fn standing(git: &GitState) -> String {
    let commit: String = git.commit.as_deref().unwrap_or("no commit").chars().take(12).collect();
    match &git.branch {
        Some(branch) => format!("{} at {commit}", visible(branch)),
        None => format!("{commit}, on no branch"),
    }
}

/// Returns the command that takes back a restore, undo or redo.
pub(crate) fn way_back(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward | Direction::Redo => "take it back with: backtrail undo",
        Direction::Undo => "take that back with: backtrail redo",
    }
}

/// Returns the warnings about a restore: conflicts, and paths that stayed.
pub(crate) fn restored_warnings(done: &RestoreOutcome) -> Vec<String> {
    let stays = done.stays.iter().map(|stays| format!("{}: {}", visible(stays.path.as_bytes()), stays.reason));
    conflict_warnings(&done.conflicts).into_iter().chain(stays).collect()
}

/// Returns notes about files that come from later checkpoints than the restored one.
pub(crate) fn also_notes(also: &[CapturedLater]) -> Vec<String> {
    let line = |also: &CapturedLater| {
        let (path, step) = (visible(also.path.as_bytes()), also.checkpoint.short());
        let doubt = if also.is_certain { "" } else { "; an earlier call for that prompt may have created it" };
        format!(
            "{path} comes from step {step}, taken before a tool changed it: the prompt's checkpoint skipped it{doubt}"
        )
    };
    let more = also.len().saturating_sub(FIRST_NAMED);
    let rest = (more > 0).then(|| format!("and {more} more files come from steps (list all with --json)"));
    also.iter().take(FIRST_NAMED).map(line).chain(rest).collect()
}

/// Returns warnings about the paths that a restore can't bring back, because the checkpoint could not capture them.
pub(crate) fn lacking_warnings(lacking: &[Dropped]) -> Vec<String> {
    let line = |dropped: &Dropped| {
        let (path, reason) = (visible(dropped.path.as_bytes()), dropped.reason.as_str());
        format!("can't be restored: {path} ({reason}); the last checkpoint with it is {}", dropped.held_by.short())
    };
    let more = lacking.len().saturating_sub(FIRST_NAMED);
    let rest = (more > 0).then(|| format!("and {more} more can't be restored (list all with --json)"));
    lacking.iter().take(FIRST_NAMED).map(line).chain(rest).collect()
}

/// Returns a warning for each path that was not restored, or that another process changed meanwhile.
pub(crate) fn conflict_warnings(conflicts: &[Conflict]) -> Vec<String> {
    conflicts
        .iter()
        .map(|conflict| {
            let kept = conflict.kept.map(|kept| format!(" (kept as {kept})")).unwrap_or_default();
            let lines = lines_of(conflict);
            format!("not restored: {}: {}{lines}{kept}", visible(conflict.path.as_bytes()), conflict.reason)
        })
        .collect()
}

/// The JSON answer of `recover`.
#[derive(Serialize)]
pub(crate) struct RecoverJson {
    pub(crate) recovered: bool,
    pub(crate) outcome: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) conflicts: Vec<ConflictJson>,
}

/// The JSON answer of `export`.
#[derive(Serialize)]
pub(crate) struct ExportJson {
    pub(crate) directory: String,
    pub(crate) files: u64,
}

#[cfg(test)]
mod tests {
    use backtrail::WorkspacePath;

    use super::*;
    use crate::output::timeline::sample;

    fn change(status: ChangeStatus) -> Change {
        Change { status, ..Change::between(WorkspacePath::new("f").unwrap(), None, None) }
    }

    /// Returns the text for a restore to a checkpoint with these changes and conflicts.
    fn text_of(complete: bool, changes: Vec<Change>, conflicts: Vec<Conflict>) -> String {
        let target = Checkpoint { complete, ..sample('a', "one") };
        let done = RestoreOutcome {
            target: target.id,
            checkpoint: target.clone(),
            plan: String::new(),
            changes,
            applied: true,
            safety: None,
            conflicts,
            stays: Vec::new(),
            unsaved: 0,
            git: None,
            taken_back: None,
            undeleted: Vec::new(),
            deleted: Vec::new(),
            merged: Vec::new(),
            moved: Vec::new(),
            stands_on: Some(target.id),
            also: Vec::new(),
        };
        restored_text(&done, &[], Direction::Forward, &target, None, Paint::plain())
    }

    #[test]
    fn the_text_says_that_an_incomplete_checkpoint_removes_nothing() {
        let reason = "is incomplete, so nothing was removed (use --exact to remove files)";
        assert!(text_of(false, Vec::new(), Vec::new()).contains(reason));
        assert!(text_of(false, vec![change(ChangeStatus::Modified)], Vec::new()).contains(reason));
        assert!(!text_of(false, vec![change(ChangeStatus::Deleted)], Vec::new()).contains(reason));
        assert!(!text_of(true, vec![change(ChangeStatus::Modified)], Vec::new()).contains(reason));
    }

    #[test]
    fn a_restore_with_conflicts_is_not_called_done() {
        let conflict = Conflict::new(WorkspacePath::new("f").unwrap(), "a special file");
        assert!(text_of(true, Vec::new(), Vec::new()).starts_with("nothing to do: the files are already those of"));
        assert!(text_of(true, Vec::new(), vec![conflict]).starts_with("no file was changed; not all of"));
    }
}
