//! Which checkpoints stay and which go: deleting, pinning, pruning.
//!
//! What to keep is a pure function of the records and the time; [`plan`] says it for every checkpoint with its reason.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;

use crate::{
    error::{Error, ErrorCode, Result},
    events::Event,
    model::{Checkpoint, CheckpointId, Kind},
    settings::Settings,
    store::{Operation, Timeline, TimelineEntry, Writer},
    workspace::Workspace,
};

/// What retention says of one checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Which.
    pub id: CheckpointId,
    /// Its kind.
    pub kind: Kind,
    /// Does it stay?
    pub keep: bool,
    /// Why.
    pub reason: String,
}

/// What [`Workspace::prune`] would do.
#[derive(Debug, Clone)]
pub struct PrunePlan {
    /// A verdict on every checkpoint, newest first.
    pub verdicts: Vec<Verdict>,
    /// How large the store is.
    pub bytes: u64,
}

/// The outcome of [`Workspace::prune`].
#[derive(Debug, Clone)]
pub struct Pruned {
    /// What went.
    pub deleted: Vec<CheckpointId>,
    /// How many stayed.
    pub kept: usize,
    /// How large the store was.
    pub bytes_before: u64,
    /// How large it is.
    pub bytes_after: u64,
}

impl Workspace {
    /// Forgets checkpoints; feature ones only by force. Says which, in the order given.
    pub fn delete(&self, ids: &[CheckpointId], force: bool, now: Timestamp) -> Result<Vec<CheckpointId>> {
        self.told(self.delete_now(ids, force, now), now)
    }

    fn delete_now(&self, ids: &[CheckpointId], force: bool, now: Timestamp) -> Result<Vec<CheckpointId>> {
        let (writer, _) = self.writer(now)?;
        let timeline = writer.timeline()?;
        let mut wanted: Vec<&TimelineEntry> = Vec::new();
        for id in ids {
            let unknown = || Error::UnknownCheckpoint { word: id.to_string(), nearest: None };
            let entry = timeline.get(id).ok_or_else(unknown)?;
            if entry.kind == Kind::Feature && !force {
                return Err(Error::FeatureCheckpoint { id: *id });
            }
            if !wanted.iter().any(|other| other.id == *id) {
                wanted.push(entry);
            }
        }
        let deleted = self.forget_checkpoints(&writer, &wanted)?;
        for id in &deleted {
            self.emit(&writer, Event::CheckpointDeleted { checkpoint: *id }, now)?;
        }
        Ok(deleted)
    }

    /// The checkpoints that are older than this; feature ones only by force, where the workspace stands never.
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

    /// Keeps a checkpoint from retention.
    pub fn pin(&self, id: &CheckpointId, now: Timestamp) -> Result<Checkpoint> {
        self.told(self.change_pin(id, now, Writer::pin), now)
    }

    /// Leaves a checkpoint to retention again.
    pub fn unpin(&self, id: &CheckpointId, now: Timestamp) -> Result<Checkpoint> {
        self.told(self.change_pin(id, now, Writer::unpin), now)
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
        self.get(id)
    }

    /// What the retention policy says of every checkpoint. Only reads.
    pub fn plan_prune(&self, now: Timestamp) -> Result<PrunePlan> {
        let Some(store) = self.store()? else { return Ok(PrunePlan { verdicts: Vec::new(), bytes: 0 }) };
        let bytes = store.bytes()?;
        Ok(PrunePlan { verdicts: plan(&store.timeline()?, self.settings(), now), bytes })
    }

    /// Applies the retention policy and reclaims the space of everything that is gone.
    pub fn prune(&self, now: Timestamp) -> Result<Pruned> {
        self.told(self.prune_now(now), now)
    }

    fn prune_now(&self, now: Timestamp) -> Result<Pruned> {
        if self.store()?.is_none() {
            return Ok(Pruned { deleted: Vec::new(), kept: 0, bytes_before: 0, bytes_after: 0 });
        }
        let (writer, _) = self.writer(now)?;
        let bytes_before = writer.bytes()?;
        let mut deleted = self.apply_policy(&writer, now)?;
        let mut lack = lack_of_room(writer.compact())?;
        lack = lack.or(lack_of_room(writer.condense())?);
        if lack.is_none() {
            deleted.extend(self.shrink(&writer)?);
        }
        if !deleted.is_empty() {
            self.emit(&writer, Event::CheckpointsPruned { checkpoints: deleted.clone() }, now)?;
        }
        let kept = writer.timeline()?.entries().len();
        let bytes_after = writer.bytes()?;
        match lack {
            // Nothing was reclaimed, and that is why.
            Some(error) if deleted.is_empty() && bytes_after >= bytes_before => Err(error),
            _ => Ok(Pruned { deleted, kept, bytes_before, bytes_after }),
        }
    }

    /// Applies the policy after a save: what is gone is gone, its space is reclaimed when packs are merged.
    pub(crate) fn retain(&self, writer: &Writer, now: Timestamp) -> Result<()> {
        let mut deleted = self.apply_policy(writer, now)?;
        if let Some(max) = self.settings().retention.max_bytes
            && writer.bytes()? > max
        {
            writer.compact()?;
            deleted.extend(self.shrink(writer)?);
        }
        if !deleted.is_empty() {
            self.emit(writer, Event::CheckpointsPruned { checkpoints: deleted }, now)?;
        }
        Ok(())
    }

    fn apply_policy(&self, writer: &Writer, now: Timestamp) -> Result<Vec<CheckpointId>> {
        let timeline = writer.timeline()?;
        let verdicts = plan(&timeline, self.settings(), now);
        let going = verdicts.iter().filter(|verdict| !verdict.keep).filter_map(|verdict| timeline.get(&verdict.id));
        self.forget_checkpoints(writer, &going.collect::<Vec<_>>())
    }

    /// Takes the oldest that may go until the store is as small as the settings want it.
    fn shrink(&self, writer: &Writer) -> Result<Vec<CheckpointId>> {
        let Some(max) = self.settings().retention.max_bytes else { return Ok(Vec::new()) };
        let mut deleted = Vec::new();
        while writer.bytes()? > max {
            let timeline = writer.timeline()?;
            let protected = protected(&timeline);
            let mut going: Vec<&TimelineEntry> =
                timeline.entries().iter().filter(|entry| !protected.contains_key(&entry.id)).collect();
            if going.is_empty() {
                break;
            }
            // Space is known only after it was reclaimed, so it goes in steps.
            going.truncate((going.len() / 8).max(1));
            deleted.extend(self.forget_checkpoints(writer, &going)?);
            writer.compact()?;
        }
        Ok(deleted)
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
        // The trace comes first: what followed a deleted checkpoint must be known as long as anything refers to it.
        writer.log(&traces)?;
        writer.remove_refs(&ids)?;
        Ok(ids)
    }
}

/// Returns the error of a step that had no room on a full disk: what the steps before it reclaimed stays reclaimed.
fn lack_of_room(done: Result<()>) -> Result<Option<Error>> {
    match done {
        Ok(()) => Ok(None),
        Err(error) if error.code() == ErrorCode::NoSpace => Ok(Some(error)),
        Err(error) => Err(error),
    }
}

/// What retention never takes, and why.
fn protected(timeline: &Timeline) -> HashMap<CheckpointId, &'static str> {
    let mut found = HashMap::new();
    let latest_safety = timeline.entries().iter().rev().find(|entry| entry.kind == Kind::Safety);
    for entry in timeline.entries() {
        let reason = match entry.kind {
            Kind::Manual => Some("manual checkpoints stay until they are deleted"),
            Kind::Feature => Some("feature checkpoints stay for ever"),
            _ if entry.pinned => Some("it is pinned"),
            _ => None,
        };
        if let Some(reason) = reason {
            found.insert(entry.id, reason);
        }
    }
    if let Some(current) = timeline.current() {
        found.insert(current.id, "the workspace stands on it");
    }
    if let Some(safety) = latest_safety {
        found.insert(safety.id, "undo needs it");
    }
    // Not always the same: what was written during a restore becomes a later one.
    if let Some(safety) = timeline.operations.restores().filter_map(|restored| restored.safety).next_back() {
        found.insert(safety, "undo needs it");
    }
    found
}

/// The verdict on every checkpoint, newest first.
pub(crate) fn plan(timeline: &Timeline, settings: &Settings, now: Timestamp) -> Vec<Verdict> {
    let protected = protected(timeline);
    let limits = &settings.retention;
    let oldest = limits.max_age.map(|age| now.as_millisecond() - age.as_millis() as i64);
    let mut of_kind: HashMap<Kind, u64> = HashMap::new();
    let mut together = 0;
    let mut verdicts = Vec::with_capacity(timeline.entries().len());
    for entry in timeline.entries().iter().rev() {
        let limit = match entry.kind {
            Kind::Manual | Kind::Feature => None,
            Kind::Automatic => Some(limits.automatic),
            Kind::Session => Some(limits.session),
            Kind::Turn => Some(limits.turn),
            Kind::Step => Some(limits.step),
            Kind::Safety => Some(limits.safety),
        };
        let count = of_kind.entry(entry.kind).or_default();
        *count += 1;
        let is_over_kind = limit.is_some_and(|limit| *count > limit);
        let counts_together = matches!(entry.kind, Kind::Step | Kind::Automatic | Kind::Session | Kind::Safety);
        let is_over_sum = counts_together && !is_over_kind && {
            together += 1;
            together > settings.checkpoints.max_checkpoints
        };
        let is_old = oldest.is_some_and(|oldest| entry.time < oldest);
        let verdict = |keep: bool, reason: String| Verdict { id: entry.id, kind: entry.kind, keep, reason };
        verdicts.push(if let Some(reason) = protected.get(&entry.id) {
            verdict(true, (*reason).to_owned())
        } else if is_over_kind {
            verdict(false, format!("only the last {} of kind {} are kept", limit.unwrap_or_default(), entry.kind))
        } else if is_over_sum {
            verdict(false, format!("max_checkpoints is {}", settings.checkpoints.max_checkpoints))
        } else if is_old {
            verdict(false, "it is older than max_age".into())
        } else {
            verdict(true, format!("one of the last of kind {}", entry.kind))
        });
    }
    verdicts
}
