//! The words that name a checkpoint.

pub(crate) mod time;

use std::time::Duration;

use jiff::{Timestamp, Zoned};

use crate::{
    address::time::{OUT_OF_RANGE, parse_until},
    error::{Error, Result},
    model::{CheckpointId, Kind},
    settings::{is_beyond_range, parse_duration},
    store::{Timeline, TimelineEntry},
    workspace::Workspace,
};

/// The minimum length of an id prefix that names a checkpoint.
const SHORTEST_PREFIX: usize = 4;

/// A parsed word that names a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// `@~N`: the checkpoint that is N steps before the one that the workspace stands on.
    Current {
        /// The number of steps.
        back: u64,
    },
    /// `latest`.
    Latest,
    /// `step:N`.
    Step(u64),
    /// `commit:HASH`: the newest checkpoint for which the user repository stood at this commit, given as an id or a
    /// prefix of one.
    Commit(String),
    /// `before:ID`.
    Before(Box<Address>),
    /// `ago:20m`.
    Ago(Duration),
    /// `at:14:30`: the last moment that the text covers, here the end of that minute.
    At(Timestamp),
    /// A name, an id or a prefix of one.
    Word(String),
}

/// A word that is not a valid address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} does not name a checkpoint: {expected}")]
pub struct InvalidAddress {
    /// The word that was given.
    pub word: String,
    /// A hint with the correct syntax.
    pub expected: &'static str,
}

impl Address {
    /// Parses a word. `now` provides today's date and the time zone.
    pub fn parse(word: &str, now: &Zoned) -> Result<Self, InvalidAddress> {
        let invalid = |expected| InvalidAddress { word: word.to_owned(), expected };
        if word.is_empty() {
            return Err(invalid("write an id, a name, or a word such as @"));
        }
        if word.starts_with('-') {
            return Err(invalid("an id or a name can't start with a dash"));
        }
        if let Some(rest) = word.strip_prefix('@') {
            let back = match rest.strip_prefix('~') {
                None if rest.is_empty() => Some(0),
                Some("") => Some(1),
                Some(number) => number.parse().ok(),
                None => None,
            };
            return back
                .map(|back| Self::Current { back })
                .ok_or_else(|| invalid("write @, or @~N where N is a number"));
        }
        if word == "latest" {
            return Ok(Self::Latest);
        }
        if let Some(number) = word.strip_prefix("step:") {
            return number.parse().map(Self::Step).map_err(|_| invalid("write a number after step:"));
        }
        if let Some(commit) = word.strip_prefix("commit:") {
            let expected = "write a commit id after commit:, or at least its first four characters";
            let is_id = commit.len() >= SHORTEST_PREFIX && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
            return is_id.then(|| Self::Commit(commit.to_ascii_lowercase())).ok_or_else(|| invalid(expected));
        }
        if let Some(rest) = word.strip_prefix("before:") {
            return Self::parse(rest, now).map(|address| Self::Before(Box::new(address)));
        }
        if let Some(text) = word.strip_prefix("ago:") {
            let expected = "write a duration after ago:, such as ago:20m, ago:36h or ago:7d";
            let expected = if is_beyond_range(text) { OUT_OF_RANGE } else { expected };
            return parse_duration(text).map(Self::Ago).map_err(|_| invalid(expected));
        }
        if let Some(text) = word.strip_prefix("at:") {
            let expected = "write a time after at:, such as at:14:30, at:2026-11-15 or at:2026-11-15T14:30";
            return parse_until(text, now).map(Self::At).ok_or_else(|| invalid(expected));
        }
        Ok(Self::Word(word.to_owned()))
    }
}

/// Prefixes that no name may have: each starts another kind of address.
const NO_NAME_STARTS_WITH: [&str; 7] = ["@", "-", "step:", "commit:", "before:", "ago:", "at:"];

/// The rule that [`validate_name`] checks, in words.
pub const RULE_OF_NAMES: &str =
    "a name can't be empty, `latest` or an id, and can't start with any of @ - step: commit: before: ago: at:";

/// Returns an error for a name that would be read as another address.
pub fn validate_name(name: &str) -> Result<()> {
    let is_id = name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_address = NO_NAME_STARTS_WITH.iter().any(|start| name.starts_with(start));
    if name.is_empty() || name == "latest" || is_id || is_address {
        return Err(Error::InvalidName { name: name.to_owned() });
    }
    Ok(())
}

impl Workspace {
    /// Returns the checkpoint that a word names.
    pub fn resolve(&self, word: &str, now: &Zoned) -> Result<CheckpointId> {
        let timeline = match self.store()? {
            Some(store) => store.timeline()?,
            None => Timeline::default(),
        };
        resolve_in(&timeline, word, now).map(|entry| entry.id)
    }

    /// Returns the checkpoint that the workspace stands on, or `None` before the first.
    pub fn current(&self) -> Result<Option<CheckpointId>> {
        let Some(store) = self.store()? else { return Ok(None) };
        Ok(store.timeline()?.current().map(|entry| entry.id))
    }
}

pub(crate) fn resolve_in<'t>(timeline: &'t Timeline, word: &str, now: &Zoned) -> Result<&'t TimelineEntry> {
    let malformed = |expected| Error::MalformedAddress { word: word.to_owned(), expected };
    let address = Address::parse(word, now).map_err(|invalid| malformed(invalid.expected))?;
    find(timeline, &address, word, now)?.ok_or_else(|| match address {
        Address::Ago(_) | Address::At(_) => before_the_first(timeline, word, now),
        Address::Word(word) if is_too_short(&word) => malformed("write at least the first four characters of an id"),
        _ => Error::UnknownCheckpoint { word: word.to_owned(), nearest: nearest_word(timeline, word) },
    })
}

/// Returns the error for a moment before the first checkpoint. Names that checkpoint if there is one.
fn before_the_first(timeline: &Timeline, word: &str, now: &Zoned) -> Error {
    let first = timeline.entries().iter().find(|entry| entry.kind != Kind::Safety);
    let dated = first.and_then(|entry| Some((entry.id, Timestamp::from_millisecond(entry.time).ok()?)));
    match dated {
        Some((oldest, time)) => {
            let local = time.to_zoned(now.time_zone().clone());
            let time = local.strftime("%Y-%m-%d %H:%M:%S").to_string();
            Error::BeforeTheFirst { word: word.to_owned(), oldest, time }
        }
        None => Error::UnknownCheckpoint { word: word.to_owned(), nearest: None },
    }
}

/// Returns whether a word is a prefix of an id that is too short to be accepted.
fn is_too_short(word: &str) -> bool {
    word.len() < SHORTEST_PREFIX && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn find<'t>(timeline: &'t Timeline, address: &Address, word: &str, now: &Zoned) -> Result<Option<&'t TimelineEntry>> {
    let newest = |fits: &dyn Fn(&TimelineEntry) -> bool| {
        timeline.entries().iter().rev().find(|entry| entry.kind != Kind::Safety && fits(entry))
    };
    Ok(match address {
        Address::Current { back } => timeline.current().and_then(|entry| timeline.ancestor(entry, *back)),
        Address::Latest => timeline.newest(),
        Address::Step(step) => newest(&|entry| entry.record().is_some_and(|record| record.origin.step == Some(*step))),
        Address::Commit(commit) => newest(&|entry| {
            let record = entry.record();
            let recorded = record.as_ref().and_then(|record| record.git.as_ref()?.commit.as_deref());
            recorded.is_some_and(|recorded| recorded.starts_with(commit))
        }),
        Address::Before(of) => {
            let word = word.strip_prefix("before:").unwrap_or(word);
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
    let parent = entry.parent.ok_or_else(|| nothing("it is the first one"))?;
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

/// Returns the id of the checkpoint whose message is this word, else the name that is closest to the word.
fn nearest_word(timeline: &Timeline, word: &str) -> Option<String> {
    let says_it = |entry: &&TimelineEntry| entry.record().is_some_and(|record| record.message.trim() == word);
    if let Some(entry) = timeline.entries().iter().rev().find(says_it) {
        return Some(entry.id.short());
    }
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
        assert_eq!(parse("commit:ABCD12"), Ok(Address::Commit("abcd12".into())));
        assert_eq!(parse("before:@"), Ok(Address::Before(Box::new(Address::Current { back: 0 }))));
        assert_eq!(parse("ago:20m"), Ok(Address::Ago(Duration::from_secs(1200))));
        assert_eq!(parse("at:14:30"), Ok(Address::At("2026-11-15T13:30:59.999Z".parse().unwrap())));
        assert_eq!(parse("abcd"), Ok(Address::Word("abcd".into())));
        for bad in
            ["", "-x", "@x", "@~x", "step:x", "commit:", "commit:abc", "commit:main", "before:", "ago:soon", "at:noon"]
        {
            assert!(parse(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn names_that_read_as_something_else_are_refused() {
        for bad in
            ["", "@", "@~1", "-x", "step:1", "commit:abcd", "before:x", "ago:5m", "at:14:30", "latest", &"a".repeat(40)]
        {
            assert!(validate_name(bad).is_err(), "{bad:?} was taken");
        }
        for good in ["x", "before-refactor", "v1.0", "deadbeef", "at", "日本"] {
            assert!(validate_name(good).is_ok(), "{good:?} was refused");
        }
        assert!(RULE_OF_NAMES.ends_with(&NO_NAME_STARTS_WITH.join(" ")), "{RULE_OF_NAMES}");
    }
}
