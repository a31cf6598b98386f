//! Parses sizes and durations as people write them.

use std::time::Duration;

/// Parses a size such as `100MiB`, `2GB` or `512`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let invalid = || format!("{text:?} is not a size; write it like \"100MiB\"");
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().map_err(|_| invalid())?;
    let factor: u64 = match text[split..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "kib" => 1 << 10,
        "m" | "mb" => 1_000_000,
        "mib" => 1 << 20,
        "g" | "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        "t" | "tb" => 1_000_000_000_000,
        "tib" => 1 << 40,
        _ => return Err(invalid()),
    };
    number.checked_mul(factor).ok_or_else(invalid)
}

/// The longest valid duration. The clock can't reach back any further, so a longer one must be a mistake.
const MAX_SECONDS: u64 = 100 * 366 * 86_400;

/// Parses a duration such as `20m`, `7d` or `1h30m`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    match seconds(text) {
        None => Err(format!("{text:?} is not a duration; write it like \"20m\", \"36h\" or \"7d\"")),
        Some(seconds) if seconds > MAX_SECONDS => Err(format!("{text:?} is out of range: the limit is 100 years")),
        Some(seconds) => Ok(Duration::from_secs(seconds)),
    }
}

/// Returns whether the text has the form of a duration but is longer than any valid one.
pub(crate) fn is_beyond_range(text: &str) -> bool {
    seconds(text).is_some_and(|seconds| seconds > MAX_SECONDS)
}

/// Returns the seconds of a duration, saturating at the largest number. Returns `None` if the text is not a duration.
fn seconds(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut seconds: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|digits| *digits > 0)?;
        let number: u64 = rest[..digits].parse().unwrap_or(u64::MAX);
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |end| digits + end);
        let unit = match rest[digits..unit_end].trim() {
            "s" | "sec" | "second" | "seconds" => 1,
            "m" | "min" | "minute" | "minutes" => 60,
            "h" | "hour" | "hours" => 3_600,
            "d" | "day" | "days" => 86_400,
            "w" | "week" | "weeks" => 604_800,
            _ => return None,
        };
        seconds = seconds.saturating_add(number.saturating_mul(unit));
        rest = &rest[unit_end..];
    }
    Some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations() {
        assert_eq!(parse_bytes("100MiB"), Ok(100 << 20));
        assert_eq!(parse_bytes("2GB"), Ok(2_000_000_000));
        assert_eq!(parse_bytes("17"), Ok(17));
        assert!(parse_bytes("lots").is_err() && parse_bytes("").is_err() && parse_bytes("5 apples").is_err());
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("7d"), Ok(Duration::from_secs(604_800)));
        assert_eq!(parse_duration("0s"), Ok(Duration::ZERO));
        assert!(parse_duration("soon").is_err() && parse_duration("").is_err() && parse_duration("7").is_err());
        for long in ["99999999999999d", "99999999999999999999999999s", "40000d", "99y99d99999999999999999999d"] {
            let problem = parse_duration(long).unwrap_err();
            let is_long = problem.contains("out of range");
            assert!(is_long == is_beyond_range(long) && is_long != long.contains('y'), "{problem}");
        }
    }
}
