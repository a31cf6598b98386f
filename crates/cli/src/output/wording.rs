//! Formats numbers, times and names for the user.

use std::{borrow::Cow, os::unix::ffi::OsStrExt, path::Path};

use backtrail::Checkpoint;
use jiff::{Timestamp, Zoned};

use super::visible::{first_line, visible};

/// Formats a count with its noun: `1 file`, `2 files`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// Formats line counts: `+3 −1`. Returns an empty string if both are zero.
pub(crate) fn lines(insertions: u64, deletions: u64) -> String {
    match (insertions, deletions) {
        (0, 0) => String::new(),
        (came, 0) => format!("+{came}"),
        (0, went) => format!("−{went}"),
        (came, went) => format!("+{came} −{went}"),
    }
}

/// Formats a size: `340 B`, `1.2 MB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if count < 1_000 {
        return format!("{count} B");
    }
    let mut size = count as f64 / 1e3;
    let mut unit = 0;
    // A number that would be rounded up to 1000 is shown in the next unit.
    while size >= 999.5 && unit + 1 < UNITS.len() {
        size /= 1e3;
        unit += 1;
    }
    if size < 9.95 { format!("{size:.1} {}", UNITS[unit]) } else { format!("{size:.0} {}", UNITS[unit]) }
}

/// Formats a time relative to now: `2 min ago`, `yesterday 14:30`, `12 Nov 14:30`.
pub(crate) fn when(time: Timestamp, now: &Zoned) -> String {
    let local = time.to_zoned(now.time_zone().clone());
    let seconds = now.timestamp().as_second() - time.as_second();
    let clock = local.strftime("%H:%M");
    let days = (now.date() - local.date()).get_days();
    match seconds {
        0..5 => "just now".into(),
        5..60 => format!("{seconds} s ago"),
        60..3_600 => format!("{} min ago", seconds / 60),
        _ if local.date() == now.date() => format!("today {clock}"),
        _ if days == 1 => format!("yesterday {clock}"),
        _ if local.year() == now.year() => local.strftime("%-d %b %H:%M").to_string(),
        _ => local.strftime("%Y-%m-%d %H:%M").to_string(),
    }
}

/// Formats a time to the second, for lists in which the user compares times: `today 14:58:07`, `yesterday 14:30:00`,
/// `12 Nov 14:30:00`.
pub(crate) fn clock(time: Timestamp, now: &Zoned) -> String {
    let local = time.to_zoned(now.time_zone().clone());
    let days = (now.date() - local.date()).get_days();
    let day = match days {
        0 => "today".to_owned(),
        1 => "yesterday".to_owned(),
        _ if local.year() == now.year() => local.strftime("%-d %b").to_string(),
        _ => local.strftime("%Y-%m-%d").to_string(),
    };
    format!("{day} {}", local.strftime("%H:%M:%S"))
}

/// Formats a size for a settings file: `100MiB`.
pub(crate) fn set_bytes(count: u64) -> String {
    let units = [(1 << 30, "GiB"), (1_000_000_000, "GB"), (1 << 20, "MiB"), (1_000_000, "MB"), (1 << 10, "KiB")];
    let fitting = units.into_iter().find(|(unit, _)| count > 0 && count.is_multiple_of(*unit));
    fitting.map_or_else(|| count.to_string(), |(unit, name)| format!("{}{name}", count / unit))
}

/// Formats a checkpoint for a sentence: `3f9c2a1b "before the agent"`.
pub(crate) fn title(checkpoint: &Checkpoint) -> String {
    let words = title_words(checkpoint);
    if words.is_empty() { checkpoint.id.short() } else { format!("{} \"{words}\"", checkpoint.id.short()) }
}

/// Returns the name of a checkpoint, or else the first line of its message.
pub(crate) fn title_words(checkpoint: &Checkpoint) -> String {
    checkpoint.name.as_deref().map_or_else(|| first_line(&checkpoint.message), visible)
}

/// Quotes words for a shell.
pub(crate) fn shell_words<W: AsRef<[u8]>>(words: impl IntoIterator<Item = W>) -> String {
    words.into_iter().map(|word| shell_word(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Quotes a path for a shell. A path that starts with `-` gets `./` in front, so that it is not taken for an option.
pub(crate) fn shell_path(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    if bytes.starts_with(b"-") { shell_word(&[b"./", bytes].concat()) } else { shell_word(bytes) }
}

/// Quotes a word. `shlex` alone would quote addresses like `@~2`, and pass control characters on to the terminal.
fn shell_word(word: &[u8]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@+,".contains(c);
    let Some(text) = std::str::from_utf8(word).ok().filter(|text| visible(text) == **text) else {
        return spelled_out(word);
    };
    // A shell replaces a tilde at the start with the home directory.
    let is_tilde_inside = |(position, c): (usize, char)| c == '~' && position > 0;
    if !text.is_empty() && text.char_indices().all(|(at, c)| is_plain(c) || is_tilde_inside((at, c))) {
        return text.to_owned();
    }
    if !text.contains(['"', '$', '`', '\\', '!']) {
        return format!("\"{text}\"");
    }
    shlex::try_quote(text).map_or_else(|_| spelled_out(word), Cow::into_owned)
}

/// Quotes a word that contains control characters or bytes that are not UTF-8, with `$'…'`.
fn spelled_out(word: &[u8]) -> String {
    let mut out = String::from("$'");
    for byte in word {
        match byte {
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\'' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => out.push(char::from(*byte)),
            // Always three octal digits, so that a following digit is not taken for a part of the number.
            _ => out.push_str(&format!("\\{byte:03o}")),
        }
    }
    out.push('\'');
    out
}

/// Returns the ignore pattern that matches only this directory.
pub(crate) fn ignore_pattern(path: &[u8]) -> Vec<u8> {
    let mut pattern = vec![b'/'];
    for byte in path {
        if b"*?[\\".contains(byte) {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern.push(b'/');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_times_are_relative() {
        let now: Zoned = "2026-11-15T16:00:00+01:00[+01:00]".parse().unwrap();
        let text_of = |time: &str| when(time.parse().unwrap(), &now);
        assert_eq!(text_of("2026-11-15T14:59:58Z"), "just now");
        assert_eq!(text_of("2026-11-15T14:59:20Z"), "40 s ago");
        assert_eq!(text_of("2026-11-15T14:58:00Z"), "2 min ago");
        assert_eq!(text_of("2026-11-15T08:05:00Z"), "today 09:05");
        assert_eq!(text_of("2026-11-14T13:30:00Z"), "yesterday 14:30");
        assert_eq!(text_of("2026-11-01T23:30:00Z"), "2 Nov 00:30");
        assert_eq!(text_of("2025-12-31T13:30:00Z"), "2025-12-31 14:30");
        assert_eq!(text_of("2026-11-16T13:30:00Z"), "16 Nov 14:30", "the clock was set back");
    }

    #[test]
    fn sizes_are_rounded() {
        assert_eq!(bytes(340), "340 B");
        assert_eq!(bytes(1_234), "1.2 kB");
        assert_eq!(bytes(999_999), "1.0 MB");
        assert_eq!(bytes(250_000_000), "250 MB");
    }

    #[test]
    fn words_are_quoted_if_a_shell_needs_it() {
        assert_eq!(shell_words(["save", "before the agent"]), "save \"before the agent\"");
        assert_eq!(shell_words(["cat", "it's $x"]), r#"cat "it's "'$x'"#);
        assert_eq!(shell_words(["@~2", "~", ""]), r#"@~2 "~" """#);
        assert_eq!(shell_words([&b"two\nlines\x1b[2J\xff'"[..]]), r"$'two\nlines\033[2J\377\''");
        assert_eq!(shell_words(["a\u{202e}b"]), r"$'a\342\200\256b'");
        assert_eq!(shell_path(Path::new("-rf")), "./-rf");
        assert_eq!(shell_path(Path::new("-r f")), "\"./-r f\"");
    }

    #[test]
    fn bash_reads_quoted_words_back() {
        let words: [&[u8]; 8] =
            [b"a b", b"it's", b"-rf", b"two\nlines", b"\xff\x01x1", b"$HOME `id` \\ \"!", b"", b"*?[a]{b,c};&|<>()#~"];
        let command = format!("printf '%s\\0' {}", shell_words(words));
        let Ok(done) = std::process::Command::new("bash").args(["-c", &command]).output() else { return };
        let expected: Vec<u8> = words.iter().flat_map(|word| [word, &b"\0"[..]].concat()).collect();
        assert_eq!(done.stdout, expected, "{command}");
    }

    #[test]
    fn an_ignore_pattern_matches_only_one_directory() {
        assert_eq!(ignore_pattern(b"data"), b"/data/");
        assert_eq!(ignore_pattern(br"-a*[\"), br"/-a\*\[\\/");
    }

    #[test]
    fn clock_times_have_seconds() {
        let now: Zoned = "2026-11-15T16:00:00+01:00[+01:00]".parse().unwrap();
        let text_of = |time: &str| clock(time.parse().unwrap(), &now);
        assert_eq!(text_of("2026-11-15T14:58:07Z"), "today 15:58:07");
        assert_eq!(text_of("2026-11-14T13:30:01Z"), "yesterday 14:30:01");
        assert_eq!(text_of("2026-11-01T23:30:00Z"), "2 Nov 00:30:00");
        assert_eq!(text_of("2025-12-31T13:30:00Z"), "2025-12-31 14:30:00");
    }

    #[test]
    fn sizes_are_printed_as_they_are_set() {
        assert_eq!(
            [0, 1_000, 100 << 20, 3 << 30, 2_000_000_000].map(set_bytes),
            ["0", "1000", "100MiB", "3GiB", "2GB"]
        );
    }
}
