//! `forks`: the forks of a workspace, and what was done in each since.

use std::path::PathBuf;

use crate::{
    error::Result,
    model::{Change, CheckpointId, Kind, Scope},
    operations::diff::PatchLimits,
    store::{ExactText, ForkNote, ForkOrigin, IdentityFile, Layout},
    workspace::{
        Workspace,
        bindings::{is_absent, moved_beside},
        locate::{Location, OptionsOf},
    },
};

/// A fork of a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fork {
    /// Its directory.
    pub path: PathBuf,
    /// Set if the directory is there.
    pub exists: bool,
    /// The fork point.
    pub checkpoint: CheckpointId,
    /// The number of prompts that were given there.
    pub prompts: usize,
    /// The changes since the fork point: on disk, or up to the last checkpoint if the directory is gone. `None` if the
    /// fork point was deleted there.
    pub changes: Option<ForkChanges>,
}

/// The extent of the changes in a fork.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ForkChanges {
    /// The number of changed files.
    pub files: usize,
    /// The number of inserted lines.
    pub insertions: u64,
    /// The number of deleted lines.
    pub deletions: u64,
}

impl Workspace {
    /// Returns the forks that were made of this workspace, oldest first. `options` are those of each fork.
    pub fn forks(&self, options: OptionsOf<'_>) -> Result<Vec<Fork>> {
        let Some(store) = self.store()? else { return Ok(Vec::new()) };
        let mut forks = Vec::new();
        for note in store.fork_notes()? {
            forks.extend(self.fork_of(&note, options)?);
        }
        Ok(forks)
    }

    /// Returns the fork that a note is about. Returns `None` if it was never finished, or if its store is gone.
    fn fork_of(&self, note: &ForkNote, options: OptionsOf<'_>) -> Result<Option<Fork>> {
        let Some(directory) = note.store.to_path() else { return Ok(None) };
        let layout = Layout::new(&directory);
        let is_ours = |origin: &ForkOrigin| {
            origin.store == ExactText::of_path(self.store_directory()) && origin.point() == Some(note.checkpoint)
        };
        if !ForkOrigin::read(&layout)?.as_ref().is_some_and(is_ours) {
            return Ok(None);
        }
        let Some(identity) = IdentityFile::read(&layout) else { return Ok(None) };
        let Some(recorded) = identity.path.to_path() else { return Ok(None) };
        let present = if is_absent(&identity) { moved_beside(&identity) } else { Some(recorded.clone()) };
        let (path, exists) = (present.clone().unwrap_or(recorded), present.is_some());
        let fork = Workspace::new(Location::with_store(path.clone(), directory), (options.0)(&path));
        let Some(store) = fork.store()? else { return Ok(None) };
        let timeline = store.timeline()?;
        let is_prompt = |entry: &&crate::store::TimelineEntry| entry.kind == Kind::Turn && entry.id != note.checkpoint;
        let prompts = timeline.entries().iter().filter(is_prompt).count();
        let changes = match timeline.get(&note.checkpoint) {
            Some(_) => Some(fork.changes_since_fork(note.checkpoint, exists)?),
            None => None,
        };
        Ok(Some(Fork { path, exists, checkpoint: note.checkpoint, prompts, changes }))
    }

    fn changes_since_fork(&self, point: CheckpointId, exists: bool) -> Result<ForkChanges> {
        let changes: Vec<Change> = if exists {
            self.status(Some(point))?.changes
        } else {
            self.diff_within(Some(point), self.current()?, &Scope::Whole, &PatchLimits::NO_PATCH)?.changes
        };
        Ok(ForkChanges {
            files: changes.len(),
            insertions: changes.iter().map(|change| change.insertions).sum(),
            deletions: changes.iter().map(|change| change.deletions).sum(),
        })
    }
}
