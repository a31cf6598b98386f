//! Every version of one path.

use crate::{
    cat::find_stored,
    diff::{LineSource, count_lines},
    error::{Error, Result},
    model::{Change, ChangeStatus, CheckpointId, Kind, Side, WorkspacePath},
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
    /// Lines that came.
    pub insertions: u64,
    /// Lines that went.
    pub deletions: u64,
    /// Are the bytes no text?
    pub binary: bool,
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
    if before == now {
        return Ok(None);
    }
    let mut changes = [Change::between(path.clone(), before.as_ref().map(side), now.as_ref().map(side))];
    count_lines(&mut changes, &LineSource::stored(store))?;
    let [change] = changes;
    let status = match (&before, &now) {
        // Something in it differs, or its permission bits.
        (Some(StoredNode::Directory { .. }), Some(StoredNode::Directory { .. })) => ChangeStatus::Modified,
        _ => change.status,
    };
    let bytes = match now {
        Some(StoredNode::File { content, .. } | StoredNode::Symlink { target: content }) => {
            Some(store.content_size(&store.reader(), &content)?)
        }
        _ => None,
    };
    let Change { insertions, deletions, binary, .. } = change;
    Ok(Some(Version { checkpoint: entry.id, status, bytes, insertions, deletions, binary }))
}

fn side(node: &StoredNode) -> Side {
    match node {
        StoredNode::File { content, mode } => Side::File { content: *content, mode: *mode },
        StoredNode::Symlink { target } => Side::Symlink { target: *target },
        StoredNode::Directory { mode, .. } => Side::Directory { mode: *mode },
    }
}
