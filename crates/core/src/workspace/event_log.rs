//! Reports events: passes them to the observer of the workspace and appends them to the store's `events.jsonl`.
//!
//! Nothing relies on the file. Lines are appended one by one. If an operation failed, its line is appended without the
//! lock: the lock may be what could not be had. The file is halved only under the lock.

use std::{path::PathBuf, time::Duration};

use jiff::Timestamp;

use crate::{
    disk::{
        self,
        private::{self, Durability},
    },
    error::{Error, ErrorCode, Result, While},
    events::{Event, TimedEvent},
    model::Stamp,
    store::{Layout, Store, Writer, is_store},
    workspace::Workspace,
};

/// The size above which the older half of the event file is dropped.
const MAX_EVENT_BYTES: u64 = 1 << 20;

/// The events that a reader has seen. See [`Workspace::new_events`].
#[derive(Debug, Default)]
pub struct EventFollower {
    stamp: Option<Stamp>,
    seen: Vec<String>,
}

impl Workspace {
    /// Returns the events of this workspace that were kept, oldest first, one JSON object each.
    pub fn events(&self) -> Result<Vec<String>> {
        let path = self.event_file();
        let bytes = private::read(&path).or_fail("read", path)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        // A line that a crash cut off is not an event.
        let is_whole = |line: &&str| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok();
        Ok(text.lines().filter(is_whole).map(str::to_owned).collect())
    }

    /// Returns the events that were kept since the last call with this follower, oldest first. The first call returns
    /// all. Reads the file only if it changed.
    pub fn new_events(&self, follower: &mut EventFollower) -> Result<Vec<String>> {
        let path = self.event_file();
        let stamp = disk::stamp_following(&path).or_fail("read", &path)?;
        if follower.stamp.is_some() && follower.stamp == stamp {
            return Ok(Vec::new());
        }
        let found = self.events()?;
        let news = found[already_seen(&follower.seen, &found)..].to_vec();
        *follower = EventFollower { stamp, seen: found };
        Ok(news)
    }

    /// Reports an event and appends it to the event file.
    pub(crate) fn emit(&self, _: &Writer, event: Event, now: Timestamp) -> Result<()> {
        let event = TimedEvent { event, time: now };
        self.tell(&event);
        match self.append_event(&event).and_then(|()| self.halve_events()) {
            // The operation stays done: on a full disk its event is reported, but not kept.
            Err(error) if error.code() == ErrorCode::NoSpace => Ok(()),
            kept => kept,
        }
    }

    /// Reports and keeps the failure of an operation. An error that is not a failure, such as a usage error, is not an
    /// event.
    pub(crate) fn report_failure<T>(&self, done: Result<T>, now: Timestamp) -> Result<T> {
        if let Err(error) = &done
            && error.code().is_failure()
        {
            let event = Event::Error { code: error.code().as_str().to_owned(), message: error.to_string() };
            let event = TimedEvent { event, time: now };
            self.tell(&event);
            let is_ours = !matches!(error, Error::StoreTooNew { .. });
            if is_ours && is_store(&Layout::new(self.store_directory())) {
                // The same failure may prevent this write. The caller gets the error in any case.
                drop(self.append_event(&event).and_then(|()| self.halve_events_if_free()));
            }
        }
        done
    }

    fn event_file(&self) -> PathBuf {
        Layout::new(self.store_directory()).events()
    }

    fn append_event(&self, event: &TimedEvent) -> Result<()> {
        let path = self.event_file();
        let line = serde_json::to_string(event).map_err(|error| Error::Internal(error.to_string()))?;
        private::append_beside_others(&path, format!("{line}\n").as_bytes()).or_fail("append to", path)
    }

    fn events_are_many(&self) -> Result<bool> {
        let path = self.event_file();
        Ok(private::size(&path).or_fail("read", path)?.is_some_and(|size| size > MAX_EVENT_BYTES))
    }

    /// Drops the older half of the event file if it is large. The caller must hold the lock.
    fn halve_events(&self) -> Result<()> {
        if !self.events_are_many()? {
            return Ok(());
        }
        let path = self.event_file();
        let bytes = private::read(&path).or_fail("read", &path)?.unwrap_or_default();
        let half = bytes.len() / 2;
        let start = bytes[half..].iter().position(|byte| *byte == b'\n').map_or(half, |end| half + end + 1);
        private::replace(&path, &bytes[start..], Durability::Unsynced).or_fail("write", path)
    }

    /// Like [`Self::halve_events`], for callers without the lock. Does not wait for the lock, since the next event
    /// tries again.
    fn halve_events_if_free(&self) -> Result<()> {
        if !self.events_are_many()? {
            return Ok(());
        }
        let _lock = Store::lock(self.store_directory(), self.root(), Duration::ZERO)?;
        self.halve_events()
    }
}

/// Returns the number of lines at the start of `found` that are also in `seen`. The file grows at its end, and
/// occasionally loses its older half.
fn already_seen(seen: &[String], found: &[String]) -> usize {
    let lost = (0..seen.len()).find(|lost| found.starts_with(&seen[*lost..]));
    lost.map_or(0, |lost| seen.len() - lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_sees_every_line_once() {
        let lines = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
        let seen = |before: &str, now: &str| already_seen(&lines(before), &lines(now));
        assert_eq!(seen("", "abc"), 0);
        assert_eq!(seen("abc", "abc"), 3);
        assert_eq!(seen("abc", "abcd"), 3);
        assert_eq!(seen("abcd", "cde"), 2, "the older half was removed");
        assert_eq!(seen("abc", "xy"), 0, "another store");
        assert_eq!(seen("abc", ""), 0);
    }
}
