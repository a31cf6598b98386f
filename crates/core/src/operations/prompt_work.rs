//! What an agent did for a prompt: its own steps, without edits by hand in between.

use std::collections::BTreeMap;

use crate::{
    error::Result,
    model::{Change, CheckpointId, Kind, Scope, WorkspacePath},
    operations::{
        diff::{Checkpoints, Diff, LineSource, PatchLimits, written},
        revert::{WorkStretch, stretches_of_prompt},
    },
    workspace::Workspace,
};

impl Workspace {
    /// Returns what the agent did for a prompt, with a patch within limits. Returns `None` if the checkpoint is not that
    /// of a prompt.
    ///
    /// The steps are joined as far as nothing came in between. The patch has the stretches in their order, so a file can
    /// appear several times in it.
    pub fn work_for(&self, id: &CheckpointId, scope: &Scope, limits: &PatchLimits<'_>) -> Result<Option<Diff>> {
        let store = self.existing_store()?;
        let timeline = store.timeline()?;
        let prompt = timeline.require(id)?;
        if prompt.kind != Kind::Turn {
            return Ok(None);
        }
        let stretches = stretches_of_prompt(&timeline, prompt);
        let last = stretches.last().map_or(*id, |stretch| stretch.last);
        let checkpoints = Checkpoints::on(&store, timeline);
        let mut work = Diff::without_changes(Some(*id), Some(last));
        let mut joined: BTreeMap<WorkspacePath, Change> = BTreeMap::new();
        for stretch in &stretches {
            let changes = changes_in(&checkpoints, stretch, scope)?;
            let (changes, patch) = written(changes, &LineSource::stored(&store), limits)?;
            changes.into_iter().for_each(|change| join(&mut joined, change));
            work.append(patch);
        }
        work.changes = joined.into_values().filter(|change| change.old != change.new).collect();
        Ok(Some(work))
    }
}

/// Returns the agent's changes in a stretch.
fn changes_in(checkpoints: &Checkpoints<'_>, stretch: &WorkStretch, scope: &Scope) -> Result<Vec<Change>> {
    let last = checkpoints.get(&stretch.last)?;
    let mut changes = match stretch.before {
        Some(before) => checkpoints.changes_between(Some(&checkpoints.get(&before)?), &last, scope)?,
        None => checkpoints.changes_of(&last, scope)?.1,
    };
    changes.retain(|change| stretch.is_own(&change.path));
    Ok(changes)
}

/// Adds a later change of the same path to an earlier one.
fn join(joined: &mut BTreeMap<WorkspacePath, Change>, later: Change) {
    let Some(earlier) = joined.remove(&later.path) else {
        joined.insert(later.path.clone(), later);
        return;
    };
    let change = Change {
        insertions: earlier.insertions + later.insertions,
        deletions: earlier.deletions + later.deletions,
        binary: earlier.binary || later.binary,
        ..Change::between(later.path, earlier.old, later.new)
    };
    joined.insert(change.path.clone(), change);
}
