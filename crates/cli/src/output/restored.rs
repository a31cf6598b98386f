//! What restores tell people and programs.

use backtrail::{Checkpoint, Direction, GitState, RestoreOutcome, RestorePlan, Version};
use jiff::Zoned;
use serde::Serialize;

use super::{
    Paint,
    changes::{change_list, summary},
    visible::{columns, pad, visible},
    wording::{bytes, clock, lines, plural, title},
};

/// No more changes than this are named one by one after the fact.
const MAX_NAMED: usize = 20;
/// Of more than that, so many are.
const FIRST_NAMED: usize = 10;

/// What would happen.
pub(crate) fn plan_text(plan: &RestorePlan, target: &Checkpoint, paint: Paint) -> String {
    let git = plan.git().map(|git| format!("git would stand on {}\n", standing(git))).unwrap_or_default();
    if plan.changes.is_empty() && plan.conflicts.is_empty() {
        if !git.is_empty() {
            return git;
        }
        return format!("nothing to do: the files are those of {}\n", title(target));
    }
    let mut text = format!("restoring {} would change:\n{}", title(target), change_list(&plan.changes, paint));
    text.push_str(&git);
    for conflict in &plan.conflicts {
        text.push_str(&format!("  in the way  {}: {}\n", visible(conflict.path.as_bytes()), conflict.reason));
    }
    text
}

/// What was done, in a sentence, with the paths where they are few.
pub(crate) fn restored_text(done: &RestoreOutcome, direction: Direction, target: &Checkpoint, paint: Paint) -> String {
    let named = title(target);
    if let (true, Some(git)) = (done.changes.is_empty(), &done.git) {
        return format!("no file had to change; git stands on {}", standing(git));
    }
    if done.changes.is_empty() {
        return match direction {
            Direction::Forward if !target.complete => {
                format!("nothing to bring back; {named} is incomplete, so nothing was removed (--exact would)")
            }
            Direction::Forward => format!("nothing to do: the files are those of {named}"),
            Direction::Undo | Direction::Redo => "done: no file had to change".to_owned(),
        };
    }
    let sum = summary(&done.changes);
    let mut text = match direction {
        Direction::Forward => format!("restored {} to {named}: {sum}", plural(done.changes.len(), "path")),
        Direction::Undo => format!("took back the last restore: {sum}"),
        Direction::Redo => format!("took back the last undo: {sum}"),
    };
    let named = if done.changes.len() <= MAX_NAMED { done.changes.len() } else { FIRST_NAMED };
    text.push('\n');
    text.push_str(change_list(&done.changes[..named], paint).trim_end_matches('\n'));
    if named < done.changes.len() {
        text.push_str(&format!("\n  and {} more", done.changes.len() - named));
    }
    if let Some(git) = &done.git {
        text.push_str(&format!("\ngit stands on {}", standing(git)));
    }
    text
}

/// A branch and a commit, for people.
fn standing(git: &GitState) -> String {
    let commit: String = git.commit.as_deref().unwrap_or("no commit").chars().take(12).collect();
    match &git.branch {
        Some(branch) => format!("{} at {commit}", visible(branch)),
        None => format!("{commit}, on no branch"),
    }
}

/// The command that takes it back.
pub(crate) fn way_back(direction: Direction) -> &'static str {
    match direction {
        Direction::Forward | Direction::Redo => "take it back with: backtrail undo",
        Direction::Undo => "take that back with: backtrail redo",
    }
}

/// What people should know beside that.
pub(crate) fn restored_warnings(done: &RestoreOutcome) -> Vec<String> {
    done.conflicts
        .iter()
        .map(|conflict| {
            let kept = conflict.kept.map(|kept| format!(" (kept as {kept})")).unwrap_or_default();
            format!("not restored: {}: {}{kept}", visible(conflict.path.as_bytes()), conflict.reason)
        })
        .collect()
}

/// What `recover` answers.
#[derive(Serialize)]
pub(crate) struct RecoverJson {
    pub(crate) recovered: bool,
    pub(crate) outcome: &'static str,
}

/// What `export` answers.
#[derive(Serialize)]
pub(crate) struct ExportJson {
    pub(crate) directory: String,
    pub(crate) files: u64,
}

/// One line for each version of a path: when, what happened, how large it is, and in which checkpoint.
pub(crate) fn history_text(versions: &[Version], checkpoints: &[Checkpoint], now: &Zoned, paint: Paint) -> String {
    let row = |(version, checkpoint): (&Version, &Checkpoint)| {
        let counts = if version.binary { "binary".into() } else { lines(version.insertions, version.deletions) };
        let size = version.bytes.map_or_else(|| "-".to_owned(), bytes);
        [clock(checkpoint.time, now), version.status.as_str().replace('_', " "), counts, size]
    };
    let rows: Vec<[String; 4]> = versions.iter().zip(checkpoints).map(row).collect();
    let widths: [usize; 4] =
        std::array::from_fn(|column| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0));
    let line = |([time, status, counts, size], checkpoint): (&[String; 4], &Checkpoint)| {
        let time = paint.faint(pad(time, widths[0]));
        let size = format!("{}{size}", " ".repeat(widths[3].saturating_sub(columns(size))));
        let named = title(checkpoint).replacen(&checkpoint.id.short(), &paint.id(checkpoint.id.short()), 1);
        format!("{time}  {}  {}  {size}  {named}\n", pad(status, widths[1]), pad(counts, widths[2]))
    };
    rows.iter().zip(checkpoints).map(line).collect()
}
