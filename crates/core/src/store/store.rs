//! The store itself: opening, reading, locking. What changes it hangs on a [`Writer`], which holds the lock.

use std::{
    io,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use gix_hash::ObjectId;

use super::{
    FoundJournal, Layout, OpenStores, Record, RetentionNotes, Timeline, Writer, confirmed_excludes,
    format::{self, Format},
    identity::IdentityFile,
    journal,
    objects::{ObjectKind, ObjectProblem, ObjectReader, Objects, bytes_of, object_id},
    record::RecordedPaths,
    refs,
    reindex::{self, Which},
    snapshot::{self, Snapshot, StoredEntry},
    state::StoredState,
};
use crate::{
    disk::{
        lock::{FileLock, LockError},
        private,
    },
    error::{Error, Result, While},
    model::{Checkpoint, CheckpointId, ContentId, DirectoryIds, TreeId, WorkspacePath},
};

/// As often may a store be forgotten while a process is about to lock it.
const MAX_REMOVALS: usize = 20;

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
    /// Opens a store, or takes the one that is kept open; none where there is none.
    pub(crate) fn open(directory: &Path, kept: Option<&OpenStores>) -> Result<Option<Self>> {
        once_opened_up(directory, || Self::open_as_it_is(directory, kept))
    }

    fn open_as_it_is(directory: &Path, kept: Option<&OpenStores>) -> Result<Option<Self>> {
        let layout = Layout::new(directory);
        let Some(format) = Format::read(&layout)? else { return Ok(None) };
        let objects = match kept {
            Some(kept) => kept.objects(&layout),
            None => Objects::at(&layout.objects()),
        };
        let objects = objects.or_fail("open the objects of", directory)?;
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
        let read_record = |id: &CheckpointId| match self.read_checkpoint_commit(id) {
            Ok((_, _, record)) => Ok(Some(record)),
            Err(ObjectProblem::Refused(_)) => Err(rustix::io::Errno::ACCESS.into()),
            Err(_) => Ok(None),
        };
        let load = || Timeline::load(&self.layout, &read_record).or_fail("read the timeline of", self.layout.root());
        once_opened_up(self.layout.root(), load)
    }

    /// Is this checkpoint there, as far as that can be told without the timeline? Whoever hears no must ask that.
    pub(crate) fn is_plainly_there(&self, id: &CheckpointId) -> bool {
        refs::is_loose(&self.layout, id)
    }

    /// The snapshot of a checkpoint.
    pub(crate) fn snapshot(&self, id: &CheckpointId) -> Result<Snapshot> {
        self.snapshot_and_record(id).map(|(snapshot, _)| snapshot)
    }

    /// The snapshot of a checkpoint, and what it says about itself.
    pub(crate) fn snapshot_and_record(&self, id: &CheckpointId) -> Result<(Snapshot, Record)> {
        let (tree, state, record) = self.read_checkpoint_commit(id).map_err(|problem| self.damaged(problem))?;
        let modes = match state {
            Some(state) => self.stored_state(Some(state))?.modes,
            None => None,
        };
        let ids = DirectoryIds { tree: TreeId(bytes_of(&tree)), modes };
        Ok((Snapshot::whole(ids, record.modes), record))
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
        let record = self.record(entry)?;
        let changed = self.recorded_paths(&entry.id, &record.changed, StoredState::changed)?;
        let dirty = record.git.as_ref().map(|git| &git.dirty_files);
        let dirty = dirty.map(|paths| self.recorded_paths(&entry.id, paths, StoredState::dirty)).transpose()?;
        Ok(Record::clone(&record).into_checkpoint(entry.id, entry.pinned, changed, dirty.unwrap_or_default()))
    }

    /// The same for one that was just written, with the lists of paths that went into its state.
    pub(crate) fn new_checkpoint(&self, entry: &super::TimelineEntry, state: super::State) -> Result<Checkpoint> {
        let record = Record::clone(&*self.record(entry)?);
        let changed = record.changed.clone().or_in_state(state.changed);
        let dirty = record.git.as_ref().map(|git| git.dirty_files.clone().or_in_state(state.dirty));
        Ok(record.into_checkpoint(entry.id, entry.pinned, changed, dirty.unwrap_or_default()))
    }

    /// The same without the lists of paths that are too long for the record.
    pub(crate) fn summary(&self, entry: &super::TimelineEntry) -> Result<Checkpoint> {
        let record = Record::clone(&*self.record(entry)?);
        let changed = record.changed.here().to_vec();
        let dirty = record.git.as_ref().map(|git| git.dirty_files.here().to_vec()).unwrap_or_default();
        Ok(record.into_checkpoint(entry.id, entry.pinned, changed, dirty))
    }

    fn record(&self, entry: &super::TimelineEntry) -> Result<Arc<Record>> {
        entry.record().ok_or_else(|| {
            let id = object_id(entry.id.as_bytes());
            self.damaged(ObjectProblem::Damaged(id, "its record can't be read".into()))
        })
    }

    /// The paths themselves, also where the record only refers to them.
    fn recorded_paths(
        &self,
        id: &CheckpointId,
        recorded: &RecordedPaths,
        in_state: fn(&StoredState, &ObjectReader) -> Result<Vec<WorkspacePath>, ObjectProblem>,
    ) -> Result<Vec<WorkspacePath>> {
        match recorded {
            RecordedPaths::Here(paths) => Ok(paths.clone()),
            RecordedPaths::InState { .. } => {
                in_state(&self.state(id)?, &self.reader()).map_err(|problem| self.damaged(problem))
            }
        }
    }

    /// Returns the exclude patterns that the owner of the workspace decided on.
    pub(crate) fn confirmed_excludes(&self) -> Result<Vec<String>> {
        confirmed_excludes::read(&self.layout).or_fail("read", self.layout.confirmed_excludes())
    }

    /// Returns the staging areas inside the workspace that restores made and did not remove yet.
    pub(crate) fn staging_areas(&self) -> Result<Vec<WorkspacePath>> {
        let noted = journal::noted_areas(&self.layout).or_fail("read", self.layout.staging_note())?;
        let in_workspace = noted.into_iter().filter_map(|area| match area {
            journal::Area::Workspace { parent, name } => Some(parent.join(name.as_bytes())),
            journal::Area::Store { .. } => None,
        });
        Ok(in_workspace.collect())
    }

    /// What retention remembers. Nothing if the file can't be read.
    pub(crate) fn retention_notes(&self) -> RetentionNotes {
        RetentionNotes::read(&self.layout).unwrap_or_default()
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
        match problem {
            ObjectProblem::Refused(path) => {
                Error::Io { action: "read", path, source: rustix::io::Errno::ACCESS.into() }
            }
            problem => Error::StoreDamaged { store: self.layout.root().to_owned(), problem: problem.to_string() },
        }
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

    /// What a newer version wrote may be read, but not be written to.
    fn refuse_newer(&self) -> Result<()> {
        let store = || self.layout.root().to_owned();
        match self.unknown_to_write.clone() {
            Some(feature) => Err(Error::StoreTooNew { store: store(), feature }),
            None => Ok(()),
        }
    }

    /// Could a checkpoint be written here? Only looks.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.refuse_newer()?;
        let layout = &self.layout;
        let written = [layout.root().to_owned(), layout.own(), layout.packs(), layout.checkpoint_refs()];
        written.iter().try_for_each(|directory| private::check_writable(directory).or_fail("write to", directory))
    }

    /// From here on the directory is no store; the lock is held.
    pub(crate) fn unmake(layout: &Layout) -> Result<()> {
        refs::remove_all(layout).or_fail("remove the refs of", layout.root())?;
        private::remove(&layout.format()).or_fail("remove", layout.format())
    }

    /// Waits for the lock.
    pub(crate) fn lock(directory: &Path, workspace: &Path, patience: Duration) -> Result<StoreLock> {
        once_opened_up(directory, || Self::lock_as_it_is(directory, workspace, patience))
    }

    fn lock_as_it_is(directory: &Path, workspace: &Path, patience: Duration) -> Result<StoreLock> {
        let layout = Layout::new(directory);
        let path = layout.lock();
        let acquire = || -> Result<Result<FileLock, LockError>> {
            private::make_store(layout.root(), workspace).or_fail("create", layout.root())?;
            private::make_directories(&layout.own()).or_fail("create", layout.own())?;
            Ok(FileLock::acquire(&path, patience))
        };
        let mut acquired = acquire();
        for _ in 0..MAX_REMOVALS {
            let is_absent = match &acquired {
                Ok(Err(LockError::Io(error))) | Err(Error::Io { source: error, .. }) => {
                    error.kind() == io::ErrorKind::NotFound
                }
                _ => false,
            };
            if !is_absent {
                break;
            }
            acquired = acquire();
        }
        match acquired? {
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
    pub(crate) fn open_or_create(self, identity: &IdentityFile, kept: Option<&OpenStores>) -> Result<(Writer, bool)> {
        let make = || -> Result<bool> {
            let created = Format::read(&self.layout)?.is_none();
            if created {
                format::create(&self.layout, identity)?;
            }
            Ok(created)
        };
        let created = once_opened_up(self.layout.root(), make)?;
        let store = Store::open(self.layout.root(), kept)?
            .ok_or_else(|| Error::Internal("a store that was just made is not there".into()))?;
        store.refuse_newer()?;
        once_opened_up(self.layout.root(), || self.mend())?;
        Ok((Writer::new(store, self.lock), created))
    }

    fn mend(&self) -> Result<()> {
        private::make_private(self.layout.root(), 0o700).or_fail("protect", self.layout.root())?;
        format::mend(&self.layout)?;
        sweep(&self.layout).or_fail("sweep", self.layout.root())?;
        reindex::mend(&self.layout, Which::Missing).or_fail("index the packs of", self.layout.root())
    }
}

/// Does something with a store. Where a part of it is closed to its own owner, it is opened up first.
pub(super) fn once_opened_up<T>(root: &Path, act: impl Fn() -> Result<T>) -> Result<T> {
    match act() {
        Err(Error::Io { action, path, source }) if source.kind() == io::ErrorKind::PermissionDenied => {
            // What can't be opened up either is told as it was met.
            if private::open_up_store(root).unwrap_or(false) { act() } else { Err(Error::Io { action, path, source }) }
        }
        done => done,
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
