//! Output about forks.

use backtrail::{Fork, Forked};

use super::{
    Paint,
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
