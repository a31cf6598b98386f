//! What differs, and the text that shows it.

mod between;
mod compare;
mod lines;
mod patch;

pub(crate) use between::Checkpoints;
pub(crate) use compare::{Comparison, Tree, compare, compare_within};
pub(crate) use lines::{LineSource, count_lines};
use patch::{Patch, patch};

use crate::{
    error::Result,
    held,
    model::{Change, CheckpointId, Scope, Skipped, WorkspacePath},
    precious::Precious,
    show::unknown,
    workspace::Workspace,
};

/// How much of a difference is written out as a patch.
#[derive(Debug, Clone, Copy, Default)]
pub struct PatchLimits<'a> {
    /// Paths whose contents stay out of it.
    pub hide: Option<&'a Precious>,
    /// The patch ends with the last line before so many bytes; with 0 there is none. Files that are no text, or too large
    /// for one, are then named with their sizes.
    pub max_bytes: Option<usize>,
    /// The same for each file. A line that `git apply` refuses stands in the place of the rest.
    pub max_file_bytes: Option<usize>,
}

impl PatchLimits<'_> {
    /// No patch at all, for callers who want the changes alone.
    pub const NO_PATCH: Self = Self { hide: None, max_bytes: Some(0), max_file_bytes: None };
}

/// The outcome of [`Workspace::diff`].
#[derive(Debug, Clone)]
pub struct Diff {
    /// The older side; none where nothing was saved yet.
    pub from: Option<CheckpointId>,
    /// The newer side; none for the files on disk.
    pub to: Option<CheckpointId>,
    /// What differs, in the order of the paths.
    pub changes: Vec<Change>,
    /// A unified patch that `git apply` takes, unless it was cut.
    pub patch: String,
    /// Did the patch have to end before it was complete?
    pub is_cut: bool,
    /// Files of which the patch shows only the beginning.
    pub cut_files: Vec<WorkspacePath>,
    /// Changed paths that the patch keeps silent about.
    pub hidden: Vec<WorkspacePath>,
    /// What the older side holds and a checkpoint of the files on disk would leave out: how it differs can't be told.
    pub uncaptured: Vec<Skipped>,
}

impl Diff {
    fn of(
        from: Option<CheckpointId>,
        to: Option<CheckpointId>,
        changes: Vec<Change>,
        patch: Patch,
        uncaptured: Vec<Skipped>,
    ) -> Self {
        let Patch { text: patch, is_cut, cut_files, hidden } = patch;
        Self { from, to, changes, patch, is_cut, cut_files, hidden, uncaptured }
    }
}

impl Workspace {
    /// What differs between two checkpoints, or one and the files on disk.
    pub fn diff(&self, from: Option<CheckpointId>, to: Option<CheckpointId>, scope: &Scope) -> Result<Diff> {
        self.diff_within(from, to, scope, &PatchLimits::default())
    }

    /// As [`Workspace::diff`], with a patch within limits.
    pub fn diff_within(
        &self,
        from: Option<CheckpointId>,
        to: Option<CheckpointId>,
        scope: &Scope,
        limits: &PatchLimits<'_>,
    ) -> Result<Diff> {
        let (changes, patch, uncaptured) = match to {
            Some(to) => {
                let store = self.existing_store()?;
                let checkpoints = Checkpoints::of(&store);
                let from = from.map(|from| checkpoints.get(&from)).transpose()?;
                let changes = checkpoints.changes_between(from.as_ref(), &checkpoints.get(&to)?, scope)?;
                let (changes, patch) = written(changes, &LineSource::stored(&store), limits)?;
                (changes, patch, Vec::new())
            }
            None => self.diff_disk(from, scope, limits)?,
        };
        Ok(Diff::of(from, to, changes, patch, uncaptured))
    }

    /// What a checkpoint changed against the one that it followed, with a patch within limits.
    pub fn diff_of(&self, id: &CheckpointId, scope: &Scope, limits: &PatchLimits<'_>) -> Result<Diff> {
        let store = self.store()?.ok_or_else(|| unknown(id))?;
        let checkpoints = Checkpoints::of(&store);
        let (from, changes) = checkpoints.changes_of(&checkpoints.get(id)?, scope)?;
        let (changes, patch) = written(changes, &LineSource::stored(&store), limits)?;
        Ok(Diff::of(from, Some(*id), changes, patch, Vec::new()))
    }

    fn diff_disk(
        &self,
        from: Option<CheckpointId>,
        scope: &Scope,
        limits: &PatchLimits<'_>,
    ) -> Result<(Vec<Change>, Patch, Vec<Skipped>)> {
        let store = self.store()?;
        let present = self.scan_for_reading(store.as_ref(), scope)?;
        let changes = self.changes_to_disk(store.as_ref(), from, &present)?;
        let (changes, patch) = written(changes, &LineSource::on_disk(store.as_ref(), self.root()), limits)?;
        let mut uncaptured = match (&store, from) {
            (Some(store), Some(from)) => held::held_among(store, &from, &present.skipped())?,
            _ => Vec::new(),
        };
        uncaptured.retain(|left_out| scope.touches(&left_out.path));
        Ok((changes, patch, uncaptured))
    }
}

/// The changes, counted and written out.
fn written(
    mut changes: Vec<Change>,
    source: &LineSource<'_>,
    limits: &PatchLimits<'_>,
) -> Result<(Vec<Change>, Patch)> {
    count_lines(&mut changes, source)?;
    let patch = patch(&changes, source, limits)?;
    Ok((changes, patch))
}
