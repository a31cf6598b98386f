//! Truncates long texts.

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
