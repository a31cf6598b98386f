//! Finds what the last checkpoints of a watcher recorded without being asked.

use std::time::Duration;

use crate::{
    error::Result,
    model::{ChangeStatus, CheckpointId, Kind, Scope, WorkspacePath},
    operations::diff::PatchLimits,
    workspace::Workspace,
};

/// Checkpoints of a watcher within this time of the last one count as one stretch of work.
const STRETCH: Duration = Duration::from_secs(600);

/// Files that are not in the checkpoint under the workspace as they were before a watcher took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedChanges {
    /// The last checkpoint before.
    pub before: CheckpointId,
    /// Files that were deleted since.
    pub deleted: Vec<WorkspacePath>,
    /// Files that were changed since.
    pub changed: Vec<WorkspacePath>,
}

impl Workspace {
    /// Returns what the last checkpoints of a watcher deleted or changed. Returns `None` if the workspace does not stand
    /// on one, or if they only added files.
    pub fn watched_changes(&self) -> Result<Option<WatchedChanges>> {
        let Some(store) = self.store()? else { return Ok(None) };
        let timeline = store.timeline()?;
        let Some(current) = timeline.current().filter(|entry| entry.kind == Kind::Watch) else { return Ok(None) };
        let (mut oldest, mut before) = (current, None);
        while let Some(parent) = oldest.parent.and_then(|parent| timeline.get(&parent)) {
            before = Some(parent.id);
            let age = current.time.saturating_sub(parent.time);
            if parent.kind != Kind::Watch || age > STRETCH.as_millis() as i64 {
                break;
            }
            oldest = parent;
        }
        let Some(before) = before else { return Ok(None) };
        let diff = self.diff_within(Some(before), Some(current.id), &Scope::Whole, &PatchLimits::NO_PATCH)?;
        let with = |is_wanted: fn(ChangeStatus) -> bool| -> Vec<WorkspacePath> {
            let wanted = diff.changes.iter().filter(|change| is_wanted(change.status));
            wanted.map(|change| change.path.clone()).collect()
        };
        let deleted = with(|status| status == ChangeStatus::Deleted);
        let changed = with(|status| !matches!(status, ChangeStatus::Deleted | ChangeStatus::Added));
        Ok((!deleted.is_empty() || !changed.is_empty()).then_some(WatchedChanges { before, deleted, changed }))
    }
}
