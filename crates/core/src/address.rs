//! The words that name a checkpoint.

use std::time::Duration;

use jiff::{Timestamp, Zoned, civil};

use crate::{
    error::{Error, Result},
    model::{CheckpointId, Kind},
    settings::parse_duration,
    store::{Timeline, TimelineEntry},
    workspace::Workspace,
};

/// The fewest characters of an id that name a checkpoint.
const SHORTEST_PREFIX: usize = 4;

/// A word that names a checkpoint, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `@~N`: so many steps back from where the workspace stands.
    Current {
        /// How many.
        back: u64,
    },
    /// `latest`.
    Latest,
    /// `step:N`.
    Step(u64),
    /// `before:ID`.
    Before(Box<Address>),
    /// `ago:20m`.
    Ago(Duration),
    /// `at:14:30`.
    At(Timestamp),
    /// A name, an id or the start of one.
    Word(String),
}

/// The word has the shape of an address, but not its content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no checkpoint")]
pub struct InvalidAddress(pub String);

impl Address {
    /// Takes a word apart; `now` says what today and here are.
    pub fn parse(word: &str, now: &Zoned) -> Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress(word.to_owned());
        if word.is_empty() || word.starts_with('-') {
            return Err(invalid());
        }
        if let Some(rest) = word.strip_prefix('@') {
            let back = match rest.strip_prefix('~') {
                None if rest.is_empty() => Some(0),
                Some("") => Some(1),
                Some(number) => number.parse().ok(),
                None => None,
            };
            return back.map(|back| Self::Current { back }).ok_or_else(invalid);
        }
        if word == "latest" {
            return Ok(Self::Latest);
        }
        if let Some(number) = word.strip_prefix("step:") {
            return number.parse().map(Self::Step).map_err(|_| invalid());
        }
        if let Some(rest) = word.strip_prefix("before:") {
            return Self::parse(rest, now).map(|address| Self::Before(Box::new(address)));
        }
        if let Some(text) = word.strip_prefix("ago:") {
            return parse_duration(text).map(Self::Ago).map_err(|_| invalid());
        }
        if let Some(text) = word.strip_prefix("at:") {
            return parse_moment(text, now).map(Self::At).ok_or_else(invalid);
        }
        Ok(Self::Word(word.to_owned()))
    }
}

/// A moment: a time of today, or a date and time, both local; or one that says its zone.
fn parse_moment(text: &str, now: &Zoned) -> Option<Timestamp> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Some(moment);
    }
    let local = match text.parse::<civil::Time>() {
        Ok(time) => now.date().to_datetime(time),
        Err(_) => text.parse::<civil::DateTime>().ok()?,
    };
    local.to_zoned(now.time_zone().clone()).ok().map(|zoned| zoned.timestamp())
}

/// Refuses a name that would be read as another address.
pub fn validate_name(name: &str) -> Result<()> {
    let is_id = name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let prefixes = ["@", "-", "step:", "before:", "ago:", "at:"];
    if name.is_empty() || name == "latest" || is_id || prefixes.iter().any(|prefix| name.starts_with(prefix)) {
        return Err(Error::InvalidName { name: name.to_owned() });
    }
    Ok(())
}

impl Workspace {
    /// The checkpoint that a word names.
    pub fn resolve(&self, word: &str, now: &Zoned) -> Result<CheckpointId> {
        let timeline = match self.store()? {
            Some(store) => store.timeline()?,
            None => Timeline::default(),
        };
        resolve_in(&timeline, word, now).map(|entry| entry.id)
    }

    /// The checkpoint that the workspace stands on; none before the first.
    pub fn current(&self) -> Result<Option<CheckpointId>> {
        let Some(store) = self.store()? else { return Ok(None) };
        Ok(store.timeline()?.current().map(|entry| entry.id))
    }
}

pub(crate) fn resolve_in<'t>(timeline: &'t Timeline, word: &str, now: &Zoned) -> Result<&'t TimelineEntry> {
    let unknown = || Error::UnknownCheckpoint { word: word.to_owned(), nearest: nearest_word(timeline, word) };
    let address = Address::parse(word, now).map_err(|_| unknown())?;
    find(timeline, &address, word, now)?.ok_or_else(unknown)
}

fn find<'t>(timeline: &'t Timeline, address: &Address, word: &str, now: &Zoned) -> Result<Option<&'t TimelineEntry>> {
    let newest = |fits: &dyn Fn(&TimelineEntry) -> bool| {
        timeline.entries().iter().rev().find(|entry| entry.kind != Kind::Safety && fits(entry))
    };
    Ok(match address {
        Address::Current { back } => timeline.current().and_then(|entry| timeline.ancestor(entry, *back)),
        Address::Latest => timeline.newest(),
        Address::Step(step) => newest(&|entry| entry.record().is_some_and(|record| record.step == Some(*step))),
        Address::Before(of) => {
            let Some(entry) = find(timeline, of, word, now)? else { return Ok(None) };
            return before(timeline, entry, word).map(Some);
        }
        Address::Ago(duration) => {
            let moment = now.timestamp().as_millisecond() - duration.as_millis() as i64;
            newest(&|entry| entry.time <= moment)
        }
        Address::At(moment) => newest(&|entry| entry.time <= moment.as_millisecond()),
        Address::Word(word) => by_word(timeline, word)?,
    })
}

fn before<'t>(timeline: &'t Timeline, entry: &TimelineEntry, word: &str) -> Result<&'t TimelineEntry> {
    let nothing = |reason| Error::NoEarlierCheckpoint { of: word.to_owned(), reason };
    let parent = entry.parent.ok_or_else(|| nothing("it is the first"))?;
    timeline.get(&parent).ok_or_else(|| nothing("the one before it was deleted"))
}

fn by_word<'t>(timeline: &'t Timeline, word: &str) -> Result<Option<&'t TimelineEntry>> {
    if let Ok(id) = word.parse::<CheckpointId>() {
        return Ok(timeline.get(&id));
    }
    let has_name = |entry: &&TimelineEntry| {
        entry.kind != Kind::Safety && entry.record().is_some_and(|record| record.name.as_deref() == Some(word))
    };
    if let Some(named) = timeline.entries().iter().rev().find(has_name) {
        return Ok(Some(named));
    }
    if word.len() < SHORTEST_PREFIX {
        return Ok(None);
    }
    let mut fitting = timeline.entries().iter().filter(|entry| entry.id.to_string().starts_with(word));
    match (fitting.next(), fitting.next()) {
        (Some(first), Some(second)) => {
            let candidates = [first, second].into_iter().chain(fitting).map(|entry| entry.id).collect();
            Err(Error::AmbiguousCheckpoint { word: word.to_owned(), candidates })
        }
        (only, _) => Ok(only),
    }
}

/// A name that is nearly this word.
fn nearest_word(timeline: &Timeline, word: &str) -> Option<String> {
    let names = timeline.entries().iter().filter_map(|entry| entry.record()?.name.clone());
    let special = ["latest".to_owned()];
    let near = names.chain(special).map(|name| (strsim::damerau_levenshtein(&name, word), name));
    near.filter(|(distance, name)| *distance > 0 && *distance <= 2 && name.len() > 3).min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(word: &str) -> Result<Address, InvalidAddress> {
        let now: Zoned = "2026-11-15T16:00:00+01:00[+01:00]".parse().unwrap();
        Address::parse(word, &now)
    }

    #[test]
    fn every_shape_of_word() {
        assert_eq!(parse("@"), Ok(Address::Current { back: 0 }));
        assert_eq!(parse("@~"), Ok(Address::Current { back: 1 }));
        assert_eq!(parse("@~3"), Ok(Address::Current { back: 3 }));
        assert_eq!(parse("step:5"), Ok(Address::Step(5)));
        assert_eq!(parse("before:@"), Ok(Address::Before(Box::new(Address::Current { back: 0 }))));
        assert_eq!(parse("ago:20m"), Ok(Address::Ago(Duration::from_secs(1200))));
        let moment = "2026-11-15T13:30:00Z".parse().unwrap();
        assert_eq!(parse("at:14:30"), Ok(Address::At(moment)));
        assert_eq!(parse("at:2026-11-15T14:30"), Ok(Address::At(moment)));
        assert_eq!(parse("at:2026-11-15T13:30:00Z"), Ok(Address::At(moment)));
        assert_eq!(parse("abcd"), Ok(Address::Word("abcd".into())));
        for bad in ["", "-x", "@x", "@~x", "step:x", "before:", "ago:soon", "at:noon"] {
            assert!(parse(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn names_that_read_as_something_else_are_refused() {
        for bad in ["", "@", "@~1", "-x", "step:1", "before:x", "ago:5m", "at:14:30", "latest", &"a".repeat(40)] {
            assert!(validate_name(bad).is_err(), "{bad:?} was taken");
        }
        for good in ["x", "before-refactor", "v1.0", "deadbeef", "at", "日本"] {
            assert!(validate_name(good).is_ok(), "{good:?} was refused");
        }
    }
}
