//! What differs, and the text that shows it.

mod compare;
mod lines;
mod patch;

pub(crate) use compare::{Comparison, Tree, compare};
pub(crate) use lines::{LineSource, count_lines};
pub(crate) use patch::patch;

use crate::{
    error::Result,
    model::{Change, CheckpointId, Scope},
    workspace::Workspace,
};

/// The outcome of [`Workspace::diff`].
#[derive(Debug, Clone)]
pub struct Diff {
    /// The older side; none where nothing was saved yet.
    pub from: Option<CheckpointId>,
    /// The newer side; none for the files on disk.
    pub to: Option<CheckpointId>,
    /// What differs, in the order of the paths.
    pub changes: Vec<Change>,
    /// A unified patch that `git apply` takes.
    pub patch: String,
}

impl Workspace {
    /// What differs between two checkpoints, or one and the files on disk.
    pub fn diff(&self, from: Option<CheckpointId>, to: Option<CheckpointId>, scope: &Scope) -> Result<Diff> {
        let (changes, patch) = match to {
            Some(to) => self.diff_checkpoints(from, to, scope)?,
            None => self.diff_disk(from, scope)?,
        };
        Ok(Diff { from, to, changes, patch })
    }

    fn diff_checkpoints(
        &self,
        from: Option<CheckpointId>,
        to: CheckpointId,
        scope: &Scope,
    ) -> Result<(Vec<Change>, String)> {
        let store = self.existing_store()?;
        let mut changes = self.changes_between(&store, from, to)?;
        changes.retain(|change| scope.contains(&change.path));
        let source = LineSource::stored(&store);
        count_lines(&mut changes, &source)?;
        let text = patch(&changes, &source)?;
        Ok((changes, text))
    }

    fn diff_disk(&self, from: Option<CheckpointId>, scope: &Scope) -> Result<(Vec<Change>, String)> {
        let store = self.store()?;
        let present = self.scan_for_reading(store.as_ref(), scope)?;
        let mut changes = self.changes_to_disk(store.as_ref(), from, &present)?;
        changes.retain(|change| scope.contains(&change.path));
        let source = LineSource::on_disk(store.as_ref(), self.root());
        count_lines(&mut changes, &source)?;
        let text = patch(&changes, &source)?;
        Ok((changes, text))
    }
}
