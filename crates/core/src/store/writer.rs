//! What changes a store: building a checkpoint, publishing it, and what is noted beside.
//!
//! A checkpoint is [`Unpublished`] until its ref is durable; the order of the steps is that of `docs/store-format.md`.

use std::{
    io,
    ops::Deref,
    sync::{Arc, Mutex, PoisonError},
};

use super::{
    Area, Journal, Operation, Record, State, Store, Timeline, compact, condense, journal,
    objects::{ObjectKind, bytes_of, object_id},
    operations,
    pack::PackWriter,
    refs::{self, Removed},
    reindex::{self, Which},
    repack,
    snapshot::{self, Hands, Snapshot},
    steps,
    store::encode_commit,
    timeline,
};
use crate::{
    disk::{
        lock::FileLock,
        private::{self, Durability},
    },
    error::{Error, Result, While, is_no_space},
    model::{CheckpointId, Directory, ModeDefaults, Scope},
    threads,
};

/// So many new directories are worth the start of workers.
const MANY_DIRECTORIES: usize = 256;

/// Loose refs are packed when there are so many.
const MANY_REFS: usize = 100;

/// A store whose lock is held.
#[derive(Debug)]
pub(crate) struct Writer {
    store: Store,
    /// As it is on the disk; nobody else can change it while the lock is held.
    timeline: Mutex<Option<Arc<Timeline>>>,
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
    pub(super) fn new(store: Store, lock: FileLock) -> Self {
        Self { store, timeline: Mutex::default(), _lock: lock }
    }

    /// A pack for the objects of one checkpoint.
    pub(crate) fn start_pack(&self) -> PackWriter {
        if self.is_distrusted() { PackWriter::anew(self.layout()) } else { PackWriter::new(self.layout()) }
    }

    /// Puts the trees of a scanned directory into the pack.
    pub(crate) fn write_snapshot(
        &self,
        pack: &PackWriter,
        root: &mut Directory,
        defaults: &ModeDefaults,
    ) -> Result<Snapshot> {
        let ids = if snapshot::lacks_ids(root, MANY_DIRECTORIES) {
            threads::for_trees(|| snapshot::write(root, defaults, pack, Hands::Many))
        } else {
            snapshot::write(root, defaults, pack, Hands::One)
        };
        let ids = ids.or_fail("write into", self.layout().objects())?;
        Ok(Snapshot::whole(ids, *defaults))
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
        let id = build().or_fail("write into", self.layout().objects())?;
        Ok(Unpublished { pack, id, record })
    }

    /// Makes it durable, then visible. When this returns, the checkpoint survives a power cut.
    pub(crate) fn publish(&self, checkpoint: Unpublished) -> Result<CheckpointId> {
        let Unpublished { pack, id, record } = checkpoint;
        pack.finish().or_fail("write into", self.layout().packs())?;
        let known = self.forget_timeline();
        refs::publish(self.layout(), &id).or_fail("publish in", self.layout().checkpoint_refs())?;
        // From here on it exists; the index over it is rebuilt from the commits should it be lost.
        let entry = timeline::append(self.layout(), id, record).or_fail("append to", self.layout().timeline())?;
        self.keep_timeline(known, |timeline| timeline.add(entry));
        Ok(id)
    }

    /// All checkpoints, as this process left them.
    pub(crate) fn timeline(&self) -> Result<Arc<Timeline>> {
        let mut kept = self.timeline.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*kept {
            debug_assert!(
                self.store.timeline().map_or(true, |read| known.is_same_as(&read)),
                "it is another one by now"
            );
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(self.store.timeline()?);
        *kept = Some(Arc::clone(&read));
        Ok(read)
    }

    /// Before anything is changed: should that fail, the disk is asked again.
    fn forget_timeline(&self) -> Option<Arc<Timeline>> {
        self.timeline.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn keep_timeline(&self, known: Option<Arc<Timeline>>, change: impl FnOnce(&mut Timeline)) {
        let changed = known.map(|mut known| {
            change(Arc::make_mut(&mut known));
            known
        });
        *self.timeline.lock().unwrap_or_else(PoisonError::into_inner) = changed;
    }

    /// Adds to the log of operations, durably.
    pub(crate) fn log(&self, operations: &[Operation]) -> Result<()> {
        let known = self.forget_timeline();
        self.with_room(|| operations::append(self.layout(), operations))
            .or_fail("append to", self.layout().operations())?;
        self.keep_timeline(known, |timeline| timeline.operations.entries.extend_from_slice(operations));
        Ok(())
    }

    /// Counts one more step of a session that took `at_least` so many; gives its number, from 1.
    pub(crate) fn count_step(&self, session: Option<&str>, at_least: u64) -> Result<u64> {
        steps::count(self.layout(), session, at_least).or_fail("write", self.layout().steps())
    }

    /// How many steps a session has taken.
    pub(crate) fn counted_steps(&self, session: Option<&str>, at_least: u64) -> Result<u64> {
        steps::counted(self.layout(), session, at_least).or_fail("read", self.layout().steps())
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
                Error::Io { action: "write into", path: self.layout().objects(), source }
            }
        })?;
        Ok(Snapshot::whole(ids, defaults))
    }

    /// Notes that a restore is under way, durably.
    pub(crate) fn open_journal(&self, journal: &Journal) -> Result<()> {
        journal::write(self.layout(), journal).or_fail("write", self.layout().journal())
    }

    /// Notes that it is done, durably.
    pub(crate) fn close_journal(&self) -> Result<()> {
        journal::close(self.layout()).or_fail("remove", self.layout().journal())
    }

    /// Was a journal that can't be read put out of the way?
    pub(crate) fn has_damaged_journal(&self) -> bool {
        private::exists(&self.layout().damaged_journal())
    }

    /// Puts a journal that can't be read out of the way.
    pub(crate) fn set_journal_aside(&self) -> Result<()> {
        let path = self.layout().journal();
        private::rename(&path, &self.layout().damaged_journal()).or_fail("rename", path)
    }

    /// Notes staging areas before they are made.
    pub(crate) fn note_areas(&self, areas: &[Area]) -> Result<()> {
        journal::note_areas(self.layout(), areas).or_fail("write", self.layout().staging_note())
    }

    /// Staging areas that were noted and never cleared, those in the store included.
    pub(crate) fn leftover_areas(&self) -> Result<Vec<Area>> {
        let path = self.layout().staging_note();
        let mut areas = journal::noted_areas(self.layout()).or_fail("read", path)?;
        let stage = self.layout().stage();
        let names = || private::names(&stage).or_fail("read", &stage);
        for name in super::store::once_opened_up(self.layout().root(), names)? {
            let area = Area::Store { name: name.to_string_lossy().into_owned() };
            if !areas.contains(&area) {
                areas.push(area);
            }
        }
        Ok(areas)
    }

    /// Forgets the staging areas: they are cleared.
    pub(crate) fn forget_areas(&self) -> Result<()> {
        journal::forget_areas(self.layout()).or_fail("remove", self.layout().staging_note())
    }

    /// Keeps the number of files in bounds.
    pub(crate) fn tidy(&self) -> Result<()> {
        // Before the timeline and the log are written again: what they say is all that is known of a lost checkpoint,
        // and of one that is deleted.
        self.mend_refs()?;
        let timeline = self.timeline()?;
        if timeline.is_stale || timeline.operations.is_long() || timeline.loose_refs > MANY_REFS {
            self.forget_timeline();
        }
        if timeline.is_stale {
            timeline::rewrite(self.layout(), &timeline, Durability::Unsynced)
                .or_fail("write", self.layout().timeline())?;
        }
        if timeline.operations.is_long() {
            self.shorten_log()?;
        }
        if timeline.loose_refs > MANY_REFS {
            refs::pack(self.layout()).or_fail("pack the refs of", self.layout().root())?;
        }
        if repack::are_many(self.layout()).or_fail("read", self.layout().packs())? {
            // What is gone needs no copy.
            self.compact()?;
            repack::merge_packs(self.layout()).or_fail("merge the packs of", self.layout().packs())?;
        }
        Ok(())
    }

    /// Forgets restores and deletions that nothing refers to any more.
    fn shorten_log(&self) -> Result<()> {
        let timeline = self.store.timeline()?;
        if !timeline.lost.is_empty() || !timeline.unreadable.is_empty() {
            return Ok(());
        }
        let Some(shortened) = operations::shortened(&timeline) else { return Ok(()) };
        // First, and durably: a line whose deletion nobody remembers would look like a checkpoint that was lost.
        timeline::rewrite(self.layout(), &timeline, Durability::Synced).or_fail("write", self.layout().timeline())?;
        operations::replace(self.layout(), &shortened).or_fail("write", self.layout().operations())?;
        debug_assert!(
            operations::mean_the_same(&timeline, &self.store.timeline()?),
            "a shorter log says something else"
        );
        Ok(())
    }

    /// Puts refs back that were lost, and takes away the pins of what was deleted.
    pub(crate) fn mend_refs(&self) -> Result<()> {
        let timeline = self.timeline()?;
        if timeline.lost.is_empty() && timeline.stray_pins.is_empty() {
            return Ok(());
        }
        self.forget_timeline();
        for id in timeline.lost.iter().filter(|id| super::verify::is_whole(self, id)) {
            refs::publish(self.layout(), id).or_fail("publish in", self.layout().checkpoint_refs())?;
        }
        let unpinned = refs::remove(self.layout(), &timeline.stray_pins, Removed::Pins);
        unpinned.or_fail("unpin in", self.layout().pinned_refs())
    }

    /// Makes indices of packs again that are damaged.
    pub(crate) fn mend_indices(&self) -> Result<()> {
        reindex::mend(self.layout(), Which::Damaged).or_fail("index the packs of", self.layout().root())
    }

    /// Reclaims the space of what no checkpoint needs.
    pub(crate) fn compact(&self) -> Result<()> {
        // What has lost its ref needs its objects; a pin of what is deleted would lead nowhere without them.
        self.mend_refs()?;
        compact::compact(&self.store).or_fail("compact", self.layout().root())
    }

    /// Makes the store as small as it gets.
    pub(crate) fn condense(&self) -> Result<()> {
        condense::condense(self).or_fail("compress", self.layout().packs())
    }

    /// Keeps a checkpoint from retention.
    pub(crate) fn pin(&self, id: &CheckpointId) -> Result<()> {
        self.forget_timeline();
        refs::pin(self.layout(), id).or_fail("pin in", self.layout().pinned_refs())
    }

    /// Leaves it to retention again.
    pub(crate) fn unpin(&self, id: &CheckpointId) -> Result<()> {
        self.forget_timeline();
        refs::remove(self.layout(), &[*id], Removed::Pins).or_fail("unpin in", self.layout().pinned_refs())
    }

    /// Makes checkpoints no longer exist; their traces are logged by now.
    pub(crate) fn remove_refs(&self, ids: &[CheckpointId]) -> Result<()> {
        self.forget_timeline();
        self.with_room(|| refs::remove(self.layout(), ids, Removed::Checkpoints))
            .or_fail("remove from", self.layout().checkpoint_refs())
    }

    /// Acts, once more with the room of the stat cache where the disk is full. The next scan makes that again, and without
    /// the little that a deletion writes no room could ever be made.
    fn with_room<T>(&self, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match act() {
            Err(error) if is_no_space(&error) => {
                private::remove(&self.layout().stat_cache())?;
                act()
            }
            done => done,
        }
    }
}
