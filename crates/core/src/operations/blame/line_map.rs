//! Follows lines from one version of a text to the version before it.

use imara_diff::{Algorithm, Diff, InternedInput, sources::byte_lines};

/// Lines whose origin is not known yet, in their order.
pub(super) struct PendingLines(Vec<PendingLine>);

#[derive(Clone, Copy)]
struct PendingLine {
    /// The line in the version that the walk has reached, counted from 0.
    here: u32,
    /// The line in the version that was asked about, counted from 0.
    wanted: u32,
}

impl PendingLines {
    /// Returns the lines of the version that was asked about.
    pub(super) fn new(lines: std::ops::Range<u32>) -> Self {
        Self(lines.map(|line| PendingLine { here: line, wanted: line }).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all lines and returns them, as lines of the version that was asked about.
    pub(super) fn take_all(&mut self) -> Vec<u32> {
        self.0.drain(..).map(|line| line.wanted).collect()
    }

    /// Moves to an older version. Lines that it lacks are removed and returned, as lines of the version that was asked
    /// about.
    pub(super) fn move_to(&mut self, older: &[u8], newer: &[u8]) -> Vec<u32> {
        let input = InternedInput::new(byte_lines(older), byte_lines(newer));
        // The algorithm and the order of lines of `git blame`.
        let mut diff = Diff::compute(Algorithm::Myers, &input);
        diff.postprocess_lines(&input);
        let mut hunks = diff.hunks().peekable();
        let mut shift = 0_i64;
        let mut introduced = Vec::new();
        self.0.retain_mut(|line| {
            while let Some(hunk) = hunks.next_if(|hunk| hunk.after.end <= line.here) {
                shift += i64::from(hunk.before.end - hunk.before.start) - i64::from(hunk.after.end - hunk.after.start);
            }
            if hunks.peek().is_some_and(|hunk| hunk.after.contains(&line.here)) {
                introduced.push(line.wanted);
                return false;
            }
            line.here = (i64::from(line.here) + shift) as u32;
            true
        });
        introduced
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_followed_over_insertions_and_deletions() {
        let mut pending = PendingLines::new(0..6);
        assert_eq!(pending.move_to(b"a\nb\nc\nd\n", b"0\na\nc\nx\nd\ne\n"), [0, 3, 5]);
        assert_eq!(pending.move_to(b"c\nd\n", b"a\nb\nc\nd\n"), [1]);
        assert_eq!(pending.take_all(), [2, 4]);
        assert!(pending.is_empty());
    }

    #[test]
    fn a_missing_final_newline_is_a_difference() {
        let mut pending = PendingLines::new(0..2);
        assert_eq!(pending.move_to(b"a\nb", b"a\nb\n"), [1]);
        assert_eq!(pending.move_to(b"", b"a\nb"), [0]);
    }
}
