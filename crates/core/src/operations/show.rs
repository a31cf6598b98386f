//! Lists checkpoints, and shows one.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::{
    address::range::{Range, line_between},
    error::{Error, Result},
    model::{Change, Checkpoint, CheckpointId, Kind, Scope, WorkspacePath},
    operations::{
        contents_search::ContentsSearch,
        diff::{Checkpoints, LineSource, PatchLimits, Tree, compare_within, count_lines},
        revert::TakenBackChanges,
    },
    scan::{PathGlob, Scan},
    spans::{Outcome, operation, read_span},
    store::{RecordedPaths, Store, TimelineEntry},
    workspace::Workspace,
};

/// Selects the checkpoints that [`Workspace::list`] returns.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// The maximum number of checkpoints.
    pub limit: Option<usize>,
    /// Only checkpoints of this kind.
    pub kind: Option<Kind>,
    /// Only checkpoints of this session.
    pub session: Option<String>,
    /// Only checkpoints in which this file, or something below this directory, changed.
    pub path: Option<WorkspacePath>,
    /// Only checkpoints with this text in message, name, prompt or command. A text without capitals matches in any case.
    pub grep: Option<String>,
    /// Only checkpoints that added this text to the contents of a file, or removed it.
    pub contents: Option<String>,
    /// Only checkpoints in which a path changed that one of these patterns matches. With none, every checkpoint.
    pub globs: Vec<PathGlob>,
    /// Only checkpoints taken at this moment or later.
    pub since: Option<Timestamp>,
    /// Only checkpoints taken at this moment or earlier.
    pub until: Option<Timestamp>,
    /// Set to list only the checkpoints of prompts.
    pub turns: bool,
    /// Set to omit safety checkpoints.
    pub hide_safety: bool,
    /// Only checkpoints on the line after the first end of this range, up to its second end.
    pub range: Option<Range>,
    /// Only checkpoints with a lower sequence number than this.
    pub before_sequence: Option<u64>,
    /// Set to omit long lists of paths: if hundreds of files changed in a checkpoint, their list stays in the store.
    pub brief: bool,
}

/// The outcome of [`Workspace::show`].
#[derive(Debug, Clone)]
pub struct Shown {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// The changes against the checkpoint that it followed.
    pub changes: Vec<Change>,
    /// The changes from its prompt to the end of the work for it, if it is the checkpoint of a prompt. Edits by hand in
    /// between are among them.
    pub turn_changes: Option<Vec<Change>>,
    /// What the agent did for its prompt, if it is the checkpoint of one.
    pub work: Option<Vec<Change>>,
}

impl Shown {
    /// Leaves out changes outside of a scope.
    pub fn keep(&mut self, scope: &Scope) {
        for changes in std::iter::once(&mut self.changes).chain(&mut self.turn_changes).chain(&mut self.work) {
            changes.retain(|change| scope.contains(&change.path));
        }
    }
}

impl Workspace {
    /// Returns the checkpoints, newest first.
    pub fn list(&self, filter: &ListFilter) -> Result<Vec<Checkpoint>> {
        let span = read_span!(self.store_directory(), "list", checkpoints);
        let found = operation(&span, || self.list_now(filter))?;
        Outcome::on(&span).count("checkpoints", found.len());
        Ok(found)
    }

    fn list_now(&self, filter: &ListFilter) -> Result<Vec<Checkpoint>> {
        let Some(store) = self.store()? else { return Ok(Vec::new()) };
        let timeline = store.timeline()?;
        let taken_back = TakenBackChanges::of(&timeline);
        let within = filter.range.as_ref().map(|range| line_between(&timeline, &range.from, &range.to)).transpose()?;
        let within = within.map(HashSet::<CheckpointId>::from_iter);
        let search = |text| ContentsSearch::new(&store, timeline.clone(), text, self.scope_of_path(filter));
        let search = filter.contents.as_deref().map(search);
        let mut found = Vec::new();
        for entry in timeline.entries().iter().rev() {
            if within.as_ref().is_some_and(|within| !within.contains(&entry.id)) {
                continue;
            }
            if filter.limit.is_some_and(|limit| found.len() >= limit) {
                break;
            }
            let finds = || search.as_ref().map_or(Ok(true), |search| search.finds(&entry.id));
            if filter.takes(&store, entry)? && finds()? {
                let checkpoint = if filter.brief { store.summary(entry)? } else { store.checkpoint(entry)? };
                found.push(taken_back.mark(entry, checkpoint));
            }
        }
        Ok(found)
    }

    /// Returns the nearest checkpoint before each of these that still exists. It is the parent, unless that was deleted.
    pub fn nearest_parents(&self, checkpoints: &[Checkpoint]) -> Result<Vec<Option<CheckpointId>>> {
        let Some(store) = self.store()? else { return Ok(vec![None; checkpoints.len()]) };
        let timeline = store.timeline()?;
        let nearest = |checkpoint: &Checkpoint| Some(timeline.nearest(checkpoint.parent?)?.id);
        Ok(checkpoints.iter().map(nearest).collect())
    }

    fn scope_of_path(&self, filter: &ListFilter) -> Scope {
        filter.path.as_ref().map_or(Scope::Whole, |path| Scope::of_paths(vec![path.clone()]))
    }

    /// Returns one checkpoint.
    pub fn get(&self, id: &CheckpointId) -> Result<Checkpoint> {
        let store = self.store()?.ok_or_else(|| Error::unknown_checkpoint(id))?;
        let timeline = store.timeline()?;
        let entry = timeline.require(id)?;
        Ok(TakenBackChanges::of(&timeline).mark(entry, store.checkpoint(entry)?))
    }

    /// Returns one checkpoint with its changes.
    pub fn show(&self, id: &CheckpointId) -> Result<Shown> {
        let span = read_span!(self.store_directory(), "show", changes);
        let shown = operation(&span, || self.show_now(id))?;
        Outcome::on(&span).count("changes", shown.changes.len());
        Ok(shown)
    }

    fn show_now(&self, id: &CheckpointId) -> Result<Shown> {
        let store = self.store()?.ok_or_else(|| Error::unknown_checkpoint(id))?;
        let timeline = store.timeline()?;
        let entry = timeline.require(id)?;
        let checkpoint = TakenBackChanges::of(&timeline).mark(entry, store.checkpoint(entry)?);
        let checkpoints = Checkpoints::on(&store, timeline);
        let (_, mut changes) = checkpoints.changes_of(&checkpoints.get(id)?, &Scope::Whole)?;
        count_lines(&mut changes, &LineSource::stored(&store))?;
        let work = self.work_for(id, &Scope::Whole, &PatchLimits::NO_PATCH)?.map(|work| work.changes);
        Ok(Shown { checkpoint, changes, turn_changes: self.turn_changes(id)?, work })
    }

    /// Returns the differences between a checkpoint and a scan.
    pub(crate) fn changes_to_disk(
        &self,
        store: Option<&Store>,
        from: Option<CheckpointId>,
        present: &Scan,
    ) -> Result<Vec<Change>> {
        let old = match (store, from) {
            (Some(store), Some(from)) => Tree::Stored(store.snapshot(&from)?),
            _ => Tree::Empty,
        };
        let new = Tree::Scanned(&present.root, present.id_defaults().unwrap_or_default());
        let mut changes = compare_within(&present.scope, store, old, new)?.changes;
        changes.retain(|change| present.scope.contains(&change.path));
        if let (Some(store), Some(from)) = (store, from) {
            let scope = store.timeline()?.require(&from)?.scope();
            changes.retain(|change| scope.contains(&change.path));
        }
        Ok(changes)
    }
}

impl ListFilter {
    fn takes(&self, store: &Store, entry: &TimelineEntry) -> Result<bool> {
        if self.kind.is_some_and(|kind| kind != entry.kind)
            || (self.turns && entry.kind != Kind::Turn)
            || (self.hide_safety && entry.kind == Kind::Safety)
            || self.before_sequence.is_some_and(|before| entry.sequence >= before)
            || self.since.is_some_and(|since| entry.time < since.as_millisecond())
            || self.until.is_some_and(|until| entry.time > until.as_millisecond())
        {
            return Ok(false);
        }
        if self.session.is_none() && self.grep.is_none() && self.path.is_none() && self.globs.is_empty() {
            return Ok(true);
        }
        let Some(record) = entry.record() else { return Ok(false) };
        if self.session.is_some() && record.origin.session != self.session {
            return Ok(false);
        }
        if let Some(text) = &self.grep {
            let origin = &record.origin;
            let places = [Some(&record.message), record.name.as_ref(), origin.prompt.as_ref(), origin.command.as_ref()];
            if !places.into_iter().flatten().any(|place| has_text(place, text)) {
                return Ok(false);
            }
        }
        if self.path.is_none() && self.globs.is_empty() {
            return Ok(true);
        }
        let is_below = |changed: &WorkspacePath| self.path.as_ref().is_none_or(|path| changed.is_within(path));
        let is_matched =
            |changed: &WorkspacePath| self.globs.is_empty() || self.globs.iter().any(|glob| glob.matches(changed));
        let touches = |paths: &[WorkspacePath]| paths.iter().any(|changed| is_below(changed) && is_matched(changed));
        Ok(match &record.changed {
            RecordedPaths::Here(paths) => touches(paths),
            RecordedPaths::InState { .. } => touches(&store.checkpoint(entry)?.files_changed),
        })
    }
}

/// Returns whether `place` contains this text. A text without capitals matches in any case.
fn has_text(place: &str, text: &str) -> bool {
    if text.chars().any(char::is_uppercase) { place.contains(text) } else { place.to_lowercase().contains(text) }
}
