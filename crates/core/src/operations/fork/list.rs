//! `forks`: the forks of a workspace, and what was done in each since.

use std::path::PathBuf;

use crate::{
    error::Result,
    model::{Change, CheckpointId, Kind, Scope},
    operations::diff::PatchLimits,
    store::{ExactText, ForkNote, ForkOrigin, IdentityFile, Layout, TimelineEntry},
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

/// A fork that was finished, and whose store is there.
pub(super) struct KnownFork {
    /// Its directory, or the path that it had.
    pub(super) path: PathBuf,
    pub(super) exists: bool,
    store: PathBuf,
    /// The fork point.
    pub(super) point: CheckpointId,
}

impl KnownFork {
    /// Returns the fork as a workspace.
    pub(super) fn workspace(&self, options: OptionsOf<'_>) -> Workspace {
        let location = Location::with_store(self.path.clone(), self.store.clone());
        Workspace::new(location, (options.0)(&self.path))
    }

    /// Counts the prompts and the changes since the fork point.
    fn examine(&self, options: OptionsOf<'_>) -> Result<Fork> {
        let workspace = self.workspace(options);
        let timeline = workspace.existing_store()?.timeline()?;
        let is_prompt = |entry: &&TimelineEntry| entry.kind == Kind::Turn && entry.id != self.point;
        let prompts = timeline.entries().iter().filter(is_prompt).count();
        let changes = match timeline.get(&self.point) {
            Some(_) => Some(workspace.changes_since_fork(self.point, self.exists)?),
            None => None,
        };
        Ok(Fork { path: self.path.clone(), exists: self.exists, checkpoint: self.point, prompts, changes })
    }
}

impl Workspace {
    /// Returns the forks that were made of this workspace, oldest first. `options` are those of each fork.
    pub fn forks(&self, options: OptionsOf<'_>) -> Result<Vec<Fork>> {
        self.known_forks()?.iter().map(|known| known.examine(options)).collect()
    }

    pub(super) fn known_forks(&self) -> Result<Vec<KnownFork>> {
        let Some(store) = self.store()? else { return Ok(Vec::new()) };
        let mut forks = Vec::new();
        for note in store.fork_notes()? {
            forks.extend(self.known_fork(&note)?);
        }
        Ok(forks)
    }

    /// Returns the fork that a note is about. Returns `None` if it was never finished, or if its store is gone.
    fn known_fork(&self, note: &ForkNote) -> Result<Option<KnownFork>> {
        let Some(store) = note.store.to_path() else { return Ok(None) };
        let layout = Layout::new(&store);
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
        Ok(Some(KnownFork { path, exists, store, point: note.checkpoint }))
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
