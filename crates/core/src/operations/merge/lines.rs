//! Merges the lines of three texts.

use std::{num::NonZeroU8, ops::Range};

use bstr::ByteSlice;
use gix_imara_diff::{Algorithm, InternedInput};
use gix_merge::blob::{
    Resolution,
    builtin_driver::text::{self, Conflict, ConflictStyle, Merge},
};
use imara_diff::sources::byte_lines;

/// The length of the markers that are written into files. Editors recognize this length.
const MARKER_SIZE: NonZeroU8 = NonZeroU8::new(Conflict::DEFAULT_MARKER_SIZE).unwrap();

/// The words behind the conflict markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Labels {
    pub(crate) now: String,
    pub(crate) base: String,
    pub(crate) other: String,
}

/// The outcome of merging three texts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MergedLines {
    /// Both sides fit together.
    Clean(Vec<u8>),
    /// Both sides changed the same lines.
    Overlapping {
        /// The overlapping lines of the text on disk, counted from 1, the last one included.
        lines: Vec<[u64; 2]>,
        /// The text with markers around the overlapping lines.
        marked: Vec<u8>,
    },
}

/// Merges `other` into `now`. Lines are compared by their exact bytes, with their line endings.
pub(super) fn merge_lines(base: &[u8], now: &[u8], other: &[u8], labels: &Labels) -> MergedLines {
    let mut input = InternedInput::default();
    let merge = Merge::new(&mut input, now, base, other, Algorithm::Histogram);
    let mut merged = Vec::new();
    let size = unused_marker_size([base, now, other]);
    let plain = Conflict::Keep { style: ConflictStyle::Merge, marker_size: size };
    if merge.run(&mut merged, text::Labels::default(), plain) != Resolution::Conflict {
        return MergedLines::Clean(merged);
    }
    let lines = overlapping_lines(&merged, usize::from(size.get()), now);
    let labels = text::Labels {
        ancestor: Some(labels.base.as_bytes().as_bstr()),
        current: Some(labels.now.as_bytes().as_bstr()),
        other: Some(labels.other.as_bytes().as_bstr()),
    };
    merge.run(&mut merged, labels, Conflict::Keep { style: ConflictStyle::Diff3, marker_size: MARKER_SIZE });
    MergedLines::Overlapping { lines, marked: merged }
}

/// Returns a size for markers that no line of these texts begins with.
fn unused_marker_size(texts: [&[u8]; 3]) -> NonZeroU8 {
    let run = |line: &[u8]| match line.first() {
        Some(first @ (b'<' | b'=' | b'>')) => line.iter().take_while(|byte| *byte == first).count(),
        _ => 0,
    };
    let longest = texts.iter().flat_map(|text| byte_lines(text)).map(run).max().unwrap_or(0);
    let size = u8::try_from(longest.max(6) + 1).unwrap_or(u8::MAX);
    NonZeroU8::new(size).unwrap_or(NonZeroU8::MAX)
}

/// Returns the lines of `now` that are inside the markers of a merged text.
fn overlapping_lines(merged: &[u8], size: usize, now: &[u8]) -> Vec<[u64; 2]> {
    let begins_with = |line: &[u8], mark: u8| line.len() >= size && line[..size].iter().all(|byte| *byte == mark);
    let (mut ours, mut ranges, mut start, mut is_other): (Vec<&[u8]>, Vec<Range<u32>>, u32, bool) =
        (Vec::new(), Vec::new(), 0, false);
    for line in byte_lines(merged) {
        if begins_with(line, b'<') {
            start = ours.len() as u32;
        } else if begins_with(line, b'=') {
            is_other = true;
            ranges.push(start..ours.len() as u32);
        } else if begins_with(line, b'>') {
            is_other = false;
        } else if !is_other {
            ours.push(line);
        }
    }
    let ours = ours.concat();
    let last = crate::text::line_count(now).max(1);
    let told = moved_ranges(&ours, now, &ranges).into_iter().map(|range| {
        let first = (u64::from(range.start) + 1).min(last);
        [first, u64::from(range.end).max(first)]
    });
    told.collect()
}

/// Returns where ranges of lines of one text are in another one that shares these lines.
pub(super) fn moved_ranges(from: &[u8], to: &[u8], ranges: &[Range<u32>]) -> Vec<Range<u32>> {
    let input = imara_diff::InternedInput::new(byte_lines(from), byte_lines(to));
    let diff = imara_diff::Diff::compute(imara_diff::Algorithm::Histogram, &input);
    let hunks: Vec<imara_diff::Hunk> = diff.hunks().collect();
    let place = |line: u32| {
        let before = hunks.iter().rev().find(|hunk| hunk.before.start <= line && hunk.before.end <= line);
        before.map_or(line, |hunk| hunk.after.end + (line - hunk.before.end))
    };
    ranges.iter().map(|range| place(range.start)..place(range.end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels() -> Labels {
        Labels { now: "now".into(), base: "after x".into(), other: "before x".into() }
    }

    #[test]
    fn edits_at_different_lines_fit_together() {
        let merged = merge_lines(b"1\nB\n3\n4\n5\n", b"1\nB\n3\n4\nmine\n", b"1\n2\n3\n4\n5\n", &labels());
        assert_eq!(merged, MergedLines::Clean(b"1\n2\n3\n4\nmine\n".to_vec()));
    }

    #[test]
    fn overlapping_lines_are_those_of_the_text_on_disk() {
        let base = b"1\n2\n3\nagent\n5\n6\n7\n8\nagent\n";
        let now = b"new\n1\n2\n3\nmine\n5\n6\n7\n8\nagent\n";
        let other = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let MergedLines::Overlapping { lines, marked } = merge_lines(base, now, other, &labels()) else {
            panic!("both sides changed line 4")
        };
        assert_eq!(lines, [[5, 5]]);
        let expected =
            "new\n1\n2\n3\n<<<<<<< now\nmine\n||||||| after x\nagent\n=======\n4\n>>>>>>> before x\n5\n6\n7\n8\n9\n";
        assert_eq!(String::from_utf8(marked).unwrap(), expected);
    }

    #[test]
    fn markers_that_are_part_of_the_text_are_not_taken_for_conflicts() {
        let base = b"<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n1\nB\n";
        let now = b"<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n1\nmine\n";
        let other = b"<<<<<<< a\nx\n=======\ny\n>>>>>>> b\n1\n2\n";
        let MergedLines::Overlapping { lines, .. } = merge_lines(base, now, other, &labels()) else {
            panic!("both sides changed line 7")
        };
        assert_eq!(lines, [[7, 7]]);
    }
}
