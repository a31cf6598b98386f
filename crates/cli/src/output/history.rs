//! Formats the versions of one path for the user.

use backtrail::{Checkpoint, OnDisk, Version};
use jiff::Zoned;

use super::{
    Paint,
    timeline::numbered_cause,
    visible::{columns, cut, first_line, pad},
    wording::{bytes, clock, lines, title},
};

/// The minimum width of a checkpoint's title, even on a narrow terminal.
const NARROWEST_TITLE: usize = 20;

/// The parameters for drawing the versions of a path.
pub(crate) struct HistoryTable<'a> {
    pub(crate) now: &'a Zoned,
    pub(crate) width: usize,
    pub(crate) paint: Paint,
}

impl HistoryTable<'_> {
    /// Returns a line for each version: the time, the kind of change, the number of lines, the size, and the
    /// checkpoint. If the terminal is too narrow, the least important columns are omitted: first the size, then the
    /// number of lines.
    pub(crate) fn draw(&self, versions: &[Version], checkpoints: &[Checkpoint]) -> String {
        let rows: Vec<[String; 4]> =
            versions.iter().zip(checkpoints).map(|(version, checkpoint)| self.cells(version, checkpoint)).collect();
        let widths: [usize; 4] =
            std::array::from_fn(|column| rows.iter().map(|row| columns(&row[column])).max().unwrap_or(0));
        let titles: Vec<String> = versions.iter().zip(checkpoints).map(|(version, of)| titled(version, of)).collect();
        let widest = titles.iter().map(|title| columns(title)).max().unwrap_or(0);
        let room = |shown: usize| {
            self.width.saturating_sub(widths[..shown].iter().filter(|width| **width > 0).map(|width| width + 2).sum())
        };
        let shown = (2..=4).rev().find(|shown| room(*shown) >= widest.min(NARROWEST_TITLE)).unwrap_or(2);
        let line = |((row, title), checkpoint): ((&[String; 4], &String), &Checkpoint)| {
            let mut line = String::new();
            for (column, cell) in row[..shown].iter().enumerate().filter(|(column, _)| widths[*column] > 0) {
                let cell = match column {
                    0 => self.paint.faint(pad(cell, widths[0])),
                    3 => format!("{}{cell}", " ".repeat(widths[3].saturating_sub(columns(cell)))),
                    _ => pad(cell, widths[column]),
                };
                line.push_str(&cell);
                line.push_str("  ");
            }
            let id = checkpoint.id.short();
            line.push_str(&cut(title, room(shown).max(NARROWEST_TITLE)).replacen(&id, &self.paint.id(&id), 1));
            line + "\n"
        };
        rows.iter().zip(&titles).zip(checkpoints).map(line).collect()
    }

    /// Returns a line that describes the version on disk.
    pub(crate) fn on_disk(&self, on_disk: &OnDisk, same: Option<&Checkpoint>) -> String {
        let said = match (on_disk, same) {
            (OnDisk::As(_), Some(checkpoint)) => format!("the version of {}", title(checkpoint)),
            (OnDisk::As(_), None) => "a saved version".to_owned(),
            (OnDisk::Unsaved, _) => "an unsaved version".to_owned(),
            (OnDisk::Gone, _) => "nothing".to_owned(),
            (OnDisk::LeftOut, _) => "something that checkpoints skip".to_owned(),
        };
        let line = cut(&format!("on disk now: {said}"), self.width);
        let id = same.map(|checkpoint| checkpoint.id.short()).unwrap_or_default();
        if id.is_empty() { line + "\n" } else { line.replacen(&id, &self.paint.id(&id), 1) + "\n" }
    }

    fn cells(&self, version: &Version, checkpoint: &Checkpoint) -> [String; 4] {
        let counts = if version.binary { "binary".into() } else { lines(version.insertions, version.deletions) };
        let size = version.bytes.map_or_else(|| "-".to_owned(), bytes);
        [clock(checkpoint.time, self.now), version.status.as_str().replace('_', " "), counts, size]
    }
}

fn titled(version: &Version, checkpoint: &Checkpoint) -> String {
    let mark = if version.safety { " (safety)" } else { "" };
    let title = title(checkpoint);
    let id = checkpoint.id.short();
    let title = title.replacen(&id, &format!("{id}{mark}"), 1);
    let origin = &checkpoint.origin;
    if origin.tool.is_none() && origin.turn.is_none() {
        return title;
    }
    let cause = numbered_cause(checkpoint);
    match &origin.command {
        Some(command) => format!("{title} ({cause} `{}`)", first_line(command)),
        None => format!("{title} ({cause})"),
    }
}

#[cfg(test)]
mod tests {
    use backtrail::{ChangeStatus, CheckpointId};

    use super::*;
    use crate::output::timeline::sample;

    #[test]
    fn narrow_terminals_omit_the_least_important_columns() {
        let checkpoints = [sample('a', "a message that is rather long"), sample('b', "b")];
        let version = |letter: char| Version {
            checkpoint: CheckpointId([letter as u8; 20]),
            status: ChangeStatus::Modified,
            bytes: Some(12_000),
            insertions: 3,
            deletions: 4,
            binary: false,
            safety: letter == 'b',
        };
        let now: Zoned = "2026-11-15T15:00:00Z[UTC]".parse().unwrap();
        let draw = |width| {
            HistoryTable { now: &now, width, paint: Paint::plain() }.draw(&[version('a'), version('b')], &checkpoints)
        };
        assert!(draw(100).contains("12 kB  61616161 \"a message that is rather long\"\n"), "{}", draw(100));
        assert!(draw(100).contains("62626262 (safety) \"b\""), "{}", draw(100));
        for width in 50..100 {
            let drawn = draw(width);
            assert!(drawn.lines().all(|line| columns(line) <= width), "{width}:\n{drawn}");
            assert!(drawn.contains("61616161 \"a messag"), "{width}:\n{drawn}");
        }
        assert!(!draw(50).contains("kB") && draw(60).contains("modified"), "{}", draw(50));
    }
}
