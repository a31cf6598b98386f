//! What changed on disk since a checkpoint.

use crate::{
    diff::{LineSource, count_lines},
    error::Result,
    held,
    model::{Change, Checkpoint, CheckpointId, Scope, Skipped},
    workspace::Workspace,
};

/// The outcome of [`Workspace::status`].
#[derive(Debug, Clone)]
pub struct Status {
    /// What it was compared with; none before the first checkpoint.
    pub checkpoint: Option<Checkpoint>,
    /// What changed since.
    pub changes: Vec<Change>,
    /// What the checkpoint holds and a new one would leave out: how it changed can't be told.
    pub uncaptured: Vec<Skipped>,
}

impl Workspace {
    /// What changed on disk since `since`, or since the checkpoint that the workspace stands on.
    pub fn status(&self, since: Option<CheckpointId>) -> Result<Status> {
        let store = self.store()?;
        let from = match since {
            Some(since) => Some(since),
            None => self.current()?,
        };
        let checkpoint = from.map(|id| self.get(&id)).transpose()?;
        let present = self.scan_for_reading(store.as_ref(), &Scope::Whole)?;
        let mut changes = self.changes_to_disk(store.as_ref(), from, &present)?;
        count_lines(&mut changes, &LineSource::on_disk(store.as_ref(), self.root()))?;
        let uncaptured = match (&store, from) {
            (Some(store), Some(from)) => held::held_among(store, &from, &present.told_skipped())?,
            _ => Vec::new(),
        };
        Ok(Status { checkpoint, changes, uncaptured })
    }
}
