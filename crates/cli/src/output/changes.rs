//! Formats changes for the user: lists of paths, sums, and patches.

use backtrail::{Change, ChangeStatus};

use super::{
    Paint,
    visible::{columns, cut_middle, pad, visible, visible_line},
    wording::{lines, plural},
};

/// The minimum width of a path, even on a narrow terminal.
const NARROWEST_PATH: usize = 12;

/// Returns the path of a change for printing. A directory ends in `/`.
pub(crate) fn shown_path(change: &Change) -> String {
    let mut path = visible(change.path.as_bytes());
    if change.is_directory() {
        path.push('/');
    }
    path
}

/// Returns an indented line for each change: the kind of change, the path, and the number of lines.
pub(crate) fn change_list(changes: &[Change], paint: Paint) -> String {
    let word_width = changes.iter().map(|change| word(change.status).len()).max().unwrap_or(0);
    let line = |change: &Change| {
        let counts = if change.binary { "binary".into() } else { lines(change.insertions, change.deletions) };
        let beside = word_width + 4 + if counts.is_empty() { 0 } else { columns(&counts) + 2 };
        let room = paint.line_width().saturating_sub(beside).max(NARROWEST_PATH);
        let path = cut_middle(&shown_path(change), room);
        let text = format!("  {}  {path}", in_colour(change.status, &pad(word(change.status), word_width), paint));
        if counts.is_empty() { format!("{text}\n") } else { format!("{text}  {}\n", paint.faint(counts)) }
    };
    changes.iter().map(line).collect()
}

/// Returns the number of changes of each kind: `1 added, 2 modified`.
pub(crate) fn summary(changes: &[Change]) -> String {
    let sorts = [
        ChangeStatus::Added,
        ChangeStatus::Modified,
        ChangeStatus::Deleted,
        ChangeStatus::TypeChanged,
        ChangeStatus::ModeChanged,
    ];
    let counted = sorts.map(|sort| (sort, changes.iter().filter(|change| change.status == sort).count()));
    let parts = counted.into_iter().filter(|(_, count)| *count > 0);
    parts.map(|(sort, count)| format!("{count} {}", word(sort))).collect::<Vec<_>>().join(", ")
}

/// Returns the letter and the path of each change, separated by a tab.
pub(crate) fn name_status(changes: &[Change]) -> String {
    changes.iter().map(|change| format!("{}\t{}\n", letter(change.status), shown_path(change))).collect()
}

/// Returns the number of changed lines of each path, with a bar, and their sum.
pub(crate) fn stat(changes: &[Change], paint: Paint) -> String {
    const WIDEST_BAR: usize = 40;
    const NARROWEST_BAR: usize = 10;
    let most = changes.iter().map(|change| change.insertions + change.deletions).max().unwrap_or(0).max(1);
    // Beside the path and the bar: the margin, the separator, and the number.
    let fixed = 2 + 3 + most.to_string().len().max(if changes.iter().any(|change| change.binary) { 6 } else { 0 }) + 1;
    let room = paint.line_width().saturating_sub(fixed);
    let widest = changes.iter().map(|change| columns(&shown_path(change))).max().unwrap_or(0);
    let path_width = widest.min(room.saturating_sub(NARROWEST_BAR).max(NARROWEST_PATH));
    // Both parts of a bar are rounded up.
    let bar = room.saturating_sub(path_width + 1).clamp(1, WIDEST_BAR) as u64;
    let paths: Vec<String> = changes.iter().map(|change| cut_middle(&shown_path(change), path_width)).collect();
    let scaled = |count: u64| if most <= bar { count } else { (count * bar).div_ceil(most) } as usize;
    let line = |(change, path): (&Change, &String)| {
        let bar = if change.binary {
            "binary".into()
        } else {
            let came = paint.added("+".repeat(scaled(change.insertions)));
            let went = paint.removed("-".repeat(scaled(change.deletions)));
            format!("{} {came}{went}", change.insertions + change.deletions)
        };
        format!("  {} | {}\n", pad(path, path_width), bar.trim_end())
    };
    let mut text: String = changes.iter().zip(&paths).map(line).collect();
    let (came, went) = changes.iter().fold((0, 0), |sum, change| (sum.0 + change.insertions, sum.1 + change.deletions));
    text.push_str(format!("  {} {}", plural(changes.len(), "file"), lines(came, went)).trim_end());
    text.push('\n');
    text
}

/// Formats a patch for a terminal: with colours, and with control characters escaped.
pub(crate) fn shown_patch(patch: &str, paint: Paint) -> String {
    // `lines` would drop carriage returns.
    patch.split_terminator('\n').map(|line| format!("{}\n", patch_line(line, paint))).collect()
}

fn patch_line(line: &str, paint: Paint) -> String {
    let text = visible_line(line);
    match line.as_bytes() {
        [b'd', b'i', b'f', b'f', b' ', ..] | [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => {
            paint.heading(text)
        }
        [b'@', b'@', ..] => paint.changed(text),
        [b'+', ..] => paint.added(text),
        [b'-', ..] => paint.removed(text),
        _ => text,
    }
}

fn word(status: ChangeStatus) -> &'static str {
    match status {
        ChangeStatus::Added => "added",
        ChangeStatus::Modified => "modified",
        ChangeStatus::Deleted => "deleted",
        ChangeStatus::TypeChanged => "type changed",
        ChangeStatus::ModeChanged => "mode changed",
    }
}

/// Returns the letter that git uses for a kind of change.
fn letter(status: ChangeStatus) -> char {
    match status {
        ChangeStatus::Added => 'A',
        ChangeStatus::Modified | ChangeStatus::ModeChanged => 'M',
        ChangeStatus::Deleted => 'D',
        ChangeStatus::TypeChanged => 'T',
    }
}

fn in_colour(status: ChangeStatus, text: &str, paint: Paint) -> String {
    match status {
        ChangeStatus::Added => paint.added(text),
        ChangeStatus::Deleted => paint.removed(text),
        _ => paint.changed(text),
    }
}

#[cfg(test)]
mod tests {
    use backtrail::WorkspacePath;

    use super::*;

    #[test]
    fn lines_fit_a_narrow_terminal() {
        let change = |path: &str, insertions, deletions, binary| Change {
            insertions,
            deletions,
            binary,
            ..Change::between(WorkspacePath::new(path).unwrap(), None, None)
        };
        let deep = "src/components/dashboard/widgets/charts/time_series/renderer/canvas/axis_labels.tsx";
        let changes = [change(deep, 4_000, 1_234, false), change("a.rs", 1, 0, false), change(deep, 0, 0, true)];
        for width in [40, 80, 140] {
            let paint = Paint::plain_within(width);
            for text in [stat(&changes, paint), change_list(&changes, paint)] {
                assert!(text.lines().all(|line| columns(line) <= width), "{width}:\n{text}");
                assert!(text.contains("labels.tsx"), "{width}:\n{text}");
            }
        }
        let whole = Paint::plain();
        assert!(stat(&changes, whole).contains(deep) && change_list(&changes, whole).contains(deep));
    }
}
