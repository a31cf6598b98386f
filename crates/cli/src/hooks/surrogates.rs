//! Repairs lone surrogates in JSON.
//!
//! A program whose strings are UTF-16 may cut a string within a surrogate pair, and then write the remaining half as an
//! invalid escape. The rest of the document is valid.

/// The escape of the replacement character.
const REPLACEMENT: &[u8] = br"\ufffd";
/// The length of an escape: `\u` and four digits.
const ESCAPE_BYTES: usize = 6;

/// Returns the document with each lone surrogate replaced.
pub(super) fn without_lone_surrogates(json: &[u8]) -> Vec<u8> {
    let mut whole = Vec::with_capacity(json.len());
    let mut rest = json;
    while let Some(position) = rest.iter().position(|byte| *byte == b'\\') {
        let (plain, from_escape) = rest.split_at(position);
        whole.extend_from_slice(plain);
        let (kept, length) = match (unit(from_escape), from_escape.get(ESCAPE_BYTES..).and_then(unit)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (None, 2 * ESCAPE_BYTES),
            (Some(0xd800..=0xdfff), _) => (Some(REPLACEMENT), ESCAPE_BYTES),
            // This also skips an escaped backslash: the text after it is not an escape.
            _ => (None, from_escape.len().min(2)),
        };
        whole.extend_from_slice(kept.unwrap_or(&from_escape[..length]));
        rest = &from_escape[length..];
    }
    whole.extend_from_slice(rest);
    whole
}

/// Returns the UTF-16 unit of the escape at the start.
fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(br"\u")?.get(..4)?;
    let is_number = digits.iter().all(u8::is_ascii_hexdigit);
    is_number.then(|| u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        for (before, after) in [
            (r#""cut \ud83d""#, r#""cut \ufffd""#),
            (r#""\uD83D\uDE00 \ude00\uD83D""#, r#""\uD83D\uDE00 \ufffd\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ud83d\n""#, r#""\ufffd\n""#),
            (r#""C:\\ud83d \\\ud83d \"\u00e9""#, r#""C:\\ud83d \\\ufffd \"\u00e9""#),
            (r#""\ud8"#, r#""\ud8"#),
            (r#""\u+83d \"#, r#""\u+83d \"#),
            ("", ""),
        ] {
            assert_eq!(without_lone_surrogates(before.as_bytes()), after.as_bytes(), "{before}");
        }
    }
}
