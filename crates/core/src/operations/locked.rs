//! Locks the store for an operation. An interrupted restore is finished before the operation begins.

use jiff::Timestamp;

use crate::{
    clock::Clock,
    error::Result,
    operations::restore::Way,
    spans::{Outcome, operation, write_span},
    store::Writer,
    workspace::Workspace,
};

impl Workspace {
    /// Creates the store if it is missing. Returns whether it was.
    pub fn init(&self, now: Timestamp) -> Result<bool> {
        let init = || Ok(self.writer(now)?.1);
        let span = write_span!(self.store_directory(), "init", created);
        let created = operation(&span, init)?;
        Outcome::on(&span).flag("created", created);
        Ok(created)
    }

    /// Locks the store, creates it if it is missing, and finishes an interrupted restore. Returns whether the store was
    /// missing.
    pub(crate) fn writer(&self, now: Timestamp) -> Result<(Writer, bool)> {
        let ((writer, created), _) = self.lock_store(&now)?;
        self.recover_locked(&writer, Way::Forward, now)?;
        Ok((writer, created))
    }

    /// Like [`Self::writer`], but returns the time at which the lock of the store was taken.
    pub(crate) fn writer_at(&self, clock: &impl Clock) -> Result<(Writer, Timestamp)> {
        let ((writer, _), now) = self.lock_store(clock)?;
        self.recover_locked(&writer, Way::Forward, now)?;
        Ok((writer, now))
    }
}
