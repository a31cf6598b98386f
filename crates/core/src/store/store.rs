//! The store itself: opening, locking, publishing.
//!
//! What changes a store hangs on a [`Writer`], which holds the lock. A checkpoint is [`Unpublished`] until its ref is
//! durable; the order of the steps is that of `docs/store-format.md`.

use std::{
    io,
    ops::Deref,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gix_hash::ObjectId;

use super::{
    Area, FoundJournal, Journal, Layout, OpenStores, Operation, Record, State, Timeline, compact,
    format::{self, Format, IdentityFile},
    journal,
    objects::{ObjectKind, ObjectProblem, ObjectReader, Objects, bytes_of, object_id},
    operations,
    pack::PackWriter,
    record::RecordedPaths,
    refs::{self, Removed},
    reindex::{self, Which},
    repack,
    snapshot::{self, Snapshot, StoredEntry},
    state::StoredState,
    steps, timeline,
};
use crate::{
    disk::{
        lock::{FileLock, LockError},
        private::{self, Durability},
    },
    error::{Error, Result, While},
    model::{Checkpoint, CheckpointId, ContentId, Directory, DirectoryIds, ModeDefaults, Scope, TreeId},
};

/// Loose refs are packed when there are so many.
const MANY_REFS: usize = 100;

/// A store that can be read. Readers wait for nobody.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    layout: Layout,
    objects: Objects,
    unknown_to_write: Option<String>,
    /// Damage was met: what the store has already is not relied on any more.
    is_distrusted: Arc<AtomicBool>,
}

impl Store {
    /// Opens a store; none where there is none.
    pub(crate) fn open(directory: &Path) -> Result<Option<Self>> {
        Self::open_with(directory, |layout| Objects::at(&layout.objects()))
    }

    /// Opens a store, or takes the one that is kept open.
    pub(crate) fn open_kept(directory: &Path, kept: &OpenStores) -> Result<Option<Self>> {
        Self::open_with(directory, |layout| kept.objects(layout))
    }

    fn open_with(directory: &Path, objects: impl Fn(&Layout) -> io::Result<Objects>) -> Result<Option<Self>> {
        let layout = Layout::new(directory);
        let Some(format) = Format::read(&layout)? else { return Ok(None) };
        let objects = objects(&layout).or_fail("open the objects of", directory)?;
        let unknown_to_write = format.unknown_to_write;
        Ok(Some(Self { layout, objects, unknown_to_write, is_distrusted: Arc::default() }))
    }

    /// From here on nothing that the store has is relied on: everything is read from the workspace and written again.
    pub(crate) fn distrust(&self) {
        self.is_distrusted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_distrusted(&self) -> bool {
        self.is_distrusted.load(Ordering::Relaxed)
    }

    /// The snapshot that the workspace stands on; none where there is none, or it is damaged.
    pub(crate) fn standing(&self, timeline: &Timeline) -> Result<Option<Snapshot>> {
        if self.is_distrusted() {
            return Ok(None);
        }
        timeline.current().map(|entry| self.snapshot(&entry.id)).transpose()
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn reader(&self) -> ObjectReader {
        self.objects.reader()
    }

    /// All checkpoints, as the refs have them now.
    pub(crate) fn timeline(&self) -> Result<Timeline> {
        let read_record = |id: &CheckpointId| self.read_checkpoint_commit(id).ok().map(|(_, _, record)| record);
        Timeline::load(&self.layout, &read_record).or_fail("read the timeline of", self.layout.root())
    }

    /// The snapshot of a checkpoint.
    pub(crate) fn snapshot(&self, id: &CheckpointId) -> Result<Snapshot> {
        let (tree, state, record) = self.read_checkpoint_commit(id).map_err(|problem| self.damaged(problem))?;
        let modes = match state {
            Some(state) => self.stored_state(Some(state))?.modes,
            None => None,
        };
        let ids = DirectoryIds { tree: TreeId(bytes_of(&tree)), modes };
        Ok(Snapshot { ids, defaults: record.modes })
    }

    /// What a checkpoint keeps beside its files.
    pub(crate) fn state(&self, id: &CheckpointId) -> Result<StoredState> {
        let (_, state, _) = self.read_checkpoint_commit(id).map_err(|problem| self.damaged(problem))?;
        self.stored_state(state)
    }

    fn stored_state(&self, commit: Option<ObjectId>) -> Result<StoredState> {
        match commit {
            Some(commit) => StoredState::open(&self.reader(), commit).map_err(|problem| self.damaged(problem)),
            None => Ok(StoredState::default()),
        }
    }

    /// The names in a stored directory.
    pub(crate) fn list(&self, reader: &ObjectReader, snapshot: &Snapshot) -> Result<Vec<StoredEntry>> {
        snapshot::list(reader, snapshot).map_err(|problem| self.damaged(problem))
    }

    /// The bytes of a file or the target of a symlink.
    pub(crate) fn content(&self, reader: &ObjectReader, content: &ContentId) -> Result<Vec<u8>> {
        reader.read(&object_id(content.as_bytes()), ObjectKind::Blob).map_err(|problem| self.damaged(problem))
    }

    /// Gives the bytes of a file to `take`, a large one piece by piece.
    pub(crate) fn copy_content(
        &self,
        content: &ContentId,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<io::Result<()>> {
        let id = object_id(content.as_bytes());
        self.reader().copy_blob(&id, take).map_err(|problem| self.damaged(problem))
    }

    /// How many bytes a file has.
    pub(crate) fn content_size(&self, reader: &ObjectReader, content: &ContentId) -> Result<u64> {
        reader.size(&object_id(content.as_bytes())).map_err(|problem| self.damaged(problem))
    }

    /// A checkpoint as callers see it.
    pub(crate) fn checkpoint(&self, entry: &super::TimelineEntry) -> Result<Checkpoint> {
        let record = entry.record().ok_or_else(|| {
            let id = object_id(entry.id.as_bytes());
            self.damaged(ObjectProblem::Damaged(id, "its record can't be read".into()))
        })?;
        let changed = match &record.changed {
            RecordedPaths::Here(paths) => paths.clone(),
            RecordedPaths::InState { .. } => {
                let state = self.state(&entry.id)?;
                state.changed(&self.reader()).map_err(|problem| self.damaged(problem))?
            }
        };
        Ok(Record::clone(&record).into_checkpoint(entry.id, entry.pinned, changed))
    }

    /// What lies where the journal lies.
    pub(crate) fn journal(&self) -> Result<FoundJournal> {
        journal::read(&self.layout).or_fail("read", self.layout.journal())
    }

    /// How much room it takes.
    pub(crate) fn bytes(&self) -> Result<u64> {
        private::bytes_below(self.layout.root()).or_fail("read", self.layout.root())
    }

    pub(crate) fn damaged(&self, problem: ObjectProblem) -> Error {
        Error::StoreDamaged { store: self.layout.root().to_owned(), problem: problem.to_string() }
    }

    /// The tree, the state and the record of a checkpoint.
    pub(super) fn read_checkpoint_commit(
        &self,
        id: &CheckpointId,
    ) -> Result<(ObjectId, Option<ObjectId>, Record), ObjectProblem> {
        let id = object_id(id.as_bytes());
        let reader = self.reader();
        let bytes = reader.read(&id, ObjectKind::Commit)?;
        let damaged = |why: &str| ObjectProblem::Damaged(id, why.to_owned());
        let commit = gix_object::CommitRef::from_bytes(&bytes, gix_hash::Kind::Sha1)
            .map_err(|_| damaged("it can't be parsed"))?;
        let record = Record::from_commit_message(commit.message).ok_or_else(|| damaged("it has no record"))?;
        Ok((commit.tree(), commit.parents().next(), record))
    }

    /// Waits for the lock.
    pub(crate) fn lock(directory: &Path, workspace: &Path, patience: Duration) -> Result<StoreLock> {
        let layout = Layout::new(directory);
        private::make_directories(&layout.own()).or_fail("create", layout.own())?;
        let path = layout.lock();
        match FileLock::acquire(&path, patience) {
            Ok(lock) => Ok(StoreLock { layout, lock }),
            Err(LockError::Busy) => Err(Error::Busy { path: workspace.to_owned(), seconds: patience.as_secs() }),
            Err(LockError::Unsupported) => Err(Error::NoLocks { path: directory.to_owned() }),
            Err(LockError::Io(source)) => Err(Error::Io { action: "lock", path, source }),
        }
    }
}

/// The lock on a directory that is a store, or is about to become one.
#[derive(Debug)]
pub(crate) struct StoreLock {
    layout: Layout,
    lock: FileLock,
}

impl StoreLock {
    /// The store for writing, made where it is missing; says whether it was.
    pub(crate) fn open_or_create(self, identity: &IdentityFile) -> Result<(Writer, bool)> {
        let created = Format::read(&self.layout)?.is_none();
        if created {
            format::create(&self.layout, identity)?;
        }
        let store = Store::open(self.layout.root())?
            .ok_or_else(|| Error::Internal("a store that was just made is not there".into()))?;
        if let Some(feature) = &store.unknown_to_write {
            let store = store.layout.root().to_owned();
            return Err(Error::StoreTooNew { store, feature: feature.clone() });
        }
        private::make_private(self.layout.root(), 0o700).or_fail("protect", self.layout.root())?;
        format::mend(&self.layout)?;
        sweep(&self.layout).or_fail("sweep", self.layout.root())?;
        reindex::mend(&self.layout, Which::Missing).or_fail("index the packs of", self.layout.root())?;
        Ok((Writer { store, _lock: self.lock }, created))
    }
}

/// Removes what dead processes left behind: the lock is held, so nobody living has a temporary file here.
fn sweep(layout: &Layout) -> io::Result<()> {
    let places =
        [layout.packs(), layout.checkpoint_refs(), layout.pinned_refs(), layout.own(), layout.root().to_owned()];
    for directory in places {
        for name in private::names(&directory)? {
            if name.to_string_lossy().starts_with(private::TEMPORARY_PREFIX) {
                private::remove(&directory.join(name))?;
            }
        }
    }
    Ok(())
}

/// A store whose lock is held.
#[derive(Debug)]
pub(crate) struct Writer {
    store: Store,
    _lock: FileLock,
}

impl Deref for Writer {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

/// A checkpoint that is built and not yet there.
#[must_use = "a checkpoint exists only when it is published"]
pub(crate) struct Unpublished {
    pack: PackWriter,
    id: CheckpointId,
    record: Record,
}

impl Writer {
    /// A pack for the objects of one checkpoint.
    pub(crate) fn start_pack(&self) -> PackWriter {
        if self.is_distrusted() { PackWriter::anew(&self.layout) } else { PackWriter::new(&self.layout) }
    }

    /// Puts the trees of a scanned directory into the pack.
    pub(crate) fn write_snapshot(
        &self,
        pack: &PackWriter,
        root: &mut Directory,
        defaults: &ModeDefaults,
    ) -> Result<Snapshot> {
        let ids = snapshot::write(root, defaults, pack).or_fail("write into", self.layout.objects())?;
        Ok(Snapshot { ids, defaults: *defaults })
    }

    /// Puts the checkpoint itself into the pack.
    pub(crate) fn build(
        &self,
        pack: PackWriter,
        snapshot: &Snapshot,
        state: &State,
        mut record: Record,
    ) -> Result<Unpublished> {
        record.modes = snapshot.defaults;
        let build = || -> io::Result<CheckpointId> {
            let state = state.write(snapshot.ids.modes, &pack)?;
            let message = record.to_commit_message()?;
            let tree = object_id(snapshot.ids.tree.as_bytes());
            let commit = encode_commit(&tree, state.as_ref(), record.time.div_euclid(1000), &message);
            Ok(CheckpointId(bytes_of(&pack.put_object(ObjectKind::Commit, &commit)?)))
        };
        let id = build().or_fail("write into", self.layout.objects())?;
        Ok(Unpublished { pack, id, record })
    }

    /// Makes it durable, then visible. When this returns, the checkpoint survives a power cut.
    pub(crate) fn publish(&self, checkpoint: Unpublished) -> Result<CheckpointId> {
        let Unpublished { pack, id, record } = checkpoint;
        pack.finish().or_fail("write into", self.layout.packs())?;
        refs::publish(&self.layout, &id).or_fail("publish in", self.layout.checkpoint_refs())?;
        // From here on it exists; the index over it is rebuilt from the commits should it be lost.
        timeline::append(&self.layout, id, record).or_fail("append to", self.layout.timeline())?;
        Ok(id)
    }

    /// Adds to the log of operations, durably.
    pub(crate) fn log(&self, operations: &[Operation]) -> Result<()> {
        operations::append(&self.layout, operations).or_fail("append to", self.layout.operations())
    }

    /// Counts one more step of a session that took `at_least` so many; gives its number, from 1.
    pub(crate) fn count_step(&self, session: Option<&str>, at_least: u64) -> Result<u64> {
        steps::count(&self.layout, session, at_least).or_fail("write", self.layout.steps())
    }

    /// Puts scanned paths into a stored snapshot, in place of what it has there.
    pub(crate) fn graft(
        &self,
        pack: &PackWriter,
        base: Option<&Snapshot>,
        partial: &mut Directory,
        scope: &Scope,
    ) -> Result<Snapshot> {
        let defaults = base.map(|base| base.defaults).unwrap_or_default();
        let grafted = snapshot::graft(&self.reader(), base, partial, scope, &defaults, pack);
        let ids = grafted.map_err(|problem| match problem {
            snapshot::GraftProblem::Object(problem) => self.damaged(problem),
            snapshot::GraftProblem::Io(source) => {
                Error::Io { action: "write into", path: self.layout.objects(), source }
            }
        })?;
        Ok(Snapshot { ids, defaults })
    }

    /// Notes that a restore is under way, durably.
    pub(crate) fn open_journal(&self, journal: &Journal) -> Result<()> {
        journal::write(&self.layout, journal).or_fail("write", self.layout.journal())
    }

    /// Notes that it is done, durably.
    pub(crate) fn close_journal(&self) -> Result<()> {
        journal::close(&self.layout).or_fail("remove", self.layout.journal())
    }

    /// Was a journal that can't be read put out of the way?
    pub(crate) fn has_damaged_journal(&self) -> bool {
        private::exists(&self.layout.damaged_journal())
    }

    /// Puts a journal that can't be read out of the way.
    pub(crate) fn set_journal_aside(&self) -> Result<()> {
        let path = self.layout.journal();
        private::rename(&path, &self.layout.damaged_journal()).or_fail("rename", path)
    }

    /// Notes staging areas before they are made.
    pub(crate) fn note_areas(&self, areas: &[Area]) -> Result<()> {
        journal::note_areas(&self.layout, areas).or_fail("write", self.layout.staging_note())
    }

    /// Staging areas that were noted and never cleared, those in the store included.
    pub(crate) fn leftover_areas(&self) -> Result<Vec<Area>> {
        let path = self.layout.staging_note();
        let mut areas = journal::noted_areas(&self.layout).or_fail("read", path)?;
        let stage = self.layout.stage();
        for name in private::names(&stage).or_fail("read", &stage)? {
            let area = Area::Store { name: name.to_string_lossy().into_owned() };
            if !areas.contains(&area) {
                areas.push(area);
            }
        }
        Ok(areas)
    }

    /// Forgets the staging areas: they are cleared.
    pub(crate) fn forget_areas(&self) -> Result<()> {
        journal::forget_areas(&self.layout).or_fail("remove", self.layout.staging_note())
    }

    /// Keeps the number of files in bounds.
    pub(crate) fn tidy(&self, timeline: &Timeline) -> Result<()> {
        // Before the timeline is written again: its line is all that is known of such a checkpoint.
        for id in timeline.lost.iter().filter(|id| super::verify::is_whole(self, id)) {
            refs::publish(&self.layout, id).or_fail("publish in", self.layout.checkpoint_refs())?;
        }
        if timeline.is_stale {
            timeline::rewrite(&self.layout, timeline, Durability::Unsynced).or_fail("write", self.layout.timeline())?;
        }
        if timeline.operations.is_long() {
            self.shorten_log()?;
        }
        if timeline.loose_refs > MANY_REFS {
            refs::pack(&self.layout).or_fail("pack the refs of", self.layout.root())?;
        }
        if repack::are_many(&self.layout).or_fail("read", self.layout.packs())? {
            // What is gone needs no copy.
            self.compact()?;
            repack::merge_packs(&self.layout).or_fail("merge the packs of", self.layout.packs())?;
        }
        Ok(())
    }

    /// Forgets restores and deletions that nothing refers to any more.
    fn shorten_log(&self) -> Result<()> {
        // As it is now: retention may just have added to it.
        let timeline = self.timeline()?;
        if !timeline.lost.is_empty() || !timeline.unreadable.is_empty() {
            return Ok(());
        }
        let Some(shortened) = operations::shortened(&timeline) else { return Ok(()) };
        // First, and durably: a line whose deletion nobody remembers would look like a checkpoint that was lost.
        timeline::rewrite(&self.layout, &timeline, Durability::Synced).or_fail("write", self.layout.timeline())?;
        operations::replace(&self.layout, &shortened).or_fail("write", self.layout.operations())?;
        debug_assert!(operations::mean_the_same(&timeline, &self.timeline()?), "a shorter log says something else");
        Ok(())
    }

    /// Makes indices of packs again that are damaged.
    pub(crate) fn mend_indices(&self) -> Result<()> {
        reindex::mend(&self.layout, Which::Damaged).or_fail("index the packs of", self.layout.root())
    }

    /// Reclaims the space of what no checkpoint needs.
    pub(crate) fn compact(&self) -> Result<()> {
        compact::compact(&self.store).or_fail("compact", self.layout.root())
    }

    /// Keeps a checkpoint from retention.
    pub(crate) fn pin(&self, id: &CheckpointId) -> Result<()> {
        refs::pin(&self.layout, id).or_fail("pin in", self.layout.pinned_refs())
    }

    /// Leaves it to retention again.
    pub(crate) fn unpin(&self, id: &CheckpointId) -> Result<()> {
        refs::remove(&self.layout, &[*id], Removed::Pins).or_fail("unpin in", self.layout.pinned_refs())
    }

    /// Makes checkpoints no longer exist; their traces are logged by now.
    pub(crate) fn remove_refs(&self, ids: &[CheckpointId]) -> Result<()> {
        refs::remove(&self.layout, ids, Removed::Checkpoints).or_fail("remove from", self.layout.checkpoint_refs())
    }
}

/// The bytes of a commit by this program.
pub(super) fn encode_commit(tree: &ObjectId, parent: Option<&ObjectId>, seconds: i64, message: &str) -> Vec<u8> {
    let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
    let who = format!("Backtrail <backtrail@localhost> {} +0000", seconds.max(0));
    format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{message}").into_bytes()
}

/// The tree and the parent of a commit.
pub(super) fn read_commit(reader: &ObjectReader, id: &ObjectId) -> Result<(ObjectId, Option<ObjectId>), ObjectProblem> {
    let bytes = reader.read(id, ObjectKind::Commit)?;
    let commit = gix_object::CommitRef::from_bytes(&bytes, gix_hash::Kind::Sha1)
        .map_err(|_| ObjectProblem::Damaged(*id, "it can't be parsed".into()))?;
    Ok((commit.tree(), commit.parents().next()))
}
