//! The store: opening, reading and locking it. Everything that changes a store is a method of [`Writer`], which holds
//! the lock.

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
use tracing::warn;

use super::{
    ForkLink, ForkNote, ForkOrigin, FoundJournal, Layout, OpenStores, Record, RetentionNotes, Timeline, Writer,
    confirmed_excludes, fork_notes,
    format::{self, Format},
    identity::IdentityFile,
    journal,
    objects::{ObjectKind, ObjectProblem, ObjectReader, Objects, bytes_of, object_id},
    packs::reindex::{self, Which},
    record::RecordedPaths,
    refs, shared_objects,
    snapshot::{self, Snapshot, StoredEntry, StoredNode},
    state::StoredState,
    step_counter,
};
use crate::{
    disk::{
        lock::{FileLock, LockError},
        private,
    },
    error::{Error, Result, While},
    model::{CallBeside, Checkpoint, CheckpointId, ContentId, DirectoryIds, TreeId, WorkspacePath},
    spans::phase,
};

/// The number of retries if other processes remove the store while this one is about to lock it.
const MAX_REMOVALS: usize = 20;

/// A store that can be read. Readers never wait for a lock.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    layout: Layout,
    objects: Objects,
    unknown_to_write: Option<String>,
    /// Set if damage was found: existing objects of the store are no longer relied on.
    is_distrusted: Arc<AtomicBool>,
}

impl Store {
    /// Opens a store, or takes one that is kept open. Returns `None` if the directory is not a store.
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

    /// Marks the store as damaged. From here on, none of its objects is relied on: everything is read from the
    /// workspace and written again.
    pub(crate) fn distrust(&self) {
        warn!(name: "store_distrusted", "the store is damaged: the operation starts again without relying on it");
        self.is_distrusted.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_distrusted(&self) -> bool {
        self.is_distrusted.load(Ordering::Relaxed)
    }

    /// Returns the snapshot that the workspace stands on. Returns `None` if there is none, or if damage was found in
    /// the store.
    pub(crate) fn current_snapshot(&self, timeline: &Timeline) -> Result<Option<Snapshot>> {
        if self.is_distrusted() {
            return Ok(None);
        }
        timeline.current().map(|entry| self.snapshot(&entry.id)).transpose()
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Returns this store for reading, with the objects of another one for those that it lacks.
    pub(crate) fn borrowing(&self, other: &Self) -> Self {
        Self { objects: self.objects.borrowing(&other.objects), ..self.clone() }
    }

    pub(crate) fn reader(&self) -> ObjectReader {
        self.objects.reader()
    }

    /// Returns all checkpoints that have refs now.
    pub(crate) fn timeline(&self) -> Result<Timeline> {
        let of_index = || {
            let (of_record, whole) = (self.clone(), self.clone());
            let read_record = move |id: &CheckpointId| of_record.read_checkpoint_commit(id).ok().map(|read| read.2);
            let read_whole = move || whole.whole_timeline().map(Timeline::into_entries).unwrap_or_default();
            (Arc::new(read_record) as _, Arc::new(read_whole) as _)
        };
        let load = || {
            Timeline::load(&self.layout, &|id| self.read_record(id), of_index())
                .or_fail("read the timeline of", self.layout.root())
        };
        once_opened_up(self.layout.root(), load)
    }

    /// Like [`Self::timeline`], but reads every ref and does not rely on the index.
    pub(crate) fn whole_timeline(&self) -> Result<Timeline> {
        let load = || {
            Timeline::load_whole(&self.layout, &|id| self.read_record(id))
                .or_fail("read the timeline of", self.layout.root())
        };
        once_opened_up(self.layout.root(), load)
    }

    fn read_record(&self, id: &CheckpointId) -> io::Result<Option<Record>> {
        match self.read_checkpoint_commit(id) {
            Ok((_, _, record)) => Ok(Some(record)),
            Err(ObjectProblem::Refused(_)) => Err(rustix::io::Errno::ACCESS.into()),
            Err(_) => Ok(None),
        }
    }

    /// Returns whether this checkpoint has a loose ref, without reading the timeline. `false` is inconclusive: check
    /// the timeline.
    pub(crate) fn is_plainly_there(&self, id: &CheckpointId) -> bool {
        refs::is_loose(&self.layout, id)
    }

    /// Returns the snapshot of a checkpoint.
    pub(crate) fn snapshot(&self, id: &CheckpointId) -> Result<Snapshot> {
        self.snapshot_and_record(id).map(|(snapshot, _)| snapshot)
    }

    /// Returns the snapshot and the record of a checkpoint.
    pub(crate) fn snapshot_and_record(&self, id: &CheckpointId) -> Result<(Snapshot, Record)> {
        let (tree, state, record) = self.read_checkpoint_commit(id).map_err(|problem| self.damaged(problem))?;
        let modes = match state {
            Some(state) => self.stored_state(Some(state))?.modes,
            None => None,
        };
        let ids = DirectoryIds { tree: TreeId(bytes_of(&tree)), modes };
        Ok((Snapshot::whole(ids, record.modes), record))
    }

    /// Returns the state of a checkpoint.
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

    /// Returns the entries of a stored directory.
    pub(crate) fn list(&self, reader: &ObjectReader, snapshot: &Snapshot) -> Result<Vec<StoredEntry>> {
        snapshot::list(reader, snapshot).map_err(|problem| self.damaged(problem))
    }

    /// Returns the entry that a snapshot holds at a path.
    pub(crate) fn find(&self, snapshot: Snapshot, path: &WorkspacePath) -> Result<Option<StoredNode>> {
        let reader = self.reader();
        let mut node = StoredNode::Directory { snapshot, mode: snapshot.defaults.directory };
        for part in path.parts() {
            let StoredNode::Directory { snapshot, .. } = node else { return Ok(None) };
            match self.list(&reader, &snapshot)?.into_iter().find(|entry| entry.name == part) {
                Some(entry) => node = entry.node,
                None => return Ok(None),
            }
        }
        Ok(Some(node))
    }

    /// Returns the bytes of a file or the target of a symlink.
    pub(crate) fn content(&self, reader: &ObjectReader, content: &ContentId) -> Result<Vec<u8>> {
        reader.read(&object_id(content.as_bytes()), ObjectKind::Blob).map_err(|problem| self.damaged(problem))
    }

    /// Passes the bytes of a file to `take`, a large one piece by piece.
    pub(crate) fn copy_content(
        &self,
        content: &ContentId,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<io::Result<()>> {
        let id = object_id(content.as_bytes());
        self.reader().copy_blob(&id, take).map_err(|problem| self.damaged(problem))
    }

    /// Returns the size of a file in bytes.
    pub(crate) fn content_size(&self, reader: &ObjectReader, content: &ContentId) -> Result<u64> {
        reader.size(&object_id(content.as_bytes())).map_err(|problem| self.damaged(problem))
    }

    /// Returns a checkpoint as callers see it.
    pub(crate) fn checkpoint(&self, entry: &super::TimelineEntry) -> Result<Checkpoint> {
        let record = self.record(entry)?;
        let changed = self.recorded_paths(&entry.id, &record.changed, StoredState::changed)?;
        let dirty = record.git.as_ref().map(|git| &git.dirty_files);
        let dirty = dirty.map(|paths| self.recorded_paths(&entry.id, paths, StoredState::dirty)).transpose()?;
        Ok(Record::clone(&record).into_checkpoint(entry.id, entry.pinned, changed, dirty.unwrap_or_default()))
    }

    /// Returns a checkpoint that was just written, with the lists of paths that went into its state.
    pub(crate) fn new_checkpoint(&self, entry: &super::TimelineEntry, state: super::State) -> Result<Checkpoint> {
        let record = Record::clone(&*self.record(entry)?);
        let changed = record.changed.clone().or_in_state(state.changed);
        let dirty = record.git.as_ref().map(|git| git.dirty_files.clone().or_in_state(state.dirty));
        Ok(record.into_checkpoint(entry.id, entry.pinned, changed, dirty.unwrap_or_default()))
    }

    /// Returns a checkpoint without the lists of paths that are too long for the record.
    pub(crate) fn summary(&self, entry: &super::TimelineEntry) -> Result<Checkpoint> {
        let record = Record::clone(&*self.record(entry)?);
        let changed = record.changed.here().to_vec();
        let dirty = record.git.as_ref().map(|git| git.dirty_files.here().to_vec()).unwrap_or_default();
        Ok(record.into_checkpoint(entry.id, entry.pinned, changed, dirty))
    }

    /// Returns a checkpoint in the bin, without the lists of paths that are too long for the record.
    pub(crate) fn deleted_checkpoint(&self, id: &CheckpointId) -> Result<Checkpoint> {
        let (_, record) = self.snapshot_and_record(id)?;
        let changed = record.changed.here().to_vec();
        let dirty = record.git.as_ref().map(|git| git.dirty_files.here().to_vec()).unwrap_or_default();
        Ok(record.into_checkpoint(*id, false, changed, dirty))
    }

    fn record(&self, entry: &super::TimelineEntry) -> Result<Arc<Record>> {
        entry.record().ok_or_else(|| {
            let id = object_id(entry.id.as_bytes());
            self.damaged(ObjectProblem::Damaged(id, "its record can't be read".into()))
        })
    }

    /// Returns the recorded paths. Reads them from the state if the record only has their number.
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

    /// Returns the links of a fork to directories that the workspace skips. Other stores have none.
    pub(crate) fn fork_links(&self) -> Result<Vec<ForkLink>> {
        Ok(ForkOrigin::read(&self.layout)?.map(|origin| origin.links).unwrap_or_default())
    }

    /// Returns the forks that were made of the workspace, and those that were begun and never finished.
    pub(crate) fn fork_notes(&self) -> Result<Vec<ForkNote>> {
        fork_notes::read(&self.layout).or_fail("read", self.layout.forks())
    }

    /// Returns the calls of other sessions that are running at this time, in milliseconds since 1970.
    pub(crate) fn calls_beside(&self, session: Option<&str>, now: i64) -> Result<Vec<CallBeside>> {
        step_counter::calls_beside(self.layout(), session, now).or_fail("read", self.layout().steps())
    }

    /// Returns the notes of retention. They are empty if the file can't be read.
    pub(crate) fn retention_notes(&self) -> RetentionNotes {
        RetentionNotes::read(&self.layout).unwrap_or_default()
    }

    /// Reads the journal.
    pub(crate) fn journal(&self) -> Result<FoundJournal> {
        journal::read(&self.layout).or_fail("read", self.layout.journal())
    }

    /// Returns the disk space that the store takes, in bytes.
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

    /// Returns the tree, the state and the record of a checkpoint.
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

    /// Fails if a newer version wrote the store. This version may read such a store, but not write to it.
    fn refuse_newer(&self) -> Result<()> {
        let store = || self.layout.root().to_owned();
        match self.unknown_to_write.clone() {
            Some(feature) => Err(Error::StoreTooNew { store: store(), feature }),
            None => Ok(()),
        }
    }

    /// Checks whether a checkpoint could be written here. Writes nothing.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.refuse_newer()?;
        let layout = &self.layout;
        let written = [layout.root().to_owned(), layout.own(), layout.packs(), layout.checkpoint_refs()];
        written.iter().try_for_each(|directory| private::check_writable(directory).or_fail("write to", directory))
    }

    /// Removes the refs and the format file: from here on the directory is not a store. The caller holds the lock.
    pub(crate) fn unmake(layout: &Layout) -> Result<()> {
        refs::remove_all(layout).or_fail("remove the refs of", layout.root())?;
        private::remove(&layout.format()).or_fail("remove", layout.format())
    }

    /// Acquires the lock. Waits for it at most `patience`.
    pub(crate) fn lock(directory: &Path, workspace: &Path, patience: Duration) -> Result<StoreLock> {
        let _phase = phase!("lock");
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
    /// Opens the store for writing, and creates it if it is missing. Returns whether it was created.
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

    /// Prepares the store of a fork: says what the fork is made of, and shares the objects of these stores. It becomes
    /// a store when it is opened.
    pub(crate) fn prepare_fork(&self, origin: &ForkOrigin, sources: &[&Writer]) -> Result<()> {
        origin.write(&self.layout)?;
        for source in sources {
            shared_objects::share(source.store().layout(), &self.layout)
                .or_fail("share the objects of", source.store().layout().objects())?;
        }
        Ok(())
    }

    fn mend(&self) -> Result<()> {
        private::make_private(self.layout.root(), 0o700).or_fail("protect", self.layout.root())?;
        format::mend(&self.layout)?;
        sweep(&self.layout).or_fail("sweep", self.layout.root())?;
        reindex::mend(&self.layout, Which::Missing).or_fail("index the packs of", self.layout.root())
    }
}

/// Runs `act` on a store. If the owner of the store has no permission for a part of it, grants it and retries.
pub(super) fn once_opened_up<T>(root: &Path, act: impl Fn() -> Result<T>) -> Result<T> {
    match act() {
        Err(Error::Io { action, path, source }) if source.kind() == io::ErrorKind::PermissionDenied => {
            // If the permission can't be granted, the original error is returned.
            if private::open_up_store(root).unwrap_or(false) { act() } else { Err(Error::Io { action, path, source }) }
        }
        done => done,
    }
}

/// Removes temporary files that dead processes left. The lock is held, so no running process has a temporary file here.
fn sweep(layout: &Layout) -> io::Result<()> {
    let of_refs = [layout.checkpoint_refs(), layout.pinned_refs(), layout.deleted_refs()];
    for directory in of_refs.into_iter().chain([layout.packs(), layout.own(), layout.root().to_owned()]) {
        for name in private::names(&directory)? {
            if name.to_string_lossy().starts_with(private::TEMPORARY_PREFIX) {
                private::remove(&directory.join(name))?;
            }
        }
    }
    Ok(())
}

/// Encodes a commit by this program.
pub(super) fn encode_commit(tree: &ObjectId, parent: Option<&ObjectId>, seconds: i64, message: &str) -> Vec<u8> {
    let parent = parent.map(|parent| format!("parent {parent}\n")).unwrap_or_default();
    let who = format!("Backtrail <backtrail@localhost> {} +0000", seconds.max(0));
    format!("tree {tree}\n{parent}author {who}\ncommitter {who}\n\n{message}").into_bytes()
}

/// Returns the tree and the parent of a commit.
pub(super) fn read_commit(reader: &ObjectReader, id: &ObjectId) -> Result<(ObjectId, Option<ObjectId>), ObjectProblem> {
    let bytes = reader.read(id, ObjectKind::Commit)?;
    let commit = gix_object::CommitRef::from_bytes(&bytes, gix_hash::Kind::Sha1)
        .map_err(|_| ObjectProblem::Damaged(*id, "it can't be parsed".into()))?;
    Ok((commit.tree(), commit.parents().next()))
}
