//! Files of lines that each carry a checksum: a torn or damaged line costs itself alone.

/// One line with its checksum in front and a newline behind.
pub(super) fn seal(text: &str) -> String {
    debug_assert!(!text.contains('\n'));
    format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes()))
}

/// The lines whose checksums fit.
pub(super) fn sound_lines(bytes: &[u8]) -> impl Iterator<Item = &str> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = std::str::from_utf8(line).ok()?;
        let (checksum, text) = line.split_once(' ')?;
        let expected = u32::from_str_radix(checksum, 16).ok()?;
        (checksum.len() == 8 && crc32fast::hash(text.as_bytes()) == expected).then_some(text)
    })
}

/// How many lines are there that do not fit their checksum?
pub(super) fn damaged_lines(bytes: &[u8]) -> usize {
    let all = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    all - sound_lines(bytes).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_line_costs_itself_alone() {
        let mut bytes = [seal("one"), seal("two"), seal("three")].concat().into_bytes();
        assert_eq!(sound_lines(&bytes).collect::<Vec<_>>(), ["one", "two", "three"]);
        let second = seal("one").len() + 10;
        bytes[second] ^= 1;
        bytes.truncate(bytes.len() - 3);
        assert_eq!(sound_lines(&bytes).collect::<Vec<_>>(), ["one"]);
        assert_eq!(damaged_lines(&bytes), 2);
    }
}
