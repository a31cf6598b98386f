//! Numbers, times and names as people say them.

use backtrail::Checkpoint;
use jiff::{Timestamp, Zoned};

use super::visible::{first_line, visible};

/// `1 file`, `2 files`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// `+3 −1`; nothing where no line came or went.
pub(crate) fn lines(insertions: u64, deletions: u64) -> String {
    match (insertions, deletions) {
        (0, 0) => String::new(),
        (came, 0) => format!("+{came}"),
        (0, went) => format!("−{went}"),
        (came, went) => format!("+{came} −{went}"),
    }
}

/// `340 B`, `1.2 MB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
    if count < 1_000 {
        return format!("{count} B");
    }
    let mut size = count as f64 / 1e3;
    let mut unit = 0;
    // What would round up to a thousand is one of the next unit.
    while size >= 999.5 && unit + 1 < UNITS.len() {
        size /= 1e3;
        unit += 1;
    }
    if size < 9.95 { format!("{size:.1} {}", UNITS[unit]) } else { format!("{size:.0} {}", UNITS[unit]) }
}

/// `2 min ago`, `yesterday 14:30`, `12 Nov 14:30`.
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

/// A checkpoint in a sentence: `3f9c2a1b "before the agent"`.
pub(crate) fn title(checkpoint: &Checkpoint) -> String {
    let message = first_line(&checkpoint.message);
    let words = checkpoint.name.as_deref().map(visible).unwrap_or(message);
    if words.is_empty() { checkpoint.id.short() } else { format!("{} \"{words}\"", checkpoint.id.short()) }
}

/// Words as one would write them in a shell.
pub(crate) fn shell_words<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    words.into_iter().map(shell_word).collect::<Vec<_>>().join(" ")
}

fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@~+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    if !word.contains(['"', '$', '`', '\\', '!']) {
        return format!("\"{word}\"");
    }
    quoted(word)
}

/// A word that no shell takes apart.
pub(crate) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_say_them() {
        let now: Zoned = "2026-11-15T16:00:00+01:00[+01:00]".parse().unwrap();
        let said = |time: &str| when(time.parse().unwrap(), &now);
        assert_eq!(said("2026-11-15T14:59:58Z"), "just now");
        assert_eq!(said("2026-11-15T14:59:20Z"), "40 s ago");
        assert_eq!(said("2026-11-15T14:58:00Z"), "2 min ago");
        assert_eq!(said("2026-11-15T08:05:00Z"), "today 09:05");
        assert_eq!(said("2026-11-14T13:30:00Z"), "yesterday 14:30");
        assert_eq!(said("2026-11-01T23:30:00Z"), "2 Nov 00:30");
        assert_eq!(said("2025-12-31T13:30:00Z"), "2025-12-31 14:30");
        assert_eq!(said("2026-11-16T13:30:00Z"), "16 Nov 14:30", "a clock that was set back");
    }

    #[test]
    fn sizes_as_people_say_them() {
        assert_eq!(bytes(340), "340 B");
        assert_eq!(bytes(1_234), "1.2 kB");
        assert_eq!(bytes(999_999), "1.0 MB");
        assert_eq!(bytes(250_000_000), "250 MB");
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(shell_words(["save", "before the agent"]), "save \"before the agent\"");
        assert_eq!(shell_words(["cat", "it's $x"]), r"cat 'it'\''s $x'");
    }
}
