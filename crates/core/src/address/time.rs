//! Parses moments as people write them: a time of day, a date, both, or one with its time zone.

use jiff::{SignedDuration, Timestamp, Zoned, civil};

use crate::settings::{is_beyond_range, parse_duration};

/// The syntax that [`parse_since`] accepts, in words.
pub const RULE_OF_SINCE: &str = "write a duration such as 20m or 7d, or a time: 13:45, yesterday 12:31, 2026-11-15, \
                                 2026-11-15T14:30, or as list prints it";

/// Parses the start of a period: a duration before now, or the first moment that the text covers. A time of day is
/// taken from the last 24 hours. Returns `None` if the text is neither.
pub fn parse_since(text: &str, now: &Zoned) -> Option<Timestamp> {
    if let Ok(duration) = parse_duration(text) {
        return now.timestamp().checked_sub(duration).ok();
    }
    let spelled = Spelled::parse(text, now)?;
    let first = spelled.first(now)?;
    match spelled {
        Spelled::Clock(clock) if first > now.timestamp() => {
            Spelled::Local(now.date().yesterday().ok()?.to_datetime(clock)).first(now)
        }
        _ => Some(first),
    }
}

/// Parses the end of a period: a duration before now, or the last millisecond that the text covers. A time of day is
/// taken from the last 24 hours. Returns `None` if the text is neither.
pub fn parse_end(text: &str, now: &Zoned) -> Option<Timestamp> {
    if let Ok(duration) = parse_duration(text) {
        return now.timestamp().checked_sub(duration).ok();
    }
    let spelled = Spelled::parse(text, now)?;
    match spelled {
        Spelled::Clock(_) => parse_since(text, now)?.checked_add(lasts(text)).ok(),
        spelled => spelled.last(text, now),
    }
}

/// Returns why [`parse_since`] rejects a text.
pub fn problem_of_since(text: &str) -> String {
    if is_beyond_range(text) {
        return format!("{text:?} is {OUT_OF_RANGE}");
    }
    format!("{text:?} is not a time")
}

/// The problem with a duration that is too long.
pub(crate) const OUT_OF_RANGE: &str = "out of range: the limit is 100 years";

/// Parses the end of a period: the last millisecond that the text covers. `14:30` covers that whole minute of today.
pub(crate) fn parse_until(text: &str, now: &Zoned) -> Option<Timestamp> {
    Spelled::parse(text, now)?.last(text, now)
}

/// A parsed text.
enum Spelled {
    Moment(Timestamp),
    Day(civil::Date),
    Local(civil::DateTime),
    Clock(civil::Time),
    /// A number of whole units before now, as lists print recent times.
    Before(i64, Unit),
}

/// The unit of a recent time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Second,
    Minute,
}

impl Spelled {
    fn parse(text: &str, now: &Zoned) -> Option<Self> {
        if let Some(recent) = recent(text) {
            return Some(recent);
        }
        if let Some((date, clock)) = named_day(text, now) {
            return match clock {
                "" => Some(Self::Day(date)),
                clock => clock.parse().ok().map(|clock| Self::Local(date.to_datetime(clock))),
            };
        }
        let moment = || text.parse().ok().map(Self::Moment);
        let is_day = !text.contains(['T', 't', ' ', ':']);
        let day = || text.parse().ok().filter(|_| is_day).map(Self::Day);
        let local = || text.parse().ok().map(Self::Local);
        // Last: given a date with a time of day, it would take the time of day alone, and mean today.
        moment().or_else(day).or_else(local).or_else(|| text.parse().ok().map(Self::Clock))
    }

    fn first(&self, now: &Zoned) -> Option<Timestamp> {
        let local = match self {
            Self::Moment(moment) => return Some(*moment),
            Self::Day(date) => date.to_datetime(civil::Time::midnight()),
            Self::Local(local) => *local,
            Self::Clock(clock) => now.date().to_datetime(*clock),
            Self::Before(count, unit) => return before(now, *count, *unit).map(|(first, _)| first),
        };
        Some(local.to_zoned(now.time_zone().clone()).ok()?.timestamp())
    }

    /// Returns the last millisecond that the text covers.
    fn last(&self, text: &str, now: &Zoned) -> Option<Timestamp> {
        match self {
            Self::Day(date) => Self::Day(date.tomorrow().ok()?).first(now)?.checked_sub(MILLISECOND).ok(),
            Self::Before(count, unit) => before(now, *count, *unit).map(|(_, last)| last),
            spelled => spelled.first(now)?.checked_add(lasts(text)).ok(),
        }
    }
}

/// Parses a recent time as lists print it: `just now`, `40 s ago` or `2 min ago`.
fn recent(text: &str) -> Option<Spelled> {
    if text == "just now" {
        return Some(Spelled::Before(0, Unit::Second));
    }
    let (count, unit) = text.strip_suffix(" ago")?.trim_end().split_once(' ')?;
    let unit = match unit.trim() {
        "s" => Unit::Second,
        "min" => Unit::Minute,
        _ => return None,
    };
    count.parse().ok().filter(|count| (0..=MOST_UNITS).contains(count)).map(|count| Spelled::Before(count, unit))
}

/// Lists print no larger number of seconds or minutes.
const MOST_UNITS: i64 = 100_000;

/// Returns the first and the last millisecond of the time that was this long ago, in whole units.
fn before(now: &Zoned, count: i64, unit: Unit) -> Option<(Timestamp, Timestamp)> {
    let length = if unit == Unit::Minute { 60 } else { 1 };
    let last = now.timestamp().as_second() - count * length;
    let first = Timestamp::from_second(last - (length - 1)).ok()?;
    let last = Timestamp::from_second(last + 1).ok()?.checked_sub(MILLISECOND).ok()?;
    Some((first, last))
}

/// Splits a text that starts with a day as lists print it: `today`, `yesterday` or `12 Nov`. Returns the day, and the
/// text behind it.
fn named_day<'t>(text: &'t str, now: &Zoned) -> Option<(civil::Date, &'t str)> {
    let words: Vec<&str> = text.splitn(3, ' ').collect();
    let today = now.date();
    match words[..] {
        ["today", ref clock @ ..] if clock.len() < 2 => Some((today, clock.first().copied().unwrap_or_default())),
        ["yesterday", ref clock @ ..] if clock.len() < 2 => {
            Some((today.yesterday().ok()?, clock.first().copied().unwrap_or_default()))
        }
        [day, month, ref clock @ ..] => {
            let date = civil::Date::strptime("%d %b %Y", format!("{day} {month} {}", today.year())).ok()?;
            Some((date, clock.first().copied().unwrap_or_default()))
        }
        _ => None,
    }
}

const MILLISECOND: SignedDuration = SignedDuration::from_millis(1);

/// Returns how long the period that a text covers lasts, beyond its first millisecond.
fn lasts(text: &str) -> SignedDuration {
    let text = text.split('[').next().unwrap_or_default();
    let clock = text.rsplit(['T', 't', ' ']).next().unwrap_or_default();
    let clock = clock.split(['Z', 'z', '+', '-', '[']).next().unwrap_or_default();
    let seconds = match clock.bytes().filter(u8::is_ascii_digit).count() {
        _ if clock.contains(['.', ',']) => return SignedDuration::ZERO,
        ..=2 => 3_600,
        3..=4 => 60,
        _ => 1,
    };
    SignedDuration::from_secs(seconds) - MILLISECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_as_people_write_them() {
        let now: Zoned = "2026-11-15T16:00:00+01:00[+01:00]".parse().unwrap();
        let at = |text: &str| parse_since(text, &now).map(|moment| moment.to_string());
        assert_eq!(at("20m").as_deref(), Some("2026-11-15T14:40:00Z"));
        assert_eq!(at("13:45").as_deref(), Some("2026-11-15T12:45:00Z"));
        assert_eq!(at("17:30").as_deref(), Some("2026-11-14T16:30:00Z"), "it is not that late yet");
        assert_eq!(at("today").as_deref(), Some("2026-11-14T23:00:00Z"));
        assert_eq!(at("yesterday").as_deref(), Some("2026-11-13T23:00:00Z"));
        assert_eq!(at("2026-11-12").as_deref(), Some("2026-11-11T23:00:00Z"));
        assert_eq!(at("2026-11-12T14:30").as_deref(), Some("2026-11-12T13:30:00Z"));
        assert_eq!(at("2026-11-12 14:30").as_deref(), Some("2026-11-12T13:30:00Z"));
        assert_eq!(at("2026-11-12T14:30:00Z").as_deref(), Some("2026-11-12T14:30:00Z"));
        for bad in ["", "soon", "25:00", "2026-13-01", "-5m"] {
            assert_eq!(at(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_time_lasts_as_long_as_it_is_spelled_out() {
        let now: Zoned = "2026-11-15T16:00:00+01:00[+01:00]".parse().unwrap();
        let until = |text: &str| format!("{:.3}", parse_until(text, &now).unwrap());
        assert_eq!(until("14:30"), "2026-11-15T13:30:59.999Z");
        assert_eq!(until("17:30"), "2026-11-15T16:30:59.999Z", "it is of today");
        assert_eq!(until("2026-11-15T14:30"), "2026-11-15T13:30:59.999Z");
        assert_eq!(until("2026-11-15 14:30"), "2026-11-15T13:30:59.999Z");
        assert_eq!(until("2026-11-12T14:30"), "2026-11-12T13:30:59.999Z");
        assert_eq!(until("14:30:05"), "2026-11-15T13:30:05.999Z");
        assert_eq!(until("2026-11-15T13:30:00Z"), "2026-11-15T13:30:00.999Z");
        assert_eq!(until("2026-11-15T13:30Z"), "2026-11-15T13:30:59.999Z");
        assert_eq!(until("2026-11-15T14:30:00+01:00"), "2026-11-15T13:30:00.999Z");
        assert_eq!(until("2026-11-15T13:30:00.250Z"), "2026-11-15T13:30:00.250Z");
        assert_eq!(until("2026-11-14"), "2026-11-14T22:59:59.999Z");
        assert_eq!(until("yesterday"), "2026-11-14T22:59:59.999Z");
    }

    /// What `list`, `history` and `show` print for a time.
    #[test]
    fn every_printed_time_is_read() {
        let now: Zoned = "2026-11-15T16:00:00.500+01:00[+01:00]".parse().unwrap();
        let around = |text: &str| {
            let ends = [parse_since(text, &now), parse_until(text, &now), parse_end(text, &now)];
            ends.map(|end| end.map_or_else(|| "-".to_owned(), |end| format!("{end:.3}")))
        };
        let both = |first: &str, last: &str| [first.to_owned(), last.to_owned(), last.to_owned()];
        for (text, first, last) in [
            ("just now", "2026-11-15T15:00:00.000Z", "2026-11-15T15:00:00.999Z"),
            ("40 s ago", "2026-11-15T14:59:20.000Z", "2026-11-15T14:59:20.999Z"),
            ("2 min ago", "2026-11-15T14:57:01.000Z", "2026-11-15T14:58:00.999Z"),
            ("today 09:05", "2026-11-15T08:05:00.000Z", "2026-11-15T08:05:59.999Z"),
            ("today 09:05:07", "2026-11-15T08:05:07.000Z", "2026-11-15T08:05:07.999Z"),
            ("yesterday 14:30", "2026-11-14T13:30:00.000Z", "2026-11-14T13:30:59.999Z"),
            ("2 Nov 00:30", "2026-11-01T23:30:00.000Z", "2026-11-01T23:30:59.999Z"),
            ("12 Nov 14:30:01", "2026-11-12T13:30:01.000Z", "2026-11-12T13:30:01.999Z"),
            ("12 Nov", "2026-11-11T23:00:00.000Z", "2026-11-12T22:59:59.999Z"),
            ("2025-12-31 14:30", "2025-12-31T13:30:00.000Z", "2025-12-31T13:30:59.999Z"),
            ("2026-11-12 14:30:01", "2026-11-12T13:30:01.000Z", "2026-11-12T13:30:01.999Z"),
        ] {
            assert_eq!(around(text), both(first, last), "{text:?}");
        }
        assert_eq!(
            around("17:30"),
            ["2026-11-14T16:30:00.000Z", "2026-11-15T16:30:59.999Z", "2026-11-14T16:30:59.999Z"]
        );
        assert_eq!(around("20m")[2], "2026-11-15T14:40:00.500Z");
        for bad in ["12 Foo 14:30", "99 Nov", "x min ago", "2 weeks ago", "today noon", "yesterday 14:30 x", "12 Nov x"]
        {
            assert_eq!(around(bad), ["-", "-", "-"], "{bad:?}");
        }
    }

    #[test]
    fn a_day_ends_where_the_next_one_begins() {
        // Clocks are set back in that night: the day has 25 hours.
        let now: Zoned = "2026-10-26T12:00:00+01:00[Europe/Berlin]".parse().unwrap();
        assert_eq!(parse_until("2026-10-25", &now), "2026-10-25T22:59:59.999Z".parse().ok());
    }
}
