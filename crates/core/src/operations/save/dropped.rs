//! Paths whose protection ended: the previous checkpoint held them, they are still on disk, and a new one can't hold
//! them.

use super::Capture;
use crate::{
    error::Result,
    model::{CheckpointId, Dropped, Node, Reason, Scope, Skipped, WorkspacePath},
    operations::diff::Comparison,
    spans::{Outcome, operation, read_span},
    store::{Store, TimelineEntry},
    workspace::{
        Workspace,
        held::{dropped_by, held_among},
    },
};

impl Workspace {
    /// Returns the paths that a checkpoint held once, that are on disk, and that a checkpoint taken now could not hold.
    ///
    /// A path that the owner excluded is not among them.
    pub fn unprotected(&self) -> Result<Vec<Skipped>> {
        let span = read_span!(self.store_directory(), "unprotected", paths);
        let paths = operation(&span, || self.find_unprotected())?;
        Outcome::on(&span).count("paths", paths.len());
        Ok(paths)
    }

    fn find_unprotected(&self) -> Result<Vec<Skipped>> {
        let Some(store) = self.store()? else { return Ok(Vec::new()) };
        let timeline = store.timeline()?;
        let Some(current) = timeline.current() else { return Ok(Vec::new()) };
        let present = self.scan_for_reading(Some(&store), &Scope::Whole)?;
        let earlier = dropped_by(&store, current)?.into_iter().filter_map(|dropped| {
            let reason = present.root.skipped_at(&dropped.path).filter(|reason| *reason != Reason::Ignored)?;
            Some(Skipped { path: dropped.path, reason })
        });
        let mut found = held_among(&store, &current.id, &present.told_skipped())?;
        found.extend(earlier);
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found.dedup_by(|a, b| a.path == b.path);
        Ok(found)
    }

    /// Returns the paths on disk that a restore of this checkpoint can't bring back: the checkpoint, or one before it,
    /// dropped them.
    pub fn unprotected_at(&self, id: &CheckpointId) -> Result<Vec<Dropped>> {
        let Some(store) = self.store()? else { return Ok(Vec::new()) };
        let timeline = store.timeline()?;
        let Some(entry) = timeline.get(id) else { return Ok(Vec::new()) };
        let mut dropped = dropped_by(&store, entry)?;
        dropped.retain(|dropped| self.is_on_disk(&dropped.path));
        Ok(dropped)
    }

    /// Returns the paths that these checkpoints dropped: the one before held them, and the checkpoint could not capture
    /// them. Checkpoints that were deleted have none.
    pub fn dropped_by(&self, ids: &[CheckpointId]) -> Result<Vec<Skipped>> {
        let Some(store) = self.store()? else { return Ok(Vec::new()) };
        let timeline = store.timeline()?;
        let mut found = Vec::new();
        for entry in ids.iter().filter_map(|id| timeline.get(id)) {
            let Some(record) = entry.record().filter(|record| record.dropped > 0) else { continue };
            let new = dropped_by(&store, entry)?.into_iter().filter(|dropped| Some(dropped.held_by) == record.parent);
            found.extend(new.map(|dropped| Skipped { path: dropped.path, reason: dropped.reason }));
        }
        Ok(found)
    }
}

impl Capture {
    /// Returns what is not protected once this capture is a checkpoint: what it drops, and what was dropped before and
    /// still can't be captured.
    pub(super) fn dropped(
        &self,
        store: &Store,
        current: Option<&TimelineEntry>,
        found: &Comparison,
    ) -> Result<Vec<Dropped>> {
        let Some(current) = current else { return Ok(Vec::new()) };
        let mut dropped = dropped_by(store, current)?;
        dropped.retain_mut(|dropped| self.still_drops(dropped));
        let new = found.left_out.iter().filter_map(|path| {
            let reason = self.drop_reason(path)?;
            Some(Dropped { path: path.clone(), reason, held_by: current.id })
        });
        dropped.extend(new);
        dropped.sort_by(|a, b| a.path.cmp(&b.path));
        dropped.dedup_by(|a, b| a.path == b.path);
        Ok(dropped)
    }

    fn still_drops(&self, dropped: &mut Dropped) -> bool {
        let reason = self.drop_reason(&dropped.path);
        dropped.reason = reason.unwrap_or(dropped.reason);
        reason.is_some()
    }

    /// Returns why a path that is on disk is not captured. Returns `None` if it is captured, gone, or excluded by its
    /// owner: only the owner's own patterns end the capture of a path that was held.
    fn drop_reason(&self, path: &WorkspacePath) -> Option<Reason> {
        self.scan.root.skipped_at(path).filter(|reason| *reason != Reason::Ignored)
    }
}

/// Files that are captured only because the previous checkpoint holds them, although a rule names them by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StillCaptured {
    /// The path that the rule names: a file, or a directory above the files.
    pub path: WorkspacePath,
    /// The number of files at or below it.
    pub files: usize,
    /// Set if it is a directory.
    pub is_directory: bool,
}

impl Capture {
    /// Returns the files that are still captured although a rule names them, grouped by the path that the rule names.
    pub(super) fn still_captured(&self, max_file_bytes: u64) -> Vec<StillCaptured> {
        let mut groups: Vec<StillCaptured> = Vec::new();
        for (named, path) in self.scan.held() {
            // A file over the size limit is not a matter of rules.
            if matches!(self.scan.root.find(&path), Some(Node::File(file)) if file.stamp.size > max_file_bytes) {
                continue;
            }
            match groups.last_mut().filter(|group| group.path == named) {
                Some(group) => group.files += 1,
                None => groups.push(StillCaptured { is_directory: named != path, path: named, files: 1 }),
            }
        }
        groups
    }
}
