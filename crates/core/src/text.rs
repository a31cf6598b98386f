//! Defines what counts as text, and as a line of it. Truncates long texts.

/// Files larger than this are compared as a whole, not line by line.
pub(crate) const MAX_TEXT_BYTES: u64 = 16 << 20;
/// The number of leading bytes in which git looks for a NUL: a file with one is binary.
const BINARY_PROBE: usize = 8_000;

/// Returns whether the bytes are binary, by git's definition.
pub(crate) fn is_binary(bytes: &[u8]) -> bool {
    bytes.len() as u64 > MAX_TEXT_BYTES || memchr::memchr(0, &bytes[..bytes.len().min(BINARY_PROBE)]).is_some()
}

/// Returns the number of lines of a text. A last line without a newline counts.
pub(crate) fn line_count(bytes: &[u8]) -> u64 {
    let newlines = memchr::memchr_iter(b'\n', bytes).count() as u64;
    newlines + u64::from(bytes.last().is_some_and(|last| *last != b'\n'))
}

/// Returns the longest start of a text with at most `max_bytes` bytes that splits no character.
pub fn start_of(text: &str, max_bytes: usize) -> &str {
    let end = (0..=max_bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_cut_in_two() {
        assert_eq!(start_of("aä", 3), "aä");
        assert_eq!(start_of("aä", 2), "a");
        assert_eq!(start_of("aä", 1), "a");
        assert_eq!(start_of("ä", 1), "");
        assert_eq!(start_of("", 0), "");
    }
}
