//! Finds the checkpoint that a word names.

use jiff::{Timestamp, Zoned};

use super::{Address, SHORTEST_PREFIX, split_steps, was_possible_name};
use crate::{
    error::{Error, Result},
    model::{CheckpointId, Kind},
    store::{Record, Timeline, TimelineEntry},
    workspace::Workspace,
};

impl Workspace {
    /// Returns the checkpoint that a word names.
    pub fn resolve(&self, word: &str, now: &Zoned) -> Result<CheckpointId> {
        self.resolve_in_session(word, None, now)
    }

    /// Like [`Workspace::resolve`], but `turn:N` counts the prompts of this session. Without a session, it counts those
    /// of the session that worked here last.
    pub fn resolve_in_session(&self, word: &str, session: Option<&str>, now: &Zoned) -> Result<CheckpointId> {
        let timeline = self.timeline_if_any()?;
        Search { timeline: &timeline, session, now }.require(word).map(|entry| entry.id)
    }

    /// Returns the checkpoint that the workspace stands on, or `None` before the first.
    pub fn current(&self) -> Result<Option<CheckpointId>> {
        Ok(self.timeline_if_any()?.current().map(|entry| entry.id))
    }

    /// Returns the timeline. It is empty if there is no store.
    pub(crate) fn timeline_if_any(&self) -> Result<Timeline> {
        self.store()?.map_or_else(|| Ok(Timeline::default()), |store| store.timeline())
    }
}

/// The facts that the meaning of a word depends on.
pub(super) struct Search<'a> {
    pub(super) timeline: &'a Timeline,
    /// The session of `turn:N`. `None` for the one that worked here last.
    pub(super) session: Option<&'a str>,
    /// Provides today's date and the time zone.
    pub(super) now: &'a Zoned,
}

impl<'t> Search<'t> {
    /// Returns the checkpoint that a word names.
    pub(super) fn require(&self, word: &str) -> Result<&'t TimelineEntry> {
        if let Some(named) = self.named_before(word) {
            return Ok(named);
        }
        let malformed = |expected| Error::MalformedAddress { word: word.to_owned(), expected };
        let address = Address::parse(word, self.now).map_err(|invalid| malformed(invalid.expected))?;
        self.find(&address, word)?.ok_or_else(|| match address {
            Address::Ago(_) | Address::At(_) => self.before_the_first(word),
            Address::Word(word) if is_too_short(&word) => {
                malformed("write at least the first four characters of an id")
            }
            _ => Error::UnknownCheckpoint { word: word.to_owned(), nearest: self.nearest_word(word) },
        })
    }

    /// Returns the newest checkpoint of this name.
    pub(super) fn named(&self, name: &str) -> Option<&'t TimelineEntry> {
        self.newest(&|entry| entry.record().is_some_and(|record| record.name.as_deref() == Some(name)))
    }

    /// Returns the checkpoint of this name if the word has a form that only names of earlier versions have.
    fn named_before(&self, word: &str) -> Option<&'t TimelineEntry> {
        if was_possible_name(word) { self.named(word) } else { None }
    }

    fn newest(&self, fits: &dyn Fn(&TimelineEntry) -> bool) -> Option<&'t TimelineEntry> {
        self.timeline.entries().iter().rev().find(|entry| entry.kind != Kind::Safety && fits(entry))
    }

    fn newest_by_record(&self, fits: &dyn Fn(&Record) -> bool) -> Option<&'t TimelineEntry> {
        self.newest(&|entry| entry.record().is_some_and(|record| fits(&record)))
    }

    /// Finds the checkpoint of an address. `word` is the text of the address.
    fn find(&self, address: &Address, word: &str) -> Result<Option<&'t TimelineEntry>> {
        if let Some(named) = self.named_before(word) {
            return Ok(Some(named));
        }
        Ok(match address {
            Address::Current => self.timeline.current(),
            Address::Back { of, steps } => {
                let word = split_steps(word).map_or(word, |(of, _)| of);
                self.find(of, word)?.and_then(|entry| self.timeline.ancestor(entry, *steps))
            }
            Address::Latest => self.timeline.newest(),
            Address::Step(step) => self.newest_by_record(&|record| record.origin.step == Some(*step)),
            Address::Turn(turn) => self.turn(*turn),
            Address::Commit(commit) => self.newest_by_record(&|record| {
                let recorded = record.git.as_ref().and_then(|git| git.commit.as_deref());
                recorded.is_some_and(|recorded| recorded.starts_with(commit))
            }),
            Address::Before(of) => {
                let word = word.strip_prefix("before:").unwrap_or(word);
                let Some(entry) = self.find(of, word)? else { return Ok(None) };
                return self.before(entry, word).map(Some);
            }
            Address::Ago(duration) => {
                let moment = self.now.timestamp().as_millisecond() - duration.as_millis() as i64;
                self.newest(&|entry| entry.time <= moment)
            }
            Address::At(moment) => self.newest(&|entry| entry.time <= moment.as_millisecond()),
            Address::Word(word) => self.by_word(word)?,
        })
    }

    /// Returns the checkpoint of a prompt, by its number in its session.
    fn turn(&self, number: u64) -> Option<&'t TimelineEntry> {
        let session = match self.session {
            Some(session) => Some(session.to_owned()),
            None => self.newest_by_record(&|record| record.origin.turn.is_some())?.record()?.origin.session.clone(),
        };
        self.newest(&|entry| {
            let of_turn = |record: &Record| record.origin.turn == Some(number) && record.origin.session == session;
            entry.kind == Kind::Turn && entry.record().is_some_and(|record| of_turn(&record))
        })
    }

    fn before(&self, entry: &TimelineEntry, word: &str) -> Result<&'t TimelineEntry> {
        let nothing = |reason| Error::NoEarlierCheckpoint { of: word.to_owned(), reason };
        let parent = entry.parent.ok_or_else(|| nothing("it is the first one"))?;
        self.timeline.get(&parent).ok_or_else(|| nothing("the one before it was deleted"))
    }

    fn by_word(&self, word: &str) -> Result<Option<&'t TimelineEntry>> {
        if let Ok(id) = word.parse::<CheckpointId>() {
            return Ok(self.timeline.get(&id));
        }
        if let Some(named) = self.named(word) {
            return Ok(Some(named));
        }
        if word.len() < SHORTEST_PREFIX {
            return Ok(None);
        }
        let mut fitting = self.timeline.starting_with(word).into_iter();
        match (fitting.next(), fitting.next()) {
            (Some(first), Some(second)) => {
                let candidates = [first, second].into_iter().chain(fitting).map(|entry| entry.id).collect();
                Err(Error::AmbiguousCheckpoint { word: word.to_owned(), candidates })
            }
            (only, _) => Ok(only),
        }
    }

    /// Returns the error for a moment before the first checkpoint. Names that checkpoint if there is one.
    fn before_the_first(&self, word: &str) -> Error {
        let first = self.timeline.entries().iter().find(|entry| entry.kind != Kind::Safety);
        let dated = first.and_then(|entry| Some((entry.id, Timestamp::from_millisecond(entry.time).ok()?)));
        match dated {
            Some((oldest, time)) => {
                let local = time.to_zoned(self.now.time_zone().clone());
                let time = local.strftime("%Y-%m-%d %H:%M:%S").to_string();
                Error::BeforeTheFirst { word: word.to_owned(), oldest, time }
            }
            None => Error::UnknownCheckpoint { word: word.to_owned(), nearest: None },
        }
    }

    /// Returns the id of the checkpoint whose message is this word, else the name that is closest to the word.
    fn nearest_word(&self, word: &str) -> Option<String> {
        let entries = self.timeline.entries();
        let says_it = |entry: &&TimelineEntry| entry.record().is_some_and(|record| record.message.trim() == word);
        if let Some(entry) = entries.iter().rev().find(says_it) {
            return Some(entry.id.short());
        }
        let names = entries.iter().filter_map(|entry| entry.record()?.name.clone());
        let special = ["latest".to_owned()];
        let near = names.chain(special).map(|name| (strsim::damerau_levenshtein(&name, word), name));
        near.filter(|(distance, name)| *distance > 0 && *distance <= 2 && name.len() > 3).min().map(|(_, name)| name)
    }
}

/// Returns whether a word is a prefix of an id that is too short to be accepted.
fn is_too_short(word: &str) -> bool {
    word.len() < SHORTEST_PREFIX && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}
