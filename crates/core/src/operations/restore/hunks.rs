//! Limits a restore plan to some hunks.

use std::{collections::BTreeSet, path::Path};

use super::{ExactPaths, Intent, RestorePlan, plan::hash_of};
use crate::{
    error::{Error, Result},
    model::{Change, Scope, Side, WorkspacePath},
    operations::diff::{Blocks, LineSource, add_hunks, texts_of},
    store::{Store, content_id},
    workspace::Workspace,
};

/// The hunks that a restore or revert is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum HunkChoice {
    /// All changes. The plan does not list hunks.
    #[default]
    All,
    /// All changes. The plan lists the hunks of each change of text.
    Listed,
    /// Only some.
    Only(ChosenChanges),
}

/// The changes that a user chose.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChosenChanges {
    /// The ids of hunks.
    pub hunks: Vec<String>,
    /// Paths whose whole change is chosen.
    pub paths: Vec<WorkspacePath>,
}

/// The outcome for one change.
enum Kept {
    Nothing,
    /// The whole change: it adds or deletes a file.
    Whole,
    /// The file gets these contents.
    Contents(Vec<u8>),
}

impl RestorePlan {
    /// Applies the choice of hunks to the plan.
    pub(super) fn choose_hunks(&mut self, workspace: &Workspace, store: &Store, intent: &Intent) -> Result<()> {
        match &intent.request.hunks {
            HunkChoice::All => Ok(()),
            HunkChoice::Listed => {
                let source = LineSource::from_disk_to_store(store, workspace.root()).with_contents(&self.contents);
                add_hunks(&mut self.changes, &source)
            }
            HunkChoice::Only(chosen) => self.keep_hunks(workspace, store, intent, chosen),
        }
    }

    fn keep_hunks(
        &mut self,
        workspace: &Workspace,
        store: &Store,
        intent: &Intent,
        chosen: &ChosenChanges,
    ) -> Result<()> {
        let mut unknown: BTreeSet<&str> = chosen.hunks.iter().map(String::as_str).collect();
        let mut kept = Vec::new();
        for change in &self.changes {
            if chosen.paths.contains(&change.path) {
                kept.push((change.clone(), Kept::Whole));
                continue;
            }
            match self.kept_of(change, store, workspace.root(), &mut unknown)? {
                Kept::Nothing => {}
                whole_or_part => kept.push((change.clone(), whole_or_part)),
            }
        }
        if let Some(id) = unknown.first() {
            return Err(Error::HunkChanged { id: (*id).to_owned() });
        }
        let mut changes = Vec::new();
        let mut whole = Vec::new();
        for (change, kept) in kept {
            match kept {
                Kept::Contents(contents) => changes.push(self.edit(&change, contents)?),
                _ => {
                    whole.push(change.path.clone());
                    changes.push(change);
                }
            }
        }
        self.retain(changes, &whole);
        self.hash = hash_of(workspace, intent, &self.recorded_scope, &self.steps, None, &self.conflicts);
        Ok(())
    }

    /// Returns the part of a change that the chosen hunks make. Removes the hunks that it finds from `unknown`.
    fn kept_of(&self, change: &Change, store: &Store, root: &Path, unknown: &mut BTreeSet<&str>) -> Result<Kept> {
        let source = LineSource::from_disk_to_store(store, root).with_contents(&self.contents);
        let Some((old, new)) = texts_of(change, &source)? else { return Ok(Kept::Nothing) };
        let blocks = Blocks::between(&old, &new);
        let (chosen, found) = blocks.chosen(&change.path, unknown);
        unknown.retain(|id| !found.iter().any(|found| found == id));
        Ok(match (chosen.is_empty(), change.old.is_some() && change.new.is_some()) {
            (true, _) => Kept::Nothing,
            (false, true) => Kept::Contents(blocks.apply(&chosen)),
            (false, false) => Kept::Whole,
        })
    }

    /// Replaces the step of an edited file: the chosen hunks change its contents and leave its permission bits.
    fn edit(&mut self, change: &Change, contents: Vec<u8>) -> Result<Change> {
        let no_id = || Error::Internal("contents of a hunk without an id".into());
        let content = content_id(&contents).ok_or_else(no_id)?;
        let Some(Side::File { mode, .. }) = change.old else { return Err(no_id()) };
        self.contents.insert(content, contents);
        let new = Some(Side::File { content, mode });
        if let Some(step) = self.steps.iter_mut().find(|step| step.path == change.path) {
            (step.new, step.in_place) = (new, false);
        }
        Ok(Change::between(change.path.clone(), change.old, new))
    }

    /// Drops everything but these changes, and the directories that have to be created for the added files.
    fn retain(&mut self, changes: Vec<Change>, whole: &[WorkspacePath]) {
        let kept = ExactPaths::of(changes.iter().map(|change| change.path.clone()).collect());
        let added = ExactPaths::of(whole.to_vec());
        self.steps.retain(|step| kept.contains(&step.path) || step.puts_directory() && added.touches(&step.path));
        let used: BTreeSet<_> = self.steps.iter().filter_map(|step| step.new?.content()).collect();
        self.contents.retain(|content, _| used.contains(content));
        self.changes = changes;
        self.merged.retain(|path| kept.contains(path));
        self.moved.retain(|moved| kept.contains(&moved.to));
        self.conflicts.clear();
        self.unmet.clear();
        self.left_to_git.clear();
        self.git = None;
        let exact: Vec<WorkspacePath> = self.steps.iter().map(|step| step.path.clone()).collect();
        self.recorded_scope = Scope::of_paths(exact.clone());
        self.recorded_named = Some(Scope::of_paths(kept.to_vec()));
        self.exact = Some(exact);
    }
}
