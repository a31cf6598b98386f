//! Finds differences, and writes them as a patch.

mod between;
mod compare;
mod hunks;
mod lines;
mod patch;

pub(crate) use between::Checkpoints;
pub(crate) use compare::{Comparison, Tree, compare, compare_within};
pub(crate) use hunks::{Blocks, add_hunks, texts_of};
pub(crate) use lines::{LineSource, count_lines};
pub(crate) use patch::Patch;
use patch::patch;
use tracing::Span;

use crate::{
    error::{Error, Result},
    model::{Change, CheckpointId, Scope, Skipped, WorkspacePath},
    spans::{Outcome, operation, read_span},
    workspace::{Workspace, held, precious::Precious},
};

/// Limits on the patch that is written for a difference.
#[derive(Debug, Clone, Copy, Default)]
pub struct PatchLimits<'a> {
    /// Paths whose contents the patch does not show.
    pub hide: Option<&'a Precious>,
    /// The maximum size. The patch ends with the last whole line within it. With 0 there is no patch. If this is set,
    /// files that are binary, or too large to compare as text, are only named with their sizes.
    pub max_bytes: Option<usize>,
    /// The maximum size for each file. A line that `git apply` rejects replaces the rest of the file.
    pub max_file_bytes: Option<usize>,
    /// Set to list the hunks of each change of text.
    pub hunks: bool,
    /// The number of unchanged lines around each change in the patch; three by default.
    pub context: Option<u32>,
}

impl PatchLimits<'_> {
    /// Omits the patch, for callers that need only the changes.
    pub const NO_PATCH: Self =
        Self { hide: None, max_bytes: Some(0), max_file_bytes: None, hunks: false, context: None };
}

/// The outcome of [`Workspace::diff`].
#[derive(Debug, Clone)]
pub struct Diff {
    /// The older side. `None` if nothing was saved yet.
    pub from: Option<CheckpointId>,
    /// The newer side. `None` for the files on disk.
    pub to: Option<CheckpointId>,
    /// The differences, sorted by path.
    pub changes: Vec<Change>,
    /// A unified patch that `git apply` accepts, unless it was cut.
    pub patch: String,
    /// Set if the patch ends before it is complete.
    pub is_cut: bool,
    /// Files of which the patch shows only the beginning.
    pub cut_files: Vec<WorkspacePath>,
    /// Changed paths whose contents the patch does not show.
    pub hidden: Vec<WorkspacePath>,
    /// Paths that the older side holds and that a checkpoint of the files on disk would skip. Their differences can't
    /// be determined.
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

    /// Returns a difference without changes so far.
    pub(crate) fn without_changes(from: Option<CheckpointId>, to: Option<CheckpointId>) -> Self {
        Self::of(from, to, Vec::new(), Patch::default(), Vec::new())
    }

    /// Adds a patch behind the existing one.
    pub(crate) fn append(&mut self, patch: Patch) {
        self.patch.push_str(&patch.text);
        self.is_cut |= patch.is_cut;
        self.cut_files.extend(patch.cut_files);
        self.hidden.extend(patch.hidden);
    }

    fn note(&self, span: &Span) {
        Outcome::on(span).count("changes", self.changes.len()).count("patch_bytes", self.patch.len());
    }
}

impl Workspace {
    /// Returns the differences between two checkpoints, or between one and the files on disk.
    pub fn diff(&self, from: Option<CheckpointId>, to: Option<CheckpointId>, scope: &Scope) -> Result<Diff> {
        self.diff_within(from, to, scope, &PatchLimits::default())
    }

    /// Like [`Workspace::diff`], with a patch within limits.
    pub fn diff_within(
        &self,
        from: Option<CheckpointId>,
        to: Option<CheckpointId>,
        scope: &Scope,
        limits: &PatchLimits<'_>,
    ) -> Result<Diff> {
        let span = read_span!(self.store_directory(), "diff", changes, patch_bytes);
        let diff = operation(&span, || self.diff_now(from, to, scope, limits))?;
        diff.note(&span);
        Ok(diff)
    }

    fn diff_now(
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

    /// Returns the changes of a checkpoint against the one that it followed, with a patch within limits.
    pub fn diff_of(&self, id: &CheckpointId, scope: &Scope, limits: &PatchLimits<'_>) -> Result<Diff> {
        let diff = || {
            let store = self.store()?.ok_or_else(|| Error::unknown_checkpoint(id))?;
            let checkpoints = Checkpoints::of(&store);
            let (from, changes) = checkpoints.changes_of(&checkpoints.get(id)?, scope)?;
            let (changes, patch) = written(changes, &LineSource::stored(&store), limits)?;
            Ok(Diff::of(from, Some(*id), changes, patch, Vec::new()))
        };
        let span = read_span!(self.store_directory(), "diff", changes, patch_bytes);
        let diff = operation(&span, diff)?;
        diff.note(&span);
        Ok(diff)
    }

    fn diff_disk(
        &self,
        from: Option<CheckpointId>,
        scope: &Scope,
        limits: &PatchLimits<'_>,
    ) -> Result<(Vec<Change>, Patch, Vec<Skipped>)> {
        let store = self.store()?;
        self.showing(store.as_ref(), scope, |present| {
            let changes = self.changes_to_disk(store.as_ref(), from, present)?;
            let (changes, patch) = written(changes, &LineSource::on_disk(store.as_ref(), self.root()), limits)?;
            let mut uncaptured = match (&store, from) {
                (Some(store), Some(from)) => held::held_among(store, &from, &present.skipped())?,
                _ => Vec::new(),
            };
            uncaptured.retain(|left_out| scope.touches(&left_out.path));
            Ok((changes, patch, uncaptured))
        })
    }
}

/// Counts the lines of the changes, and writes the patch.
pub(crate) fn written(
    mut changes: Vec<Change>,
    source: &LineSource<'_>,
    limits: &PatchLimits<'_>,
) -> Result<(Vec<Change>, Patch)> {
    count_lines(&mut changes, source)?;
    let patch = patch(&changes, source, limits)?;
    if limits.hunks {
        let is_shown = |change: &Change| !limits.hide.is_some_and(|hide| hide.contains(&change.path));
        changes
            .iter_mut()
            .filter(|change| is_shown(change))
            .try_for_each(|change| add_hunks(std::slice::from_mut(change), source))?;
    }
    Ok((changes, patch))
}
