//! Plans files that the target lacks and that come back from later checkpoints.

use std::collections::{BTreeMap, BTreeSet};

use super::{compare::RestoreComparison, permissions::Permitted};
use crate::{
    error::Result,
    model::{CheckpointId, Scope, WorkspacePath},
    operations::captured_later::CapturedLater,
    store::{Step, Timeline},
    workspace::{Workspace, skipped::SkippedByCheckpoint},
};

/// Returns the checkpoints that the files come from, each once.
pub(super) fn sources_of(also: &[CapturedLater]) -> Vec<CheckpointId> {
    by_source(also).into_keys().collect()
}

fn by_source(also: &[CapturedLater]) -> BTreeMap<CheckpointId, Vec<WorkspacePath>> {
    let mut found: BTreeMap<CheckpointId, Vec<WorkspacePath>> = BTreeMap::new();
    for CapturedLater { path, checkpoint, .. } in also {
        found.entry(*checkpoint).or_default().push(path.clone());
    }
    found
}

impl RestoreComparison<'_> {
    /// Adds the steps for these files to those of the target.
    pub(super) fn add_files_of(
        &mut self,
        also: &[CapturedLater],
        workspace: &Workspace,
        timeline: &Timeline,
    ) -> Result<()> {
        for (source, paths) in by_source(also) {
            timeline.require(&source)?;
            let scope = Scope::of_paths(paths);
            let mut part = RestoreComparison {
                store: self.store,
                reader: self.store.reader(),
                present: self.present,
                scope: &scope,
                spared: Scope::of_paths(Vec::new()),
                named: None,
                exact: None,
                left_out: SkippedByCheckpoint::of(self.store, &source)?,
                made: Vec::new(),
                also: self.also,
                may_remove: false,
                is_store_ours: self.is_store_ours,
                permitted: Permitted::of(workspace),
                steps: Vec::new(),
                changes: Vec::new(),
                conflicts: Vec::new(),
                widened: Vec::new(),
                replaced: Vec::new(),
                unmet: Vec::new(),
                left_to_git: Vec::new(),
            };
            part.root(&self.store.snapshot(&source)?)?;
            let known: BTreeSet<&WorkspacePath> = self.changes.iter().map(|change| &change.path).collect();
            part.changes.retain(|change| !known.contains(&change.path));
            self.changes.append(&mut part.changes);
            self.conflicts.append(&mut part.conflicts);
            self.merge_steps(part.steps);
        }
        Ok(())
    }

    /// Adds the steps that lead to files of another checkpoint. A directory above them may have a step already: if that
    /// one only removes what is in the way, the directory is created in its place.
    fn merge_steps(&mut self, steps: Vec<Step>) {
        for step in steps {
            match self.steps.iter_mut().find(|known| known.path == step.path) {
                Some(known) if known.new.is_none() => *known = step,
                Some(_) => {}
                None => self.steps.push(step),
            }
        }
    }
}
