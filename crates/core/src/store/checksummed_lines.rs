//! Files of lines that each have a checksum, so that a torn or damaged line does not affect the others.

use bstr::ByteSlice;

/// Returns a line with its checksum at the start and a newline at the end.
pub(super) fn seal(text: &str) -> String {
    debug_assert!(!text.contains('\n'));
    format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes()))
}

/// The lines of such a file.
pub(super) struct Lines<'a> {
    /// The text of the lines whose checksums match.
    pub(super) sound: Vec<&'a str>,
    /// The number of lines whose checksums do not match.
    pub(super) damaged: usize,
}

impl<'a> Lines<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        let lines = bytes.split_str(b"\n").filter(|line| !line.is_empty()).map(open);
        let mut found = Self { sound: Vec::new(), damaged: 0 };
        for line in lines {
            match line {
                Some(text) => found.sound.push(text),
                None => found.damaged += 1,
            }
        }
        found
    }
}

/// Returns each line with its offset, or `None` for one whose checksum does not match.
pub(super) fn positioned(bytes: &[u8]) -> impl Iterator<Item = (usize, Option<&str>)> {
    let mut start = 0;
    let lines = bytes.split_str(b"\n").map(move |line| {
        let offset = start;
        start += line.len() + 1;
        (offset, line)
    });
    lines.filter(|(_, line)| !line.is_empty()).map(|(offset, line)| (offset, open(line)))
}

/// Returns the length of the line that [`seal`] makes of a text.
pub(super) fn sealed_length(text: &str) -> usize {
    text.len() + 10
}

/// Returns the text of a line, with or without its newline. Returns `None` if its checksum does not match.
pub(super) fn open(line: &[u8]) -> Option<&str> {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let (checksum, text) = line.split_at_checked(8)?;
    let text = text.strip_prefix(b" ")?;
    let expected = u32::from_str_radix(std::str::from_utf8(checksum).ok()?, 16).ok()?;
    (crc32fast::hash(text) == expected).then(|| std::str::from_utf8(text).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_line_costs_itself_alone() {
        let mut bytes = [seal("one"), seal("two"), seal("three")].concat().into_bytes();
        assert_eq!(Lines::of(&bytes).sound, ["one", "two", "three"]);
        let second = seal("one").len() + 10;
        bytes[second] ^= 1;
        bytes.truncate(bytes.len() - 3);
        let found = Lines::of(&bytes);
        assert_eq!((found.sound, found.damaged), (vec!["one"], 2));
    }
}
