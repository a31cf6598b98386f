//! Walks from a version of a file to the versions before it.

use super::{LineOrigin, line_map::PendingLines, renames::former_of};
use crate::{
    error::Result,
    model::{Change, CheckpointId, ContentId, Kind, Scope, WorkspacePath},
    operations::{diff::Checkpoints, history::may_have_changed},
    store::{ObjectReader, Store, StoredNode, Timeline, TimelineEntry},
    text::{MAX_TEXT_BYTES, is_binary},
    workspace::Workspace,
};

/// The version of a file at which a walk starts.
pub(super) struct BlameStep<'c> {
    pub(super) path: WorkspacePath,
    /// The checkpoint. `None` for the file on disk.
    pub(super) at: Option<CheckpointId>,
    pub(super) content: &'c [u8],
}

/// A version of the file in a checkpoint.
struct FileVersion {
    path: WorkspacePath,
    content: ContentId,
    /// The bytes. They are read when they are needed, because most checkpoints did not change the file.
    bytes: Option<Vec<u8>>,
}

/// A walk along the parents.
pub(super) struct BlameWalk<'w> {
    workspace: &'w Workspace,
    store: &'w Store,
    reader: ObjectReader,
    timeline: Timeline,
    found: Origins,
}

/// The origins of lines, each with its lines.
pub(super) type Origins = Vec<(LineOrigin, Vec<u32>)>;

impl<'w> BlameWalk<'w> {
    pub(super) fn new(workspace: &'w Workspace, store: &'w Store) -> Result<Self> {
        let (reader, timeline) = (store.reader(), store.timeline()?);
        Ok(Self { workspace, store, reader, timeline, found: Vec::new() })
    }

    /// Returns the origins of the pending lines. Lines that only the disk has are not in the result.
    pub(super) fn origins(mut self, start: BlameStep<'_>, mut pending: PendingLines) -> Result<Origins> {
        let timeline = std::mem::take(&mut self.timeline);
        let first = match &start.at {
            Some(id) => {
                let entry = timeline.require(id)?;
                let version = self.version(entry, &start.path)?;
                version.map(|version| (entry, version))
            }
            None => match timeline.current() {
                Some(entry) => self.leave_disk(entry, &start, &mut pending)?.map(|version| (entry, version)),
                None => None,
            },
        };
        let Some((mut entry, mut version)) = first else { return Ok(self.found) };
        while !pending.is_empty() {
            let parent = entry.parent.and_then(|parent| timeline.nearest(parent));
            let is_direct = entry.parent == parent.map(|parent| parent.id);
            let Some(parent) = parent else {
                self.blame(&timeline, entry, &version.path, !is_direct, pending.take_all())?;
                break;
            };
            // A checkpoint whose parent was deleted holds the changes of the deleted one as well.
            if is_direct && !may_have_changed(entry, &version.path) {
                entry = parent;
                continue;
            }
            let Some(older) = self.before(entry, parent, &mut version)? else {
                self.blame(&timeline, entry, &version.path, !is_direct, pending.take_all())?;
                break;
            };
            if older.content != version.content {
                let introduced = self.compare(&mut version, older, &mut pending)?;
                self.blame(&timeline, entry, &introduced.0, !is_direct, introduced.1)?;
            } else {
                version.path = older.path;
            }
            entry = parent;
        }
        Ok(self.found)
    }

    /// Moves from the file on disk to the checkpoint that the workspace stands on. Lines that only the disk has are
    /// dropped. Returns `None` if the checkpoint does not hold the file, under any path.
    fn leave_disk(
        &self,
        entry: &TimelineEntry,
        start: &BlameStep<'_>,
        pending: &mut PendingLines,
    ) -> Result<Option<FileVersion>> {
        let found = match self.version(entry, &start.path)? {
            Some(version) => Some(version),
            None => {
                let changes = self.workspace.status(None)?.changes;
                self.moved_from(&changes, &start.path, start.content, None)?
            }
        };
        let Some(mut version) = found else { return Ok(None) };
        let bytes = self.bytes_of(&version.content)?;
        drop(pending.move_to(&bytes, start.content));
        version.bytes = Some(bytes);
        Ok(Some(version))
    }

    /// Returns the version that a checkpoint's parent has, under the same path or under the one that the checkpoint
    /// moved it from.
    fn before(
        &self,
        entry: &TimelineEntry,
        parent: &TimelineEntry,
        version: &mut FileVersion,
    ) -> Result<Option<FileVersion>> {
        if let Some(older) = self.version(parent, &version.path)? {
            return Ok(Some(older));
        }
        let checkpoints = Checkpoints::of(self.store);
        let (newer, older) = (checkpoints.get(&entry.id)?, checkpoints.get(&parent.id)?);
        let changes = checkpoints.changes_between(Some(&older), &newer, &Scope::Whole)?;
        let (path, content) = (version.path.clone(), version.content);
        self.moved_from(&changes, &path, self.read(version)?, Some(content))
    }

    fn moved_from(
        &self,
        changes: &[Change],
        path: &WorkspacePath,
        bytes: &[u8],
        content: Option<ContentId>,
    ) -> Result<Option<FileVersion>> {
        let former = former_of(self.store, &self.reader, changes, path, bytes, content)?;
        Ok(former.map(|former| FileVersion { path: former.path, content: former.content, bytes: None }))
    }

    /// Moves to an older version with other content. Returns the path of the newer one, and the lines that it
    /// introduced.
    fn compare(
        &self,
        version: &mut FileVersion,
        mut older: FileVersion,
        pending: &mut PendingLines,
    ) -> Result<(WorkspacePath, Vec<u32>)> {
        let newer = self.read(version)?;
        let before = self.read(&mut older)?;
        let introduced = pending.move_to(before, newer);
        Ok((std::mem::replace(version, older).path, introduced))
    }

    /// Returns the version at a checkpoint. Returns `None` if no file is at this path.
    fn version(&self, entry: &TimelineEntry, path: &WorkspacePath) -> Result<Option<FileVersion>> {
        Ok(match self.store.find(self.store.snapshot(&entry.id)?, path)? {
            Some(StoredNode::File { content, .. }) => Some(FileVersion { path: path.clone(), content, bytes: None }),
            _ => None,
        })
    }

    fn read<'v>(&self, version: &'v mut FileVersion) -> Result<&'v [u8]> {
        match &mut version.bytes {
            Some(bytes) => Ok(bytes),
            empty => Ok(empty.insert(self.bytes_of(&version.content)?)),
        }
    }

    /// Returns the bytes of a version. A version that is not text has no lines in common with one that is.
    fn bytes_of(&self, content: &ContentId) -> Result<Vec<u8>> {
        if self.store.content_size(&self.reader, content)? > MAX_TEXT_BYTES {
            return Ok(Vec::new());
        }
        let bytes = self.store.content(&self.reader, content)?;
        Ok(if is_binary(&bytes) { Vec::new() } else { bytes })
    }

    fn blame(
        &mut self,
        timeline: &Timeline,
        entry: &TimelineEntry,
        path: &WorkspacePath,
        approximate: bool,
        lines: Vec<u32>,
    ) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let checkpoint = self.store.summary(entry)?;
        let prompt = checkpoint.origin.prompt.clone().or_else(|| prompt_of(timeline, entry));
        self.found.push((LineOrigin { checkpoint, path: path.clone(), prompt, approximate }, lines));
        Ok(())
    }
}

/// Returns the prompt of the checkpoint's turn, from the checkpoint of that prompt.
fn prompt_of(timeline: &Timeline, entry: &TimelineEntry) -> Option<String> {
    let record = entry.record()?;
    record.origin.turn?;
    let of_turn = |other: &&TimelineEntry| {
        other.kind == Kind::Turn
            && other.record().is_some_and(|other| {
                other.origin.session == record.origin.session && other.origin.turn == record.origin.turn
            })
    };
    timeline.entries().iter().rev().find(of_turn)?.record()?.origin.prompt.clone()
}
