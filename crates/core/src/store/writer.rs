//! Everything that changes a store: building a checkpoint, publishing it, and writing the store's other files.
//!
//! A checkpoint is [`Unpublished`] until its ref is durable. The order of the steps is that of `docs/store-format.md`.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use tracing::field::display;

use super::{
    Area, ForkNote, Journal, OpenJournal, Operation, Record, RetentionNotes, SafetyCheckpoint, State, Store, Timeline,
    confirmed_excludes, fork_notes, format, journal,
    objects::{ObjectKind, bytes_of, object_id},
    operations,
    packs::{
        collect, deltify, merge,
        pack::PackWriter,
        reindex::{self, Which},
    },
    refs::{self, Removed},
    shared_objects,
    snapshot::{self, Hands, Snapshot},
    step_counter::{self, RunningCall},
    store::encode_commit,
    tidy_notes::TidyNotes,
    timeline::{self, Packed},
};
use crate::{
    disk::{
        lock::FileLock,
        private::{self, Durability},
    },
    error::{Error, Result, While, is_no_space},
    model::{CheckpointId, Directory, ModeDefaults, Scope},
    spans::phase,
    threads,
};

/// The number of new directories from which on starting workers is worth it.
const MANY_DIRECTORIES: usize = 256;

/// Loose refs are packed if there are more than this.
const MANY_REFS: usize = 100;

/// A store whose lock is held.
#[derive(Debug)]
pub(crate) struct Writer {
    store: Store,
    /// The timeline as it is on disk. No other process can change it while the lock is held.
    timeline: Mutex<Option<Arc<Timeline>>>,
    _lock: FileLock,
}

/// A checkpoint that is built but does not exist yet.
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

    /// Returns the store, for reading.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Starts a pack for the objects of one checkpoint.
    pub(crate) fn start_pack(&self) -> PackWriter {
        if self.store.is_distrusted() {
            PackWriter::anew(self.store.layout())
        } else {
            PackWriter::new(self.store.layout())
        }
    }

    /// Puts the trees of a scanned directory into the pack.
    pub(crate) fn write_snapshot(
        &self,
        pack: &PackWriter,
        root: &mut Directory,
        defaults: &ModeDefaults,
    ) -> Result<Snapshot> {
        let _phase = phase!("snapshot");
        let ids = if snapshot::lacks_ids(root, MANY_DIRECTORIES) {
            threads::for_trees(|| snapshot::write(root, defaults, pack, Hands::Many))
        } else {
            snapshot::write(root, defaults, pack, Hands::One)
        };
        let ids = ids.or_fail("write into", self.store.layout().objects())?;
        Ok(Snapshot::whole(ids, *defaults))
    }

    /// Puts contents into a pack of their own, durably, so that a restore can stage them.
    pub(crate) fn store_contents<'b>(&self, contents: impl Iterator<Item = &'b [u8]>) -> Result<()> {
        let pack = self.start_pack();
        let put = |bytes: &[u8]| pack.put_object(ObjectKind::Blob, bytes).map(drop);
        let mut contents = contents;
        contents.try_for_each(put).or_fail("write into", self.store.layout().objects())?;
        pack.finish().map(drop).or_fail("write into", self.store.layout().packs())
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
        let id = build().or_fail("write into", self.store.layout().objects())?;
        Ok(Unpublished { pack, id, record })
    }

    /// Makes a checkpoint durable, then visible. When this returns, the checkpoint survives a power cut.
    pub(crate) fn publish(&self, checkpoint: Unpublished) -> Result<CheckpointId> {
        format::require(self.store.layout(), checkpoint.record.kind)?;
        let Unpublished { pack, id, record } = checkpoint;
        let phase = phase!("publish", checkpoint);
        phase.record("checkpoint", display(&id));
        pack.finish().or_fail("write into", self.store.layout().packs())?;
        let known = self.forget_timeline();
        refs::publish(self.store.layout(), &id).or_fail("publish in", self.store.layout().checkpoint_refs())?;
        // From here on the checkpoint exists. The timeline file is rebuilt from the commits if it is lost.
        let entry =
            timeline::append(self.store.layout(), id, record).or_fail("append to", self.store.layout().timeline())?;
        self.keep_timeline(known, |timeline| timeline.add(entry));
        Ok(id)
    }

    /// Publishes a checkpoint whose objects came from another store.
    pub(crate) fn publish_shared(&self, id: &CheckpointId) -> Result<()> {
        let (_, record) = self.store.snapshot_and_record(id)?;
        format::require(self.store.layout(), record.kind)?;
        self.forget_timeline();
        refs::publish(self.store.layout(), id).or_fail("publish in", self.store.layout().checkpoint_refs())?;
        timeline::append(self.store.layout(), *id, record).or_fail("append to", self.store.layout().timeline())?;
        Ok(())
    }

    /// Makes the objects of a checkpoint durable without publishing it.
    pub(crate) fn keep_unpublished(&self, checkpoint: Unpublished) -> Result<CheckpointId> {
        self.keep_objects(checkpoint.pack)?;
        Ok(checkpoint.id)
    }

    /// Makes the objects of a pack durable, although no checkpoint needs them.
    pub(crate) fn keep_objects(&self, pack: PackWriter) -> Result<()> {
        pack.finish().map(drop).or_fail("write into", self.store.layout().packs())
    }

    /// Gives this store all objects of another one, whose lock is held too.
    pub(crate) fn share_objects_of(&self, other: &Self) -> Result<()> {
        shared_objects::share(other.store.layout(), self.store.layout())
            .or_fail("share the objects of", other.store.layout().objects())
    }

    /// Notes a fork of the workspace, durably.
    pub(crate) fn note_fork(&self, note: &ForkNote) -> Result<()> {
        fork_notes::add(self.store.layout(), note).or_fail("write", self.store.layout().forks())
    }

    /// Publishes a checkpoint of the files that a restore is about to change.
    pub(crate) fn publish_safety(&self, checkpoint: Unpublished) -> Result<SafetyCheckpoint> {
        Ok(SafetyCheckpoint::published(self.publish(checkpoint)?))
    }

    /// Returns all checkpoints. The timeline is cached, with the changes that this process made.
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

    /// Takes the cached timeline. Called before any change: if the change fails, the timeline is read from disk again.
    pub(super) fn forget_timeline(&self) -> Option<Arc<Timeline>> {
        self.timeline.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn keep_timeline(&self, known: Option<Arc<Timeline>>, change: impl FnOnce(&mut Timeline)) {
        let changed = known.map(|mut known| {
            change(Arc::make_mut(&mut known));
            known
        });
        *self.timeline.lock().unwrap_or_else(PoisonError::into_inner) = changed;
    }

    /// Appends to the log of operations, durably.
    pub(crate) fn log(&self, operations: &[Operation]) -> Result<()> {
        let known = self.forget_timeline();
        self.with_room(|| operations::append(self.store.layout(), operations))
            .or_fail("append to", self.store.layout().operations())?;
        self.keep_timeline(known, |timeline| timeline.operations.entries.extend_from_slice(operations));
        Ok(())
    }

    /// Records that the owner of the workspace excluded these patterns.
    pub(crate) fn confirm_excludes(&self, patterns: &[String]) -> Result<()> {
        confirmed_excludes::add(self.store.layout(), patterns)
            .or_fail("write", self.store.layout().confirmed_excludes())
    }

    /// Forgets the excluded patterns that are not among these.
    pub(crate) fn retain_excludes(&self, present: &[String]) -> Result<()> {
        confirmed_excludes::retain(self.store.layout(), present)
            .or_fail("write", self.store.layout().confirmed_excludes())
    }

    /// Counts one more step of a session that took `at_least` steps or more before. Returns the number of the step,
    /// from 1.
    pub(crate) fn count_step(&self, session: Option<&str>, at_least: u64, call: Option<RunningCall>) -> Result<u64> {
        step_counter::count(self.store.layout(), session, at_least, call).or_fail("write", self.store.layout().steps())
    }

    /// Notes that a call of a session has ended, or all of its calls.
    pub(crate) fn end_calls(&self, session: Option<&str>, id: Option<&str>) -> Result<()> {
        step_counter::end_calls(self.store.layout(), session, id).or_fail("write", self.store.layout().steps())
    }

    /// Returns the number of steps that a session has taken, which is `at_least` or more.
    pub(crate) fn counted_steps(&self, session: Option<&str>, at_least: u64) -> Result<u64> {
        step_counter::counted(self.store.layout(), session, at_least).or_fail("read", self.store.layout().steps())
    }

    /// Replaces the paths of a scope in a stored snapshot with the scanned ones.
    pub(crate) fn graft(
        &self,
        pack: &PackWriter,
        base: Option<&Snapshot>,
        partial: &mut Directory,
        scope: &Scope,
    ) -> Result<Snapshot> {
        let defaults = base.map(|base| base.defaults).unwrap_or_default();
        let grafted = snapshot::graft(&self.store.reader(), base, partial, scope, &defaults, pack);
        let ids = grafted.map_err(|problem| match problem {
            snapshot::GraftProblem::Object(problem) => self.store.damaged(problem),
            snapshot::GraftProblem::Io(source) => {
                Error::Io { action: "write into", path: self.store.layout().objects(), source }
            }
        })?;
        Ok(Snapshot::whole(ids, defaults))
    }

    /// Records that a restore is under way, durably.
    pub(crate) fn open_journal(&self, journal: Journal) -> Result<OpenJournal> {
        let phase = phase!("journal", steps);
        phase.record("steps", journal.steps.len());
        journal::write(self.store.layout(), journal).or_fail("write", self.store.layout().journal())
    }

    /// Records that the restore is done, durably.
    pub(crate) fn close_journal(&self) -> Result<()> {
        journal::close(self.store.layout()).or_fail("remove", self.store.layout().journal())
    }

    /// Returns whether a journal that can't be read was set aside.
    pub(crate) fn has_damaged_journal(&self) -> bool {
        private::exists(&self.store.layout().damaged_journal())
    }

    /// Sets aside a journal that can't be read.
    pub(crate) fn set_journal_aside(&self) -> Result<()> {
        let path = self.store.layout().journal();
        private::rename(&path, &self.store.layout().damaged_journal()).or_fail("rename", path)
    }

    /// Records staging areas before they are created.
    pub(crate) fn note_areas(&self, areas: &[Area]) -> Result<()> {
        journal::note_areas(self.store.layout(), areas).or_fail("write", self.store.layout().staging_note())
    }

    /// Returns the staging areas that were recorded and never cleared, including those in the store.
    pub(crate) fn leftover_areas(&self) -> Result<Vec<Area>> {
        let path = self.store.layout().staging_note();
        let mut areas = journal::noted_areas(self.store.layout()).or_fail("read", path)?;
        let stage = self.store.layout().stage();
        let names = || private::names(&stage).or_fail("read", &stage);
        for name in super::store::once_opened_up(self.store.layout().root(), names)? {
            let area = Area::Store { name: name.to_string_lossy().into_owned() };
            if !areas.contains(&area) {
                areas.push(area);
            }
        }
        Ok(areas)
    }

    /// Removes the record of the staging areas. Called when they are cleared.
    pub(crate) fn forget_areas(&self) -> Result<()> {
        journal::forget_areas(self.store.layout()).or_fail("remove", self.store.layout().staging_note())
    }

    /// Keeps the number of files in the store small.
    pub(crate) fn tidy(&self) -> Result<()> {
        let _phase = phase!("tidy");
        // Before the timeline and the log are rewritten: nothing else tells which checkpoints are lost and which are
        // deleted.
        self.mend_refs()?;
        let timeline = self.timeline()?;
        if timeline.is_stale() {
            self.forget_timeline();
            timeline::rewrite(self.store.layout(), &timeline, Durability::Unsynced)
                .or_fail("write", self.store.layout().timeline())?;
        }
        if timeline.operations.is_long() {
            self.shorten_log(&timeline)?;
        }
        self.pack_refs()?;
        if merge::are_many(self.store.layout()).or_fail("read", self.store.layout().packs())? {
            // Objects that no checkpoint needs should not be copied.
            if TidyNotes::read(self.store.layout()).is_compacting_worth_it(&*self.timeline()?) {
                self.compact()?;
            }
            merge::merge_packs(self.store.layout()).or_fail("merge the packs of", self.store.layout().packs())?;
        }
        Ok(())
    }

    /// Packs the refs if many are loose, and writes the index of the timeline if there is none for the packed refs.
    fn pack_refs(&self) -> Result<()> {
        let layout = self.store.layout();
        let timeline = self.timeline()?;
        let packed = if timeline.loose_refs > MANY_REFS { Packed::All } else { Packed::AsRead };
        if packed == Packed::AsRead && !timeline.lacks_index() {
            return Ok(());
        }
        self.forget_timeline();
        if packed == Packed::All {
            refs::pack(layout).or_fail("pack the refs of", layout.root())?;
        }
        timeline::write_index(layout, &timeline, packed).or_fail("write", layout.timeline_index())
    }

    /// Writes these notes for the next command. A failure only costs that command time: it does the work once more.
    fn keep_tidy_notes(&self, notes: &TidyNotes) {
        drop(notes.write(self.store.layout()));
    }

    /// Removes restores and deletions that nothing refers to any more from the log.
    fn shorten_log(&self, timeline: &Timeline) -> Result<()> {
        let layout = self.store.layout();
        let (notes, length) = (TidyNotes::read(layout), timeline.operations.entries.len());
        if !notes.is_shortening_worth_it(length) {
            return Ok(());
        }
        self.forget_timeline();
        let timeline = self.store.timeline()?;
        if !timeline.lost.is_empty() || !timeline.unreadable.is_empty() {
            return Ok(());
        }
        let shortened = operations::shortened(&timeline);
        let needed_log = shortened.as_ref().map_or(length, Vec::len) as u64;
        self.keep_tidy_notes(&TidyNotes { needed_log, ..notes });
        let Some(shortened) = shortened else { return Ok(()) };
        // First, and durably: a line of the timeline whose deletion is no longer in the log would look like a lost
        // checkpoint.
        timeline::rewrite(self.store.layout(), &timeline, Durability::Synced)
            .or_fail("write", self.store.layout().timeline())?;
        operations::replace(self.store.layout(), &shortened).or_fail("write", self.store.layout().operations())?;
        debug_assert!(
            operations::mean_the_same(&timeline, &self.store.timeline()?),
            "a shorter log says something else"
        );
        Ok(())
    }

    /// Puts lost refs back, and removes refs that an interrupted process left.
    pub(crate) fn mend_refs(&self) -> Result<()> {
        let timeline = self.timeline()?;
        if timeline.lost.is_empty() && timeline.stray_pins.is_empty() && timeline.stray_refs.is_empty() {
            return Ok(());
        }
        self.forget_timeline();
        let strays = &timeline.stray_refs;
        refs::remove(self.store.layout(), &strays.checkpoints, Removed::Checkpoints)
            .or_fail("remove from", self.store.layout().checkpoint_refs())?;
        refs::remove(self.store.layout(), &strays.deleted, Removed::Bin)
            .or_fail("remove from", self.store.layout().deleted_refs())?;
        for id in timeline.lost.iter().filter(|id| super::verify::is_whole(self.store(), id)) {
            refs::publish(self.store.layout(), id).or_fail("publish in", self.store.layout().checkpoint_refs())?;
        }
        let unpinned = refs::remove(self.store.layout(), &timeline.stray_pins, Removed::Pins);
        unpinned.or_fail("unpin in", self.store.layout().pinned_refs())
    }

    /// Recreates the indices of packs if they are missing or damaged.
    pub(crate) fn mend_indices(&self) -> Result<()> {
        reindex::mend(self.store.layout(), Which::Damaged).or_fail("index the packs of", self.store.layout().root())
    }

    /// Reclaims the space of objects that no checkpoint needs.
    pub(crate) fn compact(&self) -> Result<()> {
        let _phase = phase!("compact");
        // A checkpoint that lost its ref needs its objects. The pin of a deleted checkpoint would lead nowhere without
        // them.
        self.mend_refs()?;
        let layout = self.store.layout();
        collect::compact(&self.store).or_fail("compact", layout.root())?;
        let notes = TidyNotes::read(layout);
        let compacted = notes.compacted(&*self.timeline()?);
        if compacted != notes {
            self.keep_tidy_notes(&compacted);
        }
        Ok(())
    }

    /// Repacks the store to be as small as possible.
    pub(crate) fn condense(&self) -> Result<()> {
        let _phase = phase!("condense");
        deltify::condense(self.store()).or_fail("compress", self.store.layout().packs())
    }

    /// Pins a checkpoint, so that retention keeps it.
    pub(crate) fn pin(&self, id: &CheckpointId) -> Result<()> {
        self.forget_timeline();
        refs::pin(self.store.layout(), id).or_fail("pin in", self.store.layout().pinned_refs())
    }

    /// Unpins a checkpoint, so that retention may delete it again.
    pub(crate) fn unpin(&self, id: &CheckpointId) -> Result<()> {
        self.forget_timeline();
        refs::remove(self.store.layout(), &[*id], Removed::Pins).or_fail("unpin in", self.store.layout().pinned_refs())
    }

    /// Writes these notes for the next command. A failure only costs that command time: it finds them out again.
    pub(crate) fn keep_retention_notes(&self, notes: &RetentionNotes) {
        drop(notes.write(self.store.layout()));
    }

    /// Removes the refs of checkpoints, which then no longer exist. Their deletions are in the log by now.
    pub(crate) fn remove_refs(&self, ids: &[CheckpointId]) -> Result<()> {
        self.forget_timeline();
        self.with_room(|| refs::remove(self.store.layout(), ids, Removed::Checkpoints))
            .or_fail("remove from", self.store.layout().checkpoint_refs())
    }

    /// Runs `act`. If the disk is full, removes the stat cache to free its space, and retries. The next scan recreates
    /// the cache, and without the few bytes that a deletion writes, no space could ever be freed.
    pub(super) fn with_room<T>(&self, act: impl Fn() -> io::Result<T>) -> io::Result<T> {
        match act() {
            Err(error) if is_no_space(&error) => {
                private::remove(&self.store.layout().stat_cache())?;
                act()
            }
            done => done,
        }
    }
}
