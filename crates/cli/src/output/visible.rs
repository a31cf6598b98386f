//! Makes foreign text safe for a terminal: nothing in it can move the cursor or be invisible.

use std::{os::unix::ffi::OsStrExt, path::Path};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Escapes every character that a terminal would interpret, and bytes that are not UTF-8.
pub(crate) fn visible(text: impl AsRef<[u8]>) -> String {
    let mut out = String::new();
    for chunk in text.as_ref().utf8_chunks() {
        chunk.valid().chars().for_each(|c| push_visible(&mut out, c));
        chunk.invalid().iter().for_each(|byte| out.push_str(&format!("\\x{byte:02x}")));
    }
    out
}

/// Like [`visible`], for a path of the system.
pub(crate) fn visible_path(path: &Path) -> String {
    visible(path.as_os_str().as_bytes())
}

/// Like [`visible`], but keeps tabs. For a line of a file.
pub(crate) fn visible_line(line: &str) -> String {
    let mut out = String::new();
    line.chars().for_each(|c| if c == '\t' { out.push(c) } else { push_visible(&mut out, c) });
    out
}

/// Returns the first line of a text that is not blank, made visible.
pub(crate) fn first_line(text: &str) -> String {
    visible(text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default())
}

fn push_visible(out: &mut String, c: char) {
    match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ if c.is_ascii_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
        _ if c.is_control() || reorders(c) => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
        _ => out.push(c),
    }
}

/// Returns whether the character would reorder the text around it.
fn reorders(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns the number of columns that a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// Shortens a text to at most `width` columns. A shortened text ends in `…`.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// Shortens a text to at most `width` columns. A shortened text has `…` in the middle: of a path, the end matters most.
pub(crate) fn cut_middle(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let room = width.saturating_sub(1);
    let head = fitting(text.chars(), room / 3);
    let tail = fitting(text.chars().rev(), room - columns(&head));
    format!("{head}…{}", tail.chars().rev().collect::<String>())
}

/// Returns as many characters from the start as fit in this many columns.
fn fitting(letters: impl Iterator<Item = char>, width: usize) -> String {
    let mut used = 0;
    letters
        .take_while(|letter| {
            used += letter.width().unwrap_or(0);
            used <= width
        })
        .collect()
}

/// Appends spaces to a text until it takes `width` columns.
pub(crate) fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(columns(text))))
}

/// Wraps a text at spaces into lines of at most `width` columns. Lines after the first start with `indent`. A longer
/// word is not broken.
pub(crate) fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let room = width.saturating_sub(columns(indent)).max(20);
    let mut out = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        let length = columns(word);
        if used > 0 && used + 1 + length > room {
            out.truncate(out.trim_end().len());
            out.push('\n');
            out.push_str(indent);
            used = 0;
        } else if !out.is_empty() {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += length;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(visible("a\x1b[31m\nb\tc\r"), "a\\x1b[31m\\nb\\tc\\r");
        assert_eq!(visible("\u{9b}x\u{202e}y"), "\\u{9b}x\\u{202e}y");
        assert_eq!(visible(b"x\xff\xc3("), "x\\xff\\xc3(");
        assert_eq!(visible("日本 é 😀"), "日本 é 😀");
        assert_eq!(visible_line("\ta\x07"), "\ta\\x07");
        assert_eq!(first_line("\n  one \ntwo"), "one");
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(cut("abcdef", 6), "abcdef");
        assert_eq!(cut("abcdefg", 6), "abcde…");
        assert_eq!(cut("日本語文", 6), "日本…");
        assert_eq!(pad("日", 4), "日  ");
        assert_eq!(cut_middle("src/deep/down/file.rs", 21), "src/deep/down/file.rs");
        assert_eq!(cut_middle("src/deep/down/file.rs", 13), "src/…/file.rs");
        assert_eq!(cut_middle("日本語文", 6), "…語文");
    }
}
