//! Parses moments as people write them: a time of day, a date, both, or one with its time zone.

use jiff::{SignedDuration, Timestamp, Zoned, civil};

use crate::settings::{is_beyond_range, parse_duration};

/// The syntax that [`parse_since`] accepts, in words.
pub const RULE_OF_SINCE: &str =
    "write a duration such as 20m or 7d, or a time: 13:45, yesterday, 2026-11-15, 2026-11-15T14:30";

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
    match Spelled::parse(text, now)? {
        Spelled::Day(date) => Spelled::Day(date.tomorrow().ok()?).first(now)?.checked_sub(MILLISECOND).ok(),
        spelled => spelled.first(now)?.checked_add(lasts(text)).ok(),
    }
}

/// A parsed text.
enum Spelled {
    Moment(Timestamp),
    Day(civil::Date),
    Local(civil::DateTime),
    Clock(civil::Time),
}

impl Spelled {
    fn parse(text: &str, now: &Zoned) -> Option<Self> {
        match text {
            "today" => return Some(Self::Day(now.date())),
            "yesterday" => return now.date().yesterday().ok().map(Self::Day),
            _ => {}
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
        };
        Some(local.to_zoned(now.time_zone().clone()).ok()?.timestamp())
    }
}

const MILLISECOND: SignedDuration = SignedDuration::from_millis(1);

/// Returns how long the period that a text covers lasts, beyond its first millisecond.
fn lasts(text: &str) -> SignedDuration {
    let clock = text.split_once(['T', 't', ' ']).map_or(text, |(_, clock)| clock);
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

    #[test]
    fn a_day_ends_where_the_next_one_begins() {
        // Clocks are set back in that night: the day has 25 hours.
        let now: Zoned = "2026-10-26T12:00:00+01:00[Europe/Berlin]".parse().unwrap();
        assert_eq!(parse_until("2026-10-25", &now), "2026-10-25T22:59:59.999Z".parse().ok());
    }
}
