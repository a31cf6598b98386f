//! Texts that are too long to be told whole.

/// The longest start of a text with at most so many bytes and no character cut in two.
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
