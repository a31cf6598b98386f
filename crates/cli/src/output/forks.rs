//! Output about forks.

use backtrail::{Fork, Forked, RestoreOutcome, RestorePlan};

use super::{
    Paint,
    changes::{change_list, summary},
    restored::first_changes,
    reverted::{conflict_line, merged_line, moved_line},
    visible::{columns, pad, visible, visible_path},
    wording::{lines, plural},
};

/// The maximum number of paths that are named.
const MAX_PATHS: usize = 5;

/// Returns the sentence about a new fork.
pub(crate) fn forked_sentence(forked: &Forked) -> String {
    let files = plural(usize::try_from(forked.files).unwrap_or(usize::MAX), "file");
    let path = visible_path(&forked.path);
    format!("forked {files} into {path}, from {}; see all forks with: backtrail forks", forked.checkpoint.short())
}

/// Returns a warning about skipped paths that are not in the fork although they should be copied.
pub(crate) fn not_copied_warning(forked: &Forked) -> Option<String> {
    let [first, ..] = forked.not_copied.as_slice() else { return None };
    let named: Vec<String> = forked.not_copied.iter().take(MAX_PATHS).map(|one| visible(one.path.as_bytes())).collect();
    let more = forked.not_copied.len() - named.len();
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    Some(format!("not copied ({}): {}{rest}", first.reason.as_str(), named.join(", ")))
}

/// Returns a line for each fork: the fork point, the prompts and changes since, and its path.
pub(crate) fn forks_text(forks: &[Fork], paint: Paint) -> String {
    let cells: Vec<[String; 2]> = forks.iter().map(|fork| [plural(fork.prompts, "prompt"), extent(fork)]).collect();
    let widths: [usize; 2] =
        std::array::from_fn(|column| cells.iter().map(|row| columns(&row[column])).max().unwrap_or(0));
    let line = |(fork, [prompts, changes]): (&Fork, &[String; 2])| {
        let state = if fork.exists { String::new() } else { format!("  {}", paint.removed("(gone)")) };
        let id = paint.id(fork.checkpoint.short());
        format!("{id}  {}  {}  {}{state}\n", pad(prompts, widths[0]), pad(changes, widths[1]), visible_path(&fork.path))
    };
    forks.iter().zip(&cells).map(line).collect()
}

fn extent(fork: &Fork) -> String {
    match fork.changes {
        Some(changes) if changes.files == 0 => "no changes".into(),
        Some(changes) => {
            let (files, lines) = (plural(changes.files, "file"), lines(changes.insertions, changes.deletions));
            if lines.is_empty() { files } else { format!("{files}, {lines}") }
        }
        None => "fork point deleted".into(),
    }
}

/// Returns the changes that an adoption would make.
pub(crate) fn adopt_plan_text(plan: &RestorePlan, fork: &str, paint: Paint) -> String {
    let mut text = match (plan.changes.is_empty(), plan.conflicts.is_empty()) {
        (true, true) => format!("{}\n", nothing_to_adopt(fork)),
        (true, false) => format!("adopting {fork} would change no file\n"),
        (false, _) => format!("adopting {fork} would change:\n{}", change_list(&plan.changes, paint)),
    };
    let told = merged_line(&plan.merged, "would be merged").into_iter();
    let told = told.chain(plan.moved.iter().map(|moved| moved_line(&moved.from, &moved.to)));
    told.chain(plan.conflicts.iter().map(conflict_line)).for_each(|line| text.push_str(&format!("  {line}\n")));
    text
}

/// Returns a sentence about the result of an adoption, followed by the changed paths, or the first of them.
pub(crate) fn adopted_text(done: &RestoreOutcome, fork: &str, paint: Paint) -> String {
    if done.changes.is_empty() {
        return match done.conflicts.is_empty() {
            true => nothing_to_adopt(fork),
            false => format!("no file was changed; not all of {fork} could be adopted"),
        };
    }
    let (count, sum) = (plural(done.changes.len(), "path"), summary(&done.changes));
    let mut text = format!("adopted {fork} in {count}: {sum}\n{}", first_changes(&done.changes, paint));
    let told = merged_line(&done.merged, "merged").into_iter();
    let told = told.chain(done.moved.iter().map(|moved| moved_line(&moved.from, &moved.to)));
    told.for_each(|line| text.push_str(&format!("\n{line}")));
    text
}

fn nothing_to_adopt(fork: &str) -> String {
    format!("nothing to do: {fork} changed no file, or the changes are here already")
}
