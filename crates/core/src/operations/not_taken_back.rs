//! Finds the changes of a command that going back to a checkpoint does not take back.
//!
//! A restore brings back what the checkpoint holds. Everything else is compared by its name, size and times, in a
//! [`Survey`] from before the command and one from after the restore.

use std::{
    cell::OnceCell,
    collections::{BTreeSet, HashMap},
};

use bstr::BString;
use itertools::{EitherOrBoth, Itertools};

use crate::{
    disk::FileType,
    error::Result,
    model::{CheckpointId, WorkspacePath},
    scan::{Seen, SeenNode, Survey, SurveyOptions, survey},
    spans::{Outcome, operation, read_span},
    store::{ObjectReader, Snapshot, Store, StoredNode},
    workspace::Workspace,
};

impl Workspace {
    /// Surveys the workspace, to be compared by [`Self::not_taken_back`] later.
    pub fn survey(&self) -> Result<Survey> {
        operation(&read_span!(self.store_directory(), "survey"), || self.survey_since(None))
    }

    /// Returns the paths that differ from an earlier survey although the workspace was restored to `checkpoint`: paths
    /// that were changed, created or removed since and that the checkpoint does not hold. A new or removed directory is
    /// one path.
    pub fn not_taken_back(&self, before: &Survey, checkpoint: &CheckpointId) -> Result<Vec<WorkspacePath>> {
        let span = read_span!(self.store_directory(), "not_taken_back", paths);
        let paths = operation(&span, || self.compare_surveys(before, checkpoint))?;
        Outcome::on(&span).count("paths", paths.len());
        Ok(paths)
    }

    fn compare_surveys(&self, before: &Survey, checkpoint: &CheckpointId) -> Result<Vec<WorkspacePath>> {
        let after = self.survey_since(Some(before))?;
        let store = self.existing_store()?;
        let reader = store.reader();
        let held = HeldDirectory::of(&store, &reader, Some(store.snapshot(checkpoint)?));
        let mut found = BTreeSet::new();
        compare(&before.entries, &after.entries, &WorkspacePath::root(), &held, &mut found)?;
        Ok(found.into_iter().collect())
    }

    fn survey_since(&self, before: Option<&Survey>) -> Result<Survey> {
        let options = SurveyOptions {
            own: &self.own_directories(),
            capture_rebuildable: self.settings().scan.capture_rebuildable,
            before,
            progress: &self.progress(),
        };
        survey(self.root(), &options)
    }
}

/// A directory of the checkpoint, listed when it is first needed.
struct HeldDirectory<'s> {
    store: &'s Store,
    reader: &'s ObjectReader,
    /// `None` if the checkpoint has no directory here.
    snapshot: Option<Snapshot>,
    entries: OnceCell<HashMap<BString, StoredNode>>,
}

impl<'s> HeldDirectory<'s> {
    fn of(store: &'s Store, reader: &'s ObjectReader, snapshot: Option<Snapshot>) -> Self {
        Self { store, reader, snapshot, entries: OnceCell::new() }
    }

    fn get(&self, name: &BString) -> Result<Option<StoredNode>> {
        let Some(snapshot) = &self.snapshot else { return Ok(None) };
        if let Some(entries) = self.entries.get() {
            return Ok(entries.get(name).copied());
        }
        let listed = self.store.list(self.reader, snapshot)?;
        let entries = self.entries.get_or_init(|| listed.into_iter().map(|entry| (entry.name, entry.node)).collect());
        Ok(entries.get(name).copied())
    }

    fn contains(&self, name: &BString) -> Result<bool> {
        Ok(self.get(name)?.is_some())
    }

    /// Returns the directory of this name.
    fn below(&self, name: &BString) -> Result<Self> {
        let snapshot = match self.get(name)? {
            Some(StoredNode::Directory { snapshot, .. }) => Some(snapshot),
            _ => None,
        };
        Ok(Self::of(self.store, self.reader, snapshot))
    }
}

/// Adds the paths in a directory that differ and that the checkpoint does not hold.
fn compare(
    before: &[Seen],
    after: &[Seen],
    directory: &WorkspacePath,
    held: &HeldDirectory<'_>,
    found: &mut BTreeSet<WorkspacePath>,
) -> Result<()> {
    for pair in before.iter().merge_join_by(after, |was, is| was.name.cmp(&is.name)) {
        match pair {
            // Also if the checkpoint holds it: the restore did not bring it back.
            EitherOrBoth::Left(was) => _ = found.insert(directory.join(&was.name)),
            EitherOrBoth::Right(is) => {
                if !held.contains(&is.name)? {
                    found.insert(directory.join(&is.name));
                }
            }
            EitherOrBoth::Both(was, is) => compare_one(was, is, &directory.join(&was.name), held, found)?,
        }
    }
    Ok(())
}

fn compare_one(
    was: &Seen,
    is: &Seen,
    path: &WorkspacePath,
    held: &HeldDirectory<'_>,
    found: &mut BTreeSet<WorkspacePath>,
) -> Result<()> {
    let is_as_before = match (&was.node, &is.node) {
        (SeenNode::Entry(old), SeenNode::Entry(new)) => {
            old == new || FileType::of(old) == FileType::of(new) && held.contains(&was.name)?
        }
        (
            SeenNode::Directory { mode: old, entries: before, .. },
            SeenNode::Directory { mode: new, entries: after, .. },
        ) => {
            compare(before, after, path, &held.below(&was.name)?, found)?;
            old == new || held.contains(&was.name)?
        }
        _ => false,
    };
    if !is_as_before {
        found.insert(path.clone());
    }
    Ok(())
}
