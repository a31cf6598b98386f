//! The report of what happened: told to whoever observes the workspace, and kept in the store's `events.jsonl`.
//!
//! Nothing relies on it. Lines are added one by one, without the lock where an operation failed: the lock may be what
//! could not be had. The file is halved under the lock alone.

use std::{path::PathBuf, time::Duration};

use jiff::Timestamp;

use crate::{
    disk::private::{self, Durability},
    error::{Error, ErrorCode, Result, While},
    events::{Event, TimedEvent},
    store::{Layout, Store, Writer, is_store},
    workspace::Workspace,
};

/// The file of events is cut in half when it is larger.
const MAX_EVENT_BYTES: u64 = 1 << 20;

impl Workspace {
    /// The events of this workspace as they were kept, oldest first, one JSON object each.
    pub fn events(&self) -> Result<Vec<String>> {
        let path = self.event_file();
        let bytes = private::read(&path).or_fail("read", path)?.unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        // A line that a crash tore is no event.
        let is_whole = |line: &&str| serde_json::from_str::<serde::de::IgnoredAny>(line).is_ok();
        Ok(text.lines().filter(is_whole).map(str::to_owned).collect())
    }

    /// Tells what happened, and keeps it.
    pub(crate) fn emit(&self, _: &Writer, event: Event, now: Timestamp) -> Result<()> {
        let event = TimedEvent { event, time: now };
        self.tell(&event);
        match self.append_event(&event).and_then(|()| self.halve_events()) {
            // What was done stays done: on a full disk its event is told, and not kept.
            Err(error) if error.code() == ErrorCode::NoSpace => Ok(()),
            kept => kept,
        }
    }

    /// Tells and keeps that an operation failed; a call that made no sense is no event.
    pub(crate) fn told<T>(&self, done: Result<T>, now: Timestamp) -> Result<T> {
        if let Err(error) = &done
            && error.code().is_failure()
        {
            let event = Event::Error { code: error.code().as_str().to_owned(), message: error.to_string() };
            let event = TimedEvent { event, time: now };
            self.tell(&event);
            let is_ours = !matches!(error, Error::StoreTooNew { .. });
            if is_ours && is_store(&Layout::new(self.store_directory())) {
                // What went wrong may keep this from being written, too; the caller is told of it in any case.
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

    /// Drops the older half where it is large; whoever calls it holds the lock.
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

    /// Without the lock so far: waits for nobody, since the next event comes by here, too.
    fn halve_events_if_free(&self) -> Result<()> {
        if !self.events_are_many()? {
            return Ok(());
        }
        let _lock = Store::lock(self.store_directory(), self.root(), Duration::ZERO)?;
        self.halve_events()
    }
}
