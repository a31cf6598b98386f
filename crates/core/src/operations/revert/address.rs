//! The words that name what a revert takes back: a checkpoint, `turn:N`, or `FROM..TO`.

use jiff::Zoned;

use super::RevertTarget;
use crate::{
    address::resolve_in,
    error::{Error, Result},
    model::{CheckpointId, Kind},
    store::{Timeline, TimelineEntry},
    workspace::Workspace,
};

impl Workspace {
    /// Returns what a word asks a revert to take back. `session` tells whose prompt `turn:N` is; by default that of the
    /// session that worked here last.
    pub fn resolve_revert(&self, word: &str, session: Option<&str>, now: &Zoned) -> Result<RevertTarget> {
        let timeline = match self.store()? {
            Some(store) => store.timeline()?,
            None => Timeline::default(),
        };
        let found = resolve_one(&timeline, word, session, now);
        match (found, word.split_once("..")) {
            (Err(_), Some((from, to))) if !from.is_empty() && !to.is_empty() => Ok(RevertTarget::Range {
                from: resolve_one(&timeline, from, session, now)?,
                to: resolve_one(&timeline, to, session, now)?,
            }),
            (found, _) => found.map(RevertTarget::Checkpoint),
        }
    }
}

fn resolve_one(timeline: &Timeline, word: &str, session: Option<&str>, now: &Zoned) -> Result<CheckpointId> {
    let found = resolve_in(timeline, word, now).map(|entry| entry.id);
    match (&found, word.strip_prefix("turn:")) {
        (Err(_), Some(number)) => {
            let malformed =
                |_| Error::MalformedAddress { word: word.to_owned(), expected: "write a number behind turn:" };
            let unknown = || Error::UnknownCheckpoint { word: word.to_owned(), nearest: None };
            let number = number.parse().map_err(malformed)?;
            turn_numbered(timeline, number, session).map(|entry| entry.id).ok_or_else(unknown)
        }
        _ => found,
    }
}

/// Returns the checkpoint of a session's prompt with this number.
fn turn_numbered<'t>(timeline: &'t Timeline, number: u64, session: Option<&str>) -> Option<&'t TimelineEntry> {
    let session_of = |entry: &TimelineEntry| entry.record().and_then(|record| record.origin.session.clone());
    let last = || timeline.entries().iter().rev().find_map(session_of);
    let session = session.map(str::to_owned).or_else(last);
    let is_it = |entry: &&TimelineEntry| {
        entry.kind == Kind::Turn
            && session_of(entry) == session
            && entry.record().is_some_and(|record| record.origin.turn == Some(number))
    };
    timeline.entries().iter().rev().find(is_it)
}
