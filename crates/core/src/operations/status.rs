//! Reports the changes on disk since a checkpoint.

use crate::{
    error::Result,
    model::{Change, Checkpoint, CheckpointId, Scope, Skipped},
    operations::diff::{LineSource, count_lines},
    spans::{Outcome, operation, read_span},
    workspace::{Workspace, held},
};

/// The outcome of [`Workspace::status`].
#[derive(Debug, Clone)]
pub struct Status {
    /// The checkpoint that the files were compared with. `None` before the first checkpoint.
    pub checkpoint: Option<Checkpoint>,
    /// The changes since then.
    pub changes: Vec<Change>,
    /// Paths that the checkpoint holds and a new one would skip. Their changes can't be determined.
    pub uncaptured: Vec<Skipped>,
}

impl Workspace {
    /// Returns the changes on disk since `since`, or since the checkpoint that the workspace stands on.
    pub fn status(&self, since: Option<CheckpointId>) -> Result<Status> {
        let span = read_span!(self.store_directory(), "status", changes, uncaptured);
        let status = operation(&span, || self.status_now(since))?;
        Outcome::on(&span).count("changes", status.changes.len()).count("uncaptured", status.uncaptured.len());
        Ok(status)
    }

    fn status_now(&self, since: Option<CheckpointId>) -> Result<Status> {
        let store = self.store()?;
        let from = match since {
            Some(since) => Some(since),
            None => self.current()?,
        };
        let checkpoint = from.map(|id| self.get(&id)).transpose()?;
        self.showing(store.as_ref(), &Scope::Whole, |present| {
            let mut changes = self.changes_to_disk(store.as_ref(), from, present)?;
            count_lines(&mut changes, &LineSource::on_disk(store.as_ref(), self.root()))?;
            let uncaptured = match (&store, from) {
                (Some(store), Some(from)) => held::held_among(store, &from, &present.told_skipped())?,
                _ => Vec::new(),
            };
            Ok(Status { checkpoint: checkpoint.clone(), changes, uncaptured })
        })
    }
}
