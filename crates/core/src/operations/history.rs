//! Lists every version of one path.

use crate::{
    error::{Error, Result},
    model::{Change, ChangeStatus, CheckpointId, Kind, Node, Scope, Side, WorkspacePath},
    operations::diff::{LineSource, Tree, compare_within, count_lines},
    spans::{Outcome, operation, read_span},
    store::{RecordedPaths, Store, StoredNode, Timeline, TimelineEntry},
    workspace::Workspace,
};

/// One version of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// The first checkpoint that has this version.
    pub checkpoint: CheckpointId,
    /// The change to the path at that checkpoint.
    pub status: ChangeStatus,
    /// The size in bytes. `None` if the path is gone or a directory.
    pub bytes: Option<u64>,
    /// The number of inserted lines.
    pub insertions: u64,
    /// The number of deleted lines.
    pub deletions: u64,
    /// Set if the content is not text.
    pub binary: bool,
    /// Set if it is the version of a safety checkpoint, which captured unsaved work before a restore.
    pub safety: bool,
}

/// The state of a path on disk, compared with the versions in checkpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OnDisk {
    /// The version of these checkpoints is on disk.
    As(Vec<CheckpointId>),
    /// A version that no checkpoint has is on disk.
    Unsaved,
    /// Nothing is there.
    Gone,
    /// Something is there that checkpoints skip.
    LeftOut,
}

impl Workspace {
    /// Returns the versions of a path, newest first, deletions included. Versions of safety checkpoints are omitted,
    /// unless there are no others.
    pub fn history(&self, path: &WorkspacePath) -> Result<Vec<Version>> {
        let mut versions = self.history_with_safety(path)?;
        if versions.iter().any(|version| !version.safety) {
            versions.retain(|version| !version.safety);
        }
        Ok(versions)
    }

    /// Like [`Workspace::history`], but includes versions that only safety checkpoints have.
    pub fn history_with_safety(&self, path: &WorkspacePath) -> Result<Vec<Version>> {
        let span = read_span!(self.store_directory(), "history", versions);
        let versions = operation(&span, || self.versions_of(path))?;
        Outcome::on(&span).count("versions", versions.len());
        Ok(versions)
    }

    fn versions_of(&self, path: &WorkspacePath) -> Result<Vec<Version>> {
        let unknown = || Error::UnknownPath { path: path.clone(), place: "any checkpoint".into() };
        let store = self.store()?.ok_or_else(unknown)?;
        let timeline = store.timeline()?;
        let mut found = Vec::new();
        for entry in timeline.entries().iter().rev() {
            if may_have_changed(entry, path)
                && let Some(version) = version_at(&store, &timeline, entry, path)?
            {
                found.push(version);
            }
        }
        let saved: Vec<Option<StoredNode>> =
            found.iter().filter(|(version, _)| !version.safety).map(|(_, node)| *node).collect();
        found.retain(|(version, node)| !version.safety || node.is_some() && !saved.contains(node));
        if found.is_empty() { Err(unknown()) } else { Ok(found.into_iter().map(|(version, _)| version).collect()) }
    }

    /// Compares the path on disk with these versions of it.
    pub fn path_on_disk(&self, path: &WorkspacePath, versions: &[Version]) -> Result<OnDisk> {
        let store = self.existing_store()?;
        let scope = Scope::of_paths(vec![path.clone()]);
        let present = self.scan_for_reading(Some(&store), &scope)?;
        if !path.is_root() {
            match present.root.find(path) {
                None => return Ok(OnDisk::Gone),
                Some(Node::Skipped(..)) => return Ok(OnDisk::LeftOut),
                Some(_) => {}
            }
        }
        let scanned = || Tree::Scanned(&present.root, present.id_defaults().unwrap_or_default());
        let all = compare_within(&scope, Some(&store), Tree::Empty, scanned())?.changes;
        let file = all.iter().find(|change| change.path == *path).and_then(|change| change.new);
        let file = file.filter(|side| side.content().is_some());
        let is_same = |version: &Version| -> Result<bool> {
            let stored = store.snapshot(&version.checkpoint)?;
            if file.is_some() {
                return Ok(store.find(stored, path)?.as_ref().map(side) == file);
            }
            let found = compare_within(&scope, Some(&store), Tree::Stored(stored), scanned())?;
            Ok(!found.changes.iter().any(|change| scope.contains(&change.path)))
        };
        let mut same = Vec::new();
        for version in versions.iter().filter(|version| version.status != ChangeStatus::Deleted) {
            if is_same(version)? {
                same.push(version.checkpoint);
            }
        }
        Ok(if same.is_empty() { OnDisk::Unsaved } else { OnDisk::As(same) })
    }
}

/// Returns whether a checkpoint may have changed the path. `false` means that its record rules that out.
pub(crate) fn may_have_changed(entry: &TimelineEntry, path: &WorkspacePath) -> bool {
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
) -> Result<Option<(Version, Option<StoredNode>)>> {
    let now = store.find(store.snapshot(&entry.id)?, path)?;
    let before = match entry.parent.and_then(|parent| timeline.nearest(parent)) {
        Some(parent) => store.find(store.snapshot(&parent.id)?, path)?,
        None => None,
    };
    if before == now {
        return Ok(None);
    }
    let mut changes = [Change::between(path.clone(), before.as_ref().map(side), now.as_ref().map(side))];
    count_lines(&mut changes, &LineSource::stored(store))?;
    let [change] = changes;
    let status = match (&before, &now) {
        // Something in the directory differs, or its permission bits do.
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
    let safety = entry.kind == Kind::Safety;
    Ok(Some((Version { checkpoint: entry.id, status, bytes, insertions, deletions, binary, safety }, now)))
}

fn side(node: &StoredNode) -> Side {
    match node {
        StoredNode::File { content, mode } => Side::File { content: *content, mode: *mode },
        StoredNode::Symlink { target } => Side::Symlink { target: *target },
        StoredNode::Directory { mode, .. } => Side::Directory { mode: *mode },
    }
}
