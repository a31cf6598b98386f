//! Every version of one path.

use crate::{
    cat::find_stored,
    error::{Error, Result},
    model::{ChangeStatus, CheckpointId, Kind, WorkspacePath},
    store::{RecordedPaths, Store, StoredNode, Timeline, TimelineEntry},
    workspace::Workspace,
};

/// One version of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The checkpoint that has it first.
    pub checkpoint: CheckpointId,
    /// What happened to the path there.
    pub status: ChangeStatus,
    /// How many bytes it has; none where it is gone or a directory.
    pub bytes: Option<u64>,
}

impl Workspace {
    /// The versions of a path, newest first, deletions included.
    pub fn history(&self, path: &WorkspacePath) -> Result<Vec<Version>> {
        let unknown = || Error::UnknownPath { path: path.clone(), place: "any checkpoint".into() };
        let store = self.store()?.ok_or_else(unknown)?;
        let timeline = store.timeline()?;
        let mut versions = Vec::new();
        for entry in timeline.entries().iter().rev().filter(|entry| entry.kind != Kind::Safety) {
            if may_have_changed(entry, path)
                && let Some(version) = version_at(&store, &timeline, entry, path)?
            {
                versions.push(version);
            }
        }
        if versions.is_empty() { Err(unknown()) } else { Ok(versions) }
    }
}

/// Can its record rule out that it changed the path?
fn may_have_changed(entry: &TimelineEntry, path: &WorkspacePath) -> bool {
    match entry.record().as_deref().map(|record| &record.changed) {
        Some(RecordedPaths::Here(changed)) => {
            changed.iter().any(|changed| changed.is_within(path) || path.is_within(changed))
        }
        _ => true,
    }
}

fn version_at(
    store: &Store,
    timeline: &Timeline,
    entry: &TimelineEntry,
    path: &WorkspacePath,
) -> Result<Option<Version>> {
    let now = find_stored(store, store.snapshot(&entry.id)?, path)?;
    let before = match entry.parent.and_then(|parent| timeline.nearest(parent)) {
        Some(parent) => find_stored(store, store.snapshot(&parent.id)?, path)?,
        None => None,
    };
    let status = match (&before, &now) {
        (None, None) => return Ok(None),
        (Some(before), Some(now)) if before == now => return Ok(None),
        (None, Some(_)) => ChangeStatus::Added,
        (Some(_), None) => ChangeStatus::Deleted,
        (Some(before), Some(now)) => status_between(before, now),
    };
    let bytes = match now {
        Some(StoredNode::File { content, .. } | StoredNode::Symlink { target: content }) => {
            Some(store.content_size(&store.reader(), &content)?)
        }
        _ => None,
    };
    Ok(Some(Version { checkpoint: entry.id, status, bytes }))
}

fn status_between(before: &StoredNode, now: &StoredNode) -> ChangeStatus {
    match (before, now) {
        (StoredNode::File { content: before, .. }, StoredNode::File { content: now, .. }) if before == now => {
            ChangeStatus::ModeChanged
        }
        (StoredNode::File { .. }, StoredNode::File { .. })
        | (StoredNode::Symlink { .. }, StoredNode::Symlink { .. })
        | (StoredNode::Directory { .. }, StoredNode::Directory { .. }) => ChangeStatus::Modified,
        _ => ChangeStatus::TypeChanged,
    }
}
