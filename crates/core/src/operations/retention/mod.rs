//! Decides which checkpoints stay and which go: deleting, pinning, pruning.
//!
//! [`plan`] is the policy. [`unsaved`] finds the safety checkpoints that stay for their contents. [`limit`] finds the
//! checkpoints that have to go for the store to fit into `max_bytes`. [`clock`] tells when ages are not to be trusted.

mod clock;
mod limit;
mod plan;
mod unsaved;

use std::{fmt, time::Duration};

use jiff::Timestamp;

pub use clock::ClockDoubt;
use limit::Fit;
pub use plan::Verdict;
use plan::When;
use tracing::info;
pub use unsaved::Loss;

use crate::{
    error::{Error, ErrorCode, Result},
    events::Event,
    model::{Checkpoint, CheckpointId, Kind},
    spans::{Outcome, operation, phase, read_span, write_span},
    store::{Direction, Fate, LimitNote, Operation, RetentionNotes, Store, Timeline, TimelineEntry, Writer},
    workspace::Workspace,
};

/// The time, in milliseconds, after which a save checks again whether a limit can be met that could not be met before.
const LOOK_AGAIN_AFTER: i64 = 86_400_000;

/// The changes that [`Workspace::prune`] would make.
#[derive(Debug, Clone, Default)]
pub struct PrunePlan {
    /// A verdict on every checkpoint, newest first.
    pub verdicts: Vec<Verdict>,
    /// The size of the store.
    pub bytes: u64,
    /// Contents that exist nowhere else afterwards.
    pub losses: Vec<Loss>,
    /// Limits that are not applied, and why.
    pub not_applied: Vec<NotApplied>,
}

/// The outcome of [`Workspace::prune`].
#[derive(Debug, Clone, Default)]
pub struct Pruned {
    /// The checkpoints that were deleted.
    pub deleted: Vec<CheckpointId>,
    /// The number of checkpoints that stayed.
    pub kept: usize,
    /// The size of the store before.
    pub bytes_before: u64,
    /// The size of the store now.
    pub bytes_after: u64,
    /// Limits that were not applied, and why.
    pub not_applied: Vec<NotApplied>,
}

/// A checkpoint in the bin.
#[derive(Debug, Clone)]
pub struct Deleted {
    /// The checkpoint. Lists of more than a hundred changed or dirty paths are omitted.
    pub checkpoint: Checkpoint,
    /// The time of its deletion. `None` if it is not known any more.
    pub time: Option<Timestamp>,
}

/// The place of deleted checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Destination {
    /// They can be brought back for a while.
    Bin,
    /// They are gone.
    Nowhere,
}

/// A limit that is set and was not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotApplied {
    /// `max_age`, because the age of checkpoints is in doubt.
    MaxAge(ClockDoubt),
    /// `max_bytes`, because checkpoints that it may not remove need more.
    MaxBytes {
        /// The limit.
        max_bytes: u64,
        /// The bytes that those checkpoints need.
        needed: u64,
    },
}

impl NotApplied {
    /// Returns the key in the settings.
    pub fn key(&self) -> &'static str {
        match self {
            Self::MaxAge(_) => "max_age",
            Self::MaxBytes { .. } => "max_bytes",
        }
    }
}

impl fmt::Display for NotApplied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MaxAge(doubt @ ClockDoubt::Behind { checkpoint, .. }) => {
                let id = checkpoint.short();
                write!(
                    f,
                    "max_age is suspended: {doubt}; set the clock, or, if the time of that checkpoint is wrong, run: "
                )?;
                write!(f, "backtrail delete {id}")
            }
            Self::MaxAge(doubt @ ClockDoubt::SetBack { .. }) => {
                write!(f, "max_age is suspended: {doubt}; it applies again once the clock is right")
            }
            Self::MaxAge(doubt @ ClockDoubt::Ahead { .. }) => {
                write!(f, "max_age is suspended: {doubt}; it applies again once the clock is right or after a restart")
            }
            Self::MaxBytes { max_bytes, needed } => {
                write!(
                    f,
                    "max_bytes is {max_bytes} bytes, but checkpoints that it may not remove need {needed} bytes; "
                )?;
                write!(f, "nothing was removed: delete some of these checkpoints, or raise max_bytes")
            }
        }
    }
}

impl Workspace {
    /// Deletes checkpoints. They go to the bin, and [`Workspace::undo`] brings them back as long as they are there.
    /// Feature checkpoints are deleted only by force. Returns the deleted checkpoints, in the order given.
    pub fn delete(&self, ids: &[CheckpointId], force: bool, now: Timestamp) -> Result<Vec<CheckpointId>> {
        let has_bin = !self.settings().retention.deleted.is_zero();
        self.delete_to(if has_bin { Destination::Bin } else { Destination::Nowhere }, ids, force, now)
    }

    /// Deletes checkpoints for good, as [`Workspace::delete`] does if there is no bin. Those that are in the bin may be
    /// among them.
    pub fn delete_for_good(&self, ids: &[CheckpointId], force: bool, now: Timestamp) -> Result<Vec<CheckpointId>> {
        self.delete_to(Destination::Nowhere, ids, force, now)
    }

    fn delete_to(
        &self,
        to: Destination,
        ids: &[CheckpointId],
        force: bool,
        now: Timestamp,
    ) -> Result<Vec<CheckpointId>> {
        let delete = || self.report_failure(self.delete_now(to, ids, force, now), now);
        let span = write_span!(self.store_directory(), "delete", deleted);
        let deleted = operation(&span, delete)?;
        Outcome::on(&span).count("deleted", deleted.len());
        Ok(deleted)
    }

    fn delete_now(
        &self,
        to: Destination,
        ids: &[CheckpointId],
        force: bool,
        now: Timestamp,
    ) -> Result<Vec<CheckpointId>> {
        let (writer, _) = self.writer(now)?;
        let timeline = writer.timeline()?;
        let mut wanted: Vec<&TimelineEntry> = Vec::new();
        let mut from_bin: Vec<CheckpointId> = Vec::new();
        for id in ids {
            if to == Destination::Nowhere && timeline.is_binned(id) {
                from_bin.push(*id);
                continue;
            }
            let unknown = || Error::UnknownCheckpoint { word: id.to_string(), nearest: None };
            let entry = timeline.get(id).ok_or_else(unknown)?;
            if entry.kind == Kind::Feature && !force {
                return Err(Error::FeatureCheckpoint { id: *id });
            }
            if !wanted.iter().any(|other| other.id == *id) {
                wanted.push(entry);
            }
        }
        writer.empty_bin(&from_bin)?;
        let deleted = match to {
            Destination::Bin => self.move_to_bin(&writer, &wanted, now)?,
            Destination::Nowhere => self.forget_checkpoints(&writer, &wanted)?,
        };
        look_at_limit_again(&writer);
        for id in &deleted {
            self.emit(&writer, Event::CheckpointDeleted { checkpoint: *id }, now)?;
        }
        Ok(from_bin.into_iter().chain(deleted).collect())
    }

    /// Moves checkpoints to the bin. On a full disk, they are deleted for good, with what the bin has: that frees space.
    fn move_to_bin(&self, writer: &Writer, going: &[&TimelineEntry], now: Timestamp) -> Result<Vec<CheckpointId>> {
        if going.is_empty() {
            return Ok(Vec::new());
        }
        match writer.bin(going, Direction::Forward, now) {
            Ok(()) => Ok(going.iter().map(|entry| entry.id).collect()),
            Err(error) if error.code() == ErrorCode::NoSpace => {
                let binned = writer.timeline()?.binned.clone();
                writer.empty_bin(&binned)?;
                self.forget_checkpoints(writer, going)
            }
            Err(error) => Err(error),
        }
    }

    /// Empties the bin on a full disk, and reclaims its space. Returns whether there was anything in it.
    pub(crate) fn make_room(&self, writer: &Writer) -> Result<bool> {
        let binned = writer.timeline()?.binned.clone();
        if binned.is_empty() {
            return Ok(false);
        }
        writer.empty_bin(&binned)?;
        writer.compact()?;
        Ok(true)
    }

    /// Removes the checkpoints from the bin that were deleted long enough ago.
    fn expire_bin(&self, writer: &Writer, is_doubtful: bool, now: Timestamp) -> Result<()> {
        let timeline = writer.timeline()?;
        if timeline.binned.is_empty() || is_doubtful {
            return Ok(());
        }
        let fates = timeline.operations.fates();
        let oldest = now.as_millisecond() - self.settings().retention.deleted.as_millis() as i64;
        let is_old = |id: &&CheckpointId| matches!(fates.get(id), Some(Fate::Binned(time)) if *time <= oldest);
        writer.empty_bin(&timeline.binned.iter().filter(is_old).copied().collect::<Vec<_>>())
    }

    /// Returns the checkpoints in the bin, the last deleted first.
    pub fn deleted(&self) -> Result<Vec<Deleted>> {
        let Some(store) = self.store()? else { return Ok(Vec::new()) };
        let timeline = store.timeline()?;
        let fates = timeline.operations.fates();
        let mut found = Vec::new();
        for id in &timeline.binned {
            let time = match fates.get(id) {
                Some(Fate::Binned(time)) => Timestamp::from_millisecond(*time).ok(),
                _ => None,
            };
            found.push(Deleted { checkpoint: store.deleted_checkpoint(id)?, time });
        }
        found.sort_by_key(|deleted| std::cmp::Reverse((deleted.time, deleted.checkpoint.sequence)));
        Ok(found)
    }

    /// Returns the checkpoints that are older than `age`. Feature checkpoints are included only by force. The
    /// checkpoint that the workspace stands on, and pinned ones, are never included.
    pub fn older_than(
        &self,
        age: Duration,
        kind: Option<Kind>,
        force: bool,
        now: Timestamp,
    ) -> Result<Vec<CheckpointId>> {
        let Some(store) = self.store()? else { return Ok(Vec::new()) };
        let timeline = store.timeline()?;
        let oldest = now.as_millisecond() - age.as_millis() as i64;
        let current = timeline.current().map(|entry| entry.id);
        let is_wanted = |entry: &&TimelineEntry| {
            entry.time <= oldest
                && kind.is_none_or(|kind| kind == entry.kind)
                && (force || entry.kind != Kind::Feature)
                && Some(entry.id) != current
                && !entry.pinned
        };
        Ok(timeline.entries().iter().filter(is_wanted).map(|entry| entry.id).collect())
    }

    /// Protects a checkpoint from retention.
    pub fn pin(&self, id: &CheckpointId, now: Timestamp) -> Result<Checkpoint> {
        let pin = || self.report_failure(self.change_pin(id, now, Writer::pin), now);
        let span = write_span!(self.store_directory(), "pin", checkpoint);
        let found = operation(&span, pin)?;
        Outcome::on(&span).id("checkpoint", Some(id));
        Ok(found)
    }

    /// Makes a checkpoint subject to retention again.
    pub fn unpin(&self, id: &CheckpointId, now: Timestamp) -> Result<Checkpoint> {
        let unpin = || self.report_failure(self.change_pin(id, now, Writer::unpin), now);
        let span = write_span!(self.store_directory(), "unpin", checkpoint);
        let found = operation(&span, unpin)?;
        Outcome::on(&span).id("checkpoint", Some(id));
        Ok(found)
    }

    fn change_pin(
        &self,
        id: &CheckpointId,
        now: Timestamp,
        change: fn(&Writer, &CheckpointId) -> Result<()>,
    ) -> Result<Checkpoint> {
        let (writer, _) = self.writer(now)?;
        self.get(id)?;
        change(&writer, id)?;
        look_at_limit_again(&writer);
        self.get(id)
    }

    /// Returns the verdict of the retention policy on every checkpoint. Only reads.
    pub fn plan_prune(&self, now: Timestamp) -> Result<PrunePlan> {
        let span = read_span!(self.store_directory(), "plan_prune", deleted, bytes);
        let plan = operation(&span, || self.plan_prune_now(now))?;
        let deleted = plan.verdicts.iter().filter(|verdict| !verdict.keep).count();
        Outcome::on(&span).count("deleted", deleted).number("bytes", plan.bytes);
        Ok(plan)
    }

    fn plan_prune_now(&self, now: Timestamp) -> Result<PrunePlan> {
        let Some(store) = self.store()? else { return Ok(PrunePlan::default()) };
        let timeline = store.timeline()?;
        let limits = &self.settings().retention;
        let when = self.when(&store.retention_notes(), &timeline, now);
        let mut verdicts = plan::plan(&timeline, self.settings(), &when);
        unsaved::spare_by_contents(&store, &timeline, &mut verdicts, limits, &when);
        let bytes = store.bytes()?;
        let mut not_applied = self.suspended(when.doubt.as_ref());
        not_applied.extend(self.plan_limit(&store, &timeline, &when, &mut verdicts, bytes)?);
        let losses = unsaved::losses(&store, &verdicts);
        Ok(PrunePlan { verdicts, bytes, losses, not_applied })
    }

    /// Returns the space that the store takes up. Only reads.
    pub fn store_bytes(&self) -> Result<u64> {
        self.store()?.map_or(Ok(0), |store| store.bytes())
    }

    /// Returns the contents that exist nowhere else once these checkpoints are deleted. Only safety checkpoints are
    /// examined.
    pub fn losses_without(&self, ids: &[CheckpointId]) -> Result<Vec<Loss>> {
        let Some(store) = self.store()? else { return Ok(Vec::new()) };
        let timeline = store.timeline()?;
        let verdict = |entry: &TimelineEntry| Verdict {
            id: entry.id,
            kind: entry.kind,
            keep: !ids.contains(&entry.id),
            reason: String::new(),
        };
        let verdicts: Vec<Verdict> = timeline.entries().iter().rev().map(verdict).collect();
        Ok(unsaved::losses(&store, &verdicts))
    }

    /// Returns why the age of checkpoints is not to be trusted now. Only reads.
    pub fn clock_doubt(&self, now: Timestamp) -> Result<Option<ClockDoubt>> {
        let Some(store) = self.store()? else { return Ok(None) };
        Ok(self.when(&store.retention_notes(), &store.timeline()?, now).doubt)
    }

    /// Applies the retention policy, and reclaims the space of all deleted checkpoints.
    pub fn prune(&self, now: Timestamp) -> Result<Pruned> {
        let span = write_span!(self.store_directory(), "prune", deleted, kept, bytes_before, bytes_after);
        let pruned = operation(&span, || self.report_failure(self.prune_now(now), now))?;
        Outcome::on(&span).count("deleted", pruned.deleted.len()).count("kept", pruned.kept);
        Outcome::on(&span).number("bytes_before", pruned.bytes_before).number("bytes_after", pruned.bytes_after);
        Ok(pruned)
    }

    fn prune_now(&self, now: Timestamp) -> Result<Pruned> {
        if self.store()?.is_none() {
            return Ok(Pruned::default());
        }
        let (writer, _) = self.writer(now)?;
        let bytes_before = writer.store().bytes()?;
        let before = writer.store().retention_notes();
        let mut notes = before.clone();
        let timeline = writer.timeline()?;
        let when = self.when(&notes, &timeline, now);
        let mut verdicts = plan::plan(&timeline, self.settings(), &when);
        unsaved::spare_by_contents(writer.store(), &timeline, &mut verdicts, &self.settings().retention, &when);
        writer.empty_bin(&timeline.binned)?;
        let mut deleted = self.forget_rejected(&writer, &timeline, &verdicts)?;
        let mut lack = lack_of_room(writer.compact())?;
        lack = lack.or(lack_of_room(writer.condense())?);
        let limit = match lack {
            Some(_) => notes.limit,
            None => {
                let (removed, limit) = self.shrink(&writer, &when)?;
                deleted.extend(removed);
                limit
            }
        };
        if !deleted.is_empty() {
            self.emit(&writer, Event::CheckpointsPruned { checkpoints: deleted.clone() }, now)?;
        }
        self.note_clock(&mut notes, now);
        notes.limit = limit;
        keep_notes(&writer, &before, &notes);
        let mut not_applied = self.suspended(when.doubt.as_ref());
        not_applied.extend(limit.map(NotApplied::from));
        let kept = writer.timeline()?.entries().len();
        let bytes_after = writer.store().bytes()?;
        match lack {
            // Nothing was reclaimed, and this is the reason.
            Some(error) if deleted.is_empty() && bytes_after >= bytes_before => Err(error),
            _ => Ok(Pruned { deleted, kept, bytes_before, bytes_after, not_applied }),
        }
    }

    /// Applies the policy after a save. Deleted checkpoints are gone at once. Their space is reclaimed when packs are
    /// merged. Returns the limits that were not applied.
    pub(crate) fn retain(&self, writer: &Writer, now: Timestamp) -> Result<Vec<NotApplied>> {
        let phase = phase!("retain", deleted);
        let before = writer.store().retention_notes();
        let mut notes = before.clone();
        let timeline = writer.timeline()?;
        let limits = &self.settings().retention;
        if let Some(newest) = timeline.entries().last() {
            self.correct_time(&mut notes, newest.id, now);
            notes.times.retain(|id, _| timeline.get(id).is_some());
        }
        let doubt = clock::doubt(&timeline, now, notes.clock.as_ref(), self.boot_time().as_ref());
        let mut not_applied = self.suspended(doubt.as_ref());
        self.expire_bin(writer, doubt.is_some(), now)?;
        let mut deleted = if plan::keeps_all(&timeline, self.settings(), now, doubt.as_ref()) {
            notes.unsaved.clear();
            Vec::new()
        } else {
            let when = When::new(&timeline, now, doubt, &notes.times);
            let mut verdicts = plan::plan(&timeline, self.settings(), &when);
            unsaved::spare_by_neighbours(writer.store(), &timeline, &mut verdicts, limits, &when, &mut notes.unsaved);
            self.forget_rejected(writer, &timeline, &verdicts)?
        };
        if let Some(max) = limits.max_bytes
            && writer.store().bytes()? > max
        {
            if notes.limit.is_none_or(|limit| !limit.is_good_for(max, now)) {
                let when = self.when(&notes, &timeline, now);
                let (removed, limit) = self.shrink_roughly(writer, &when, max)?;
                deleted.extend(removed);
                notes.limit = limit;
            }
            not_applied.extend(notes.limit.map(NotApplied::from));
        }
        phase.record("deleted", deleted.len());
        if !deleted.is_empty() {
            info!(name: "pruned", checkpoints = deleted.len(), "retention removed checkpoints");
            self.emit(writer, Event::CheckpointsPruned { checkpoints: deleted }, now)?;
        }
        keep_notes(writer, &before, &notes);
        Ok(not_applied)
    }

    fn when(&self, notes: &RetentionNotes, timeline: &Timeline, now: Timestamp) -> When {
        let doubt = clock::doubt(timeline, now, notes.clock.as_ref(), self.boot_time().as_ref());
        When::new(timeline, now, doubt, &notes.times)
    }

    /// Notes the time of a checkpoint that was just published, if the clock was set back. Without the note, the
    /// checkpoint would look old as soon as the clock is right again.
    pub(crate) fn note_time(&self, writer: &Writer, id: CheckpointId, now: Timestamp) {
        let before = writer.store().retention_notes();
        let mut notes = before.clone();
        self.correct_time(&mut notes, id, now);
        keep_notes(writer, &before, &notes);
    }

    fn correct_time(&self, notes: &mut RetentionNotes, id: CheckpointId, now: Timestamp) {
        self.note_clock(notes, now);
        let corrected = clock::corrected(now, notes.clock.as_ref(), self.boot_time().as_ref());
        notes.times.extend(corrected.map(|time| (id, time)));
    }

    fn note_clock(&self, notes: &mut RetentionNotes, now: Timestamp) {
        notes.clock = clock::note(notes.clock.take(), now, self.boot_time().as_ref());
    }

    /// Returns `max_age`, if it is set and the clock is in doubt.
    fn suspended(&self, doubt: Option<&ClockDoubt>) -> Vec<NotApplied> {
        let doubt = doubt.filter(|_| self.settings().retention.max_age.is_some());
        doubt.cloned().map(NotApplied::MaxAge).into_iter().collect()
    }

    fn forget_rejected(&self, writer: &Writer, timeline: &Timeline, verdicts: &[Verdict]) -> Result<Vec<CheckpointId>> {
        let going = verdicts.iter().filter(|verdict| !verdict.keep).filter_map(|verdict| timeline.get(&verdict.id));
        self.forget_checkpoints(writer, &going.collect::<Vec<_>>())
    }

    /// Marks the verdicts on checkpoints that `max_bytes` removes. Returns the limit if it removes nothing because it
    /// can't be met.
    fn plan_limit(
        &self,
        store: &Store,
        timeline: &Timeline,
        when: &When,
        verdicts: &mut [Verdict],
        bytes: u64,
    ) -> Result<Option<NotApplied>> {
        let limits = &self.settings().retention;
        let Some(max) = limits.max_bytes.filter(|max| bytes > *max) else { return Ok(None) };
        match self.fit(store, timeline, when, max, 0)? {
            Fit::Never { needed } => Ok(Some(NotApplied::MaxBytes { max_bytes: max, needed })),
            Fit::Without(going) => {
                for verdict in verdicts.iter_mut().filter(|verdict| verdict.keep && going.contains(&verdict.id)) {
                    verdict.keep = false;
                    verdict.reason = format!("max_bytes is {max}");
                }
                Ok(None)
            }
        }
    }

    fn fit(&self, store: &Store, timeline: &Timeline, when: &When, max: u64, unexplained: u64) -> Result<Fit> {
        match limit::fit(store, timeline, &self.settings().retention, when, max, unexplained) {
            // Sizes can't be determined if objects are missing. `verify` names them.
            Err(Error::StoreDamaged { .. }) => Ok(Fit::Without(Vec::new())),
            fit => fit,
        }
    }

    /// Deletes the oldest checkpoints that may go until the store is no larger than `max_bytes`. The caller has
    /// condensed the objects.
    fn shrink(&self, writer: &Writer, when: &When) -> Result<(Vec<CheckpointId>, Option<LimitNote>)> {
        let mut deleted = Vec::new();
        let Some(max) = self.settings().retention.max_bytes else { return Ok((deleted, None)) };
        while writer.store().bytes()? > max {
            let timeline = writer.timeline()?;
            let unexplained = limit::unexplained_bytes(writer.store(), &timeline).unwrap_or(0);
            match self.fit(writer.store(), &timeline, when, max, unexplained)? {
                Fit::Never { needed } => return Ok((deleted, Some(when.limit_note(max, needed)))),
                Fit::Without(going) if going.is_empty() => break,
                Fit::Without(going) => deleted.extend(self.forget_by_id(writer, &timeline, &going)?),
            }
            writer.compact()?;
            writer.condense()?;
        }
        Ok((deleted, None))
    }

    /// Like [`Self::shrink`], but after a save, which has no time to condense: the space is reclaimed as far as that is
    /// quick.
    fn shrink_roughly(&self, writer: &Writer, when: &When, max: u64) -> Result<(Vec<CheckpointId>, Option<LimitNote>)> {
        writer.empty_bin(&writer.timeline()?.binned)?;
        writer.compact()?;
        if writer.store().bytes()? <= max {
            return Ok((Vec::new(), None));
        }
        let timeline = writer.timeline()?;
        match self.fit(writer.store(), &timeline, when, max, 0)? {
            Fit::Never { needed } => Ok((Vec::new(), Some(when.limit_note(max, needed)))),
            Fit::Without(going) => {
                let deleted = self.forget_by_id(writer, &timeline, &going)?;
                writer.compact()?;
                Ok((deleted, None))
            }
        }
    }

    fn forget_by_id(&self, writer: &Writer, timeline: &Timeline, ids: &[CheckpointId]) -> Result<Vec<CheckpointId>> {
        let going: Vec<&TimelineEntry> = ids.iter().filter_map(|id| timeline.get(id)).collect();
        self.forget_checkpoints(writer, &going)
    }

    fn forget_checkpoints(&self, writer: &Writer, going: &[&TimelineEntry]) -> Result<Vec<CheckpointId>> {
        if going.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<CheckpointId> = going.iter().map(|entry| entry.id).collect();
        let traces: Vec<Operation> = going
            .iter()
            .map(|entry| Operation::Deleted { id: entry.id, sequence: entry.sequence, parent: entry.parent })
            .collect();
        // The trace comes first: the parent of a deleted checkpoint must be known as long as anything refers to that
        // checkpoint.
        writer.log(&traces)?;
        writer.remove_refs(&ids)?;
        Ok(ids)
    }
}

impl When {
    fn limit_note(&self, max_bytes: u64, needed: u64) -> LimitNote {
        LimitNote { max_bytes, needed, time: self.now.as_millisecond() }
    }
}

impl LimitNote {
    /// Returns whether the note still holds for this limit.
    fn is_good_for(&self, max_bytes: u64, now: Timestamp) -> bool {
        let age = now.as_millisecond().saturating_sub(self.time);
        self.max_bytes == max_bytes && (0..LOOK_AGAIN_AFTER).contains(&age)
    }
}

impl From<LimitNote> for NotApplied {
    fn from(note: LimitNote) -> Self {
        Self::MaxBytes { max_bytes: note.max_bytes, needed: note.needed }
    }
}

fn keep_notes(writer: &Writer, before: &RetentionNotes, notes: &RetentionNotes) {
    if before != notes {
        writer.keep_retention_notes(notes);
    }
}

/// Discards the note that a limit could not be met: the set of checkpoints that must stay has changed.
fn look_at_limit_again(writer: &Writer) {
    let before = writer.store().retention_notes();
    keep_notes(writer, &before, &RetentionNotes { limit: None, ..before.clone() });
}

/// Returns the error of a step that had no room on a full disk. The space that earlier steps reclaimed stays reclaimed.
fn lack_of_room(done: Result<()>) -> Result<Option<Error>> {
    match done {
        Ok(()) => Ok(None),
        Err(error) if error.code() == ErrorCode::NoSpace => Ok(Some(error)),
        Err(error) => Err(error),
    }
}
