//! Finds files that the checkpoint of a prompt lacks because a rule skips them, and that a step captured before a tool
//! of that prompt changed them.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    error::Result,
    model::{Author, CheckpointId, Kind, WorkspacePath},
    store::{Record, Snapshot, Store, StoredNode, Timeline, TimelineEntry},
    workspace::{Workspace, skipped::SkippedByCheckpoint},
};

/// A file that a step captured before a tool ran, and that an earlier checkpoint does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapturedLater {
    /// The path.
    pub path: WorkspacePath,
    /// The first checkpoint that holds it.
    pub checkpoint: CheckpointId,
    /// Set if no earlier tool call can have created the file. Otherwise it may not have existed at the earlier
    /// checkpoint.
    pub is_certain: bool,
}

impl Workspace {
    /// Returns the files that the checkpoint of a prompt skipped and that steps since then captured before their tools
    /// ran. Files that a tool call is known to have created are omitted.
    pub fn captured_later(&self, turn: &CheckpointId) -> Result<Vec<CapturedLater>> {
        let store = self.existing_store()?;
        let timeline = store.timeline()?;
        let target = timeline.require(turn)?;
        let held = store.snapshot(turn)?;
        let mut left_out = SkippedByCheckpoint::of(&store, turn)?;
        let mut found = Vec::new();
        for (path, step) in first_captured(&timeline, target) {
            let is_missing = left_out.covers(&path, false)?
                && store.find(held, &path)?.is_none()
                && !is_below_a_file(&store, held, &path)?
                && store.find(store.snapshot(&step.id)?, &path)?.is_some();
            if is_missing {
                let is_certain = is_first_call(&timeline, target, step);
                found.push(CapturedLater { path, checkpoint: step.id, is_certain });
            }
        }
        Ok(found)
    }
}

/// Returns the paths that steps since the target captured in spite of a rule, each with the first such step. Paths that
/// were first captured after a tool had run are omitted: the tool created them.
fn first_captured<'t>(timeline: &'t Timeline, target: &TimelineEntry) -> BTreeMap<WorkspacePath, &'t TimelineEntry> {
    let line = std::iter::successors(timeline.current(), |entry| timeline.nearest(entry.parent?));
    let mut since: Vec<&TimelineEntry> = line.take_while(|entry| entry.sequence > target.sequence).collect();
    since.reverse();
    let included = |entry: &TimelineEntry| entry.record().map(|record| record.included.clone()).unwrap_or_default();
    let mut seen: BTreeSet<WorkspacePath> = included(target).into_iter().collect();
    let mut found = BTreeMap::new();
    for entry in since {
        let is_before_tool = entry.kind == Kind::Step && author(entry) != Some(Author::Agent);
        for path in included(entry) {
            if seen.insert(path.clone()) && is_before_tool {
                found.insert(path, entry);
            }
        }
    }
    found
}

fn author(entry: &TimelineEntry) -> Option<Author> {
    entry.record().and_then(|record| record.origin.author)
}

/// Returns whether a snapshot holds a file or symlink in the place of a directory above the path.
fn is_below_a_file(store: &Store, held: Snapshot, path: &WorkspacePath) -> Result<bool> {
    for above in path.ancestors().filter(|above| !above.is_root()) {
        if store.find(held, &above)?.is_some_and(|node| !matches!(node, StoredNode::Directory { .. })) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns whether a step is the first one that its session counted since the target.
fn is_first_call(timeline: &Timeline, target: &TimelineEntry, step: &TimelineEntry) -> bool {
    let Some(record) = step.record() else { return false };
    let is_of_session = |other: &Record| other.origin.session == record.origin.session;
    let earlier = timeline.entries().iter().filter(|entry| entry.sequence < target.sequence);
    let counted = earlier.filter_map(|entry| entry.record()).filter(|other| is_of_session(other));
    let last = counted.filter_map(|other| other.origin.step).max().unwrap_or(0);
    record.origin.step == Some(last + 1)
}
