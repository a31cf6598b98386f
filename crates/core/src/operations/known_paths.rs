//! Tells whether a path is in any checkpoint.

use std::collections::BTreeSet;

use crate::{
    error::{Error, Result},
    model::WorkspacePath,
    store::{RecordedPaths, Store, Timeline},
    workspace::Workspace,
};

impl Workspace {
    /// Returns an error for a path that is not on disk, as the caller has found out, and in no checkpoint. Before the
    /// first checkpoint every path is accepted.
    pub fn refuse_unknown_path(&self, path: &WorkspacePath) -> Result<()> {
        let Some(store) = self.store()? else { return Ok(()) };
        let timeline = store.timeline()?;
        if path.is_root() || timeline.entries().len() == 0 || is_held(&store, &timeline, path)? {
            return Ok(());
        }
        Err(Error::UnknownPath { path: path.clone(), place: "any checkpoint, and not on disk".into() })
    }

    /// Returns the path in a checkpoint that is closest to a path that does not exist: the same name elsewhere, or a
    /// similar spelling. Returns `None` if none is close.
    pub fn nearest_path(&self, path: &WorkspacePath) -> Result<Option<WorkspacePath>> {
        let Some(store) = self.store()? else { return Ok(None) };
        let wanted = path.to_text();
        let mut known: BTreeSet<WorkspacePath> = BTreeSet::new();
        for entry in store.timeline()?.entries().iter() {
            let Some(record) = entry.record() else { continue };
            for changed in record.changed.here() {
                known.extend(changed.ancestors().filter(|above| !above.is_root()));
                known.insert(changed.clone());
            }
        }
        let distance = |known: &WorkspacePath| {
            let spelling = strsim::damerau_levenshtein(&known.to_text(), &wanted);
            let limit = (wanted.chars().count() / 4).clamp(1, 4);
            let is_elsewhere = known.name() == path.name();
            (spelling <= limit || is_elsewhere).then_some((spelling > limit, spelling))
        };
        let others = known.into_iter().filter(|known| known != path);
        let near = others.filter_map(|known| Some((distance(&known)?, known)));
        Ok(near.min().map(|(_, known)| known))
    }
}

/// Returns whether a checkpoint holds something at a path, or changed something there.
fn is_held(store: &Store, timeline: &Timeline, path: &WorkspacePath) -> Result<bool> {
    // Paths that no checkpoint changed since are in the current one. The checkpoints that changed a path may be deleted:
    // the oldest one that is left holds it then.
    let ends = [timeline.current(), timeline.entries().iter().next()];
    for entry in ends.into_iter().flatten() {
        if store.find(store.snapshot(&entry.id)?, path)?.is_some() {
            return Ok(true);
        }
    }
    for entry in timeline.entries().iter().rev() {
        let is_here = match entry.record().as_deref().map(|record| &record.changed) {
            Some(RecordedPaths::Here(changed)) => changed.iter().any(|changed| changed.is_within(path)),
            _ => store.find(store.snapshot(&entry.id)?, path)?.is_some(),
        };
        if is_here {
            return Ok(true);
        }
    }
    Ok(false)
}
