//! All checkpoints in order: an index over their records, so that listing a few of them does not read all commits.
//!
//! The file is a cache. A checkpoint with a ref but no line in the file is read from its commit. A checkpoint with a
//! line but no ref is gone.

use std::{
    collections::{HashMap, HashSet},
    io,
    sync::{Arc, OnceLock},
};

use super::{
    Layout, Operations, Record,
    checksummed_lines::{self, Lines},
    operations::Fate,
    refs::Refs,
};
use crate::{
    disk::private::{self, Durability},
    error::Error,
    model::{CheckpointId, Kind, Scope},
};

/// One checkpoint in the timeline. Its record is parsed on first use.
#[derive(Debug, Clone)]
pub(crate) struct TimelineEntry {
    pub(crate) id: CheckpointId,
    pub(crate) sequence: u64,
    pub(crate) kind: Kind,
    pub(crate) time: i64,
    pub(crate) parent: Option<CheckpointId>,
    pub(crate) pinned: bool,
    json: Arc<str>,
    record: OnceLock<Option<Arc<Record>>>,
}

impl TimelineEntry {
    /// Returns the paths that the checkpoint was taken of.
    pub(crate) fn scope(&self) -> Scope {
        self.record().map(|record| record.scope.clone()).unwrap_or_default()
    }

    fn of(id: CheckpointId, record: Record) -> Result<Self, serde_json::Error> {
        Ok(Self {
            id,
            sequence: record.sequence,
            kind: record.kind,
            time: record.time,
            parent: record.parent,
            pinned: false,
            json: serde_json::to_string(&record)?.into(),
            record: OnceLock::from(Some(Arc::new(record))),
        })
    }

    /// Returns the whole record, or `None` if this version can't parse it.
    pub(crate) fn record(&self) -> Option<Arc<Record>> {
        self.record.get_or_init(|| serde_json::from_str(&self.json).ok().map(Arc::new)).clone()
    }

    fn to_line(&self) -> String {
        let parent = self.parent.map_or_else(|| "-".to_owned(), |parent| parent.to_string());
        checksummed_lines::seal(&format!(
            "{} {} {} {} {parent} {}",
            self.id, self.sequence, self.kind, self.time, self.json
        ))
    }

    fn parse(line: &str) -> Option<Self> {
        let mut parts = line.splitn(6, ' ');
        let id = parts.next()?.parse().ok()?;
        let sequence = parts.next()?.parse().ok()?;
        let kind = parts.next()?.parse().ok()?;
        let time = parts.next()?.parse().ok()?;
        let parent = match parts.next()? {
            "-" => None,
            parent => Some(parent.parse().ok()?),
        };
        let json = parts.next()?.into();
        Some(Self { id, sequence, kind, time, parent, pinned: false, json, record: OnceLock::new() })
    }
}

/// The checkpoints of a store, in the order of their creation, with the log of operations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timeline {
    entries: Vec<TimelineEntry>,
    positions: HashMap<CheckpointId, usize>,
    pub(crate) operations: Operations,
    /// Refs whose commit can't be read.
    pub(crate) unreadable: Vec<CheckpointId>,
    pub(crate) loose_refs: usize,
    /// Checkpoints that were published, were never deleted, and have no ref.
    pub(super) lost: Vec<CheckpointId>,
    /// Pins of deleted checkpoints: the process that deleted them was killed before it removed the pins.
    pub(super) stray_pins: Vec<CheckpointId>,
    /// The checkpoints in the bin, in the order of their ids.
    pub(crate) binned: Vec<CheckpointId>,
    /// Refs that an interrupted process left: of checkpoints that are in the bin, and of the bin.
    pub(super) stray_refs: StrayRefs,
    /// Set if the file is out of date or damaged and has to be rewritten.
    pub(super) is_stale: bool,
}

/// Refs that an interrupted process left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct StrayRefs {
    /// Checkpoints that are in the bin and still have their ref.
    pub(super) checkpoints: Vec<CheckpointId>,
    /// Checkpoints that have a ref in the bin and are not in the bin.
    pub(super) deleted: Vec<CheckpointId>,
}

impl StrayRefs {
    /// Takes the checkpoints out of the refs that the log knows as deleted, and out of the bin those that are not.
    ///
    /// The log decides, so that a deletion and its undo concern all of their checkpoints at once. A ref is hidden only
    /// if the bin has the checkpoint: a damaged log never hides one.
    fn split_from(refs: &mut Refs, fates: &HashMap<CheckpointId, Fate>) -> Self {
        let is_binned = |id: &CheckpointId| matches!(fates.get(id), Some(Fate::Binned(_)));
        let mut checkpoints: Vec<CheckpointId> =
            refs.deleted.iter().copied().filter(|id| is_binned(id) && refs.checkpoints.contains(id)).collect();
        refs.checkpoints.retain(|id| !checkpoints.contains(id));
        let is_gone = |id: &CheckpointId| fates.get(id) == Some(&Fate::Deleted);
        let mut deleted: Vec<CheckpointId> =
            refs.deleted.iter().copied().filter(|id| refs.checkpoints.contains(id) || is_gone(id)).collect();
        refs.deleted.retain(|id| !deleted.contains(id));
        checkpoints.sort();
        deleted.sort();
        Self { checkpoints, deleted }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.checkpoints.is_empty() && self.deleted.is_empty()
    }
}

impl Timeline {
    pub(super) fn load(
        layout: &Layout,
        read_record: &dyn Fn(&CheckpointId) -> io::Result<Option<Record>>,
    ) -> io::Result<Self> {
        let mut refs = Refs::read(layout)?;
        let operations = Operations::read(layout)?;
        let fates = operations.fates();
        let stray_refs = StrayRefs::split_from(&mut refs, &fates);
        let bytes = private::read(&layout.timeline())?.unwrap_or_default();
        let mut found: HashMap<CheckpointId, TimelineEntry> = HashMap::with_capacity(refs.checkpoints.len());
        let mut surplus = 0;
        let mut without_ref = HashSet::new();
        let Lines { sound, damaged } = Lines::of(&bytes);
        for entry in sound.into_iter().filter_map(TimelineEntry::parse) {
            if !refs.checkpoints.contains(&entry.id) {
                without_ref.insert(entry.id);
                surplus += 1;
            } else if found.insert(entry.id, entry).is_some() {
                surplus += 1;
            }
        }
        let mut is_stale = surplus > found.len() + 64 || damaged > 0;
        let mut unreadable = Vec::new();
        for id in &refs.checkpoints {
            if !found.contains_key(id) {
                is_stale = true;
                match read_record(id)?.and_then(|record| TimelineEntry::of(*id, record).ok()) {
                    Some(entry) => drop(found.insert(*id, entry)),
                    None => unreadable.push(*id),
                }
            }
        }
        let mut entries: Vec<TimelineEntry> = found.into_values().collect();
        for entry in &mut entries {
            entry.pinned = refs.pinned.contains(&entry.id);
        }
        unreadable.sort();
        let mut binned: Vec<CheckpointId> = refs.deleted.iter().copied().collect();
        binned.sort();
        let pins_alone: Vec<CheckpointId> = refs.pinned.difference(&refs.checkpoints).copied().collect();
        let is_deleted = |id: &CheckpointId| matches!(fates.get(id), Some(Fate::Deleted | Fate::Binned(_)));
        let is_in_no_bin = |id: &CheckpointId| !refs.deleted.contains(id) || fates.get(id) == Some(&Fate::Back);
        let perhaps_lost = without_ref.into_iter().chain(pins_alone.iter().copied()).filter(is_in_no_bin);
        let mut timeline = Self {
            stray_pins: pins_alone.iter().copied().filter(is_deleted).collect(),
            lost: operations.not_deleted(perhaps_lost.collect()),
            binned,
            stray_refs,
            positions: HashMap::with_capacity(entries.len()),
            loose_refs: refs.loose,
            entries,
            operations,
            unreadable,
            is_stale,
        };
        timeline.sort();
        Ok(timeline)
    }

    /// Adds a checkpoint that was just published. It is the newest, unless sequence numbers have run out.
    pub(super) fn add(&mut self, entry: TimelineEntry) {
        let is_newest = self.entries.last().is_none_or(|last| last.sequence < entry.sequence);
        self.positions.insert(entry.id, self.entries.len());
        self.entries.push(entry);
        self.loose_refs += 1;
        if !is_newest {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.entries.sort_unstable_by_key(|entry| (entry.sequence, entry.id));
        self.positions = self.entries.iter().enumerate().map(|(position, entry)| (entry.id, position)).collect();
    }

    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        let entry = |entry: &TimelineEntry| (entry.id, entry.sequence, entry.pinned);
        self.entries.iter().map(entry).eq(other.entries.iter().map(entry))
            && self.operations.entries == other.operations.entries
            && self.loose_refs == other.loose_refs
            && self.binned == other.binned
    }

    /// Returns the checkpoints, oldest first.
    pub(crate) fn entries(&self) -> &[TimelineEntry] {
        &self.entries
    }

    /// Returns the entry of a checkpoint, or an error if it is not on the timeline.
    pub(crate) fn require(&self, id: &CheckpointId) -> crate::error::Result<&TimelineEntry> {
        self.get(id).ok_or_else(|| Error::unknown_checkpoint(id))
    }

    pub(crate) fn get(&self, id: &CheckpointId) -> Option<&TimelineEntry> {
        self.positions.get(id).map(|position| &self.entries[*position])
    }

    /// Returns whether a checkpoint is in the bin.
    pub(crate) fn is_binned(&self, id: &CheckpointId) -> bool {
        self.binned.binary_search(id).is_ok()
    }

    /// Returns the sequence number for the next checkpoint or operation.
    pub(crate) fn next_sequence(&self) -> u64 {
        let newest = self.entries.last().map_or(0, |entry| entry.sequence);
        newest.max(self.operations.last_sequence()).saturating_add(1)
    }

    /// Returns the newest checkpoint that is not a safety checkpoint.
    pub(crate) fn newest(&self) -> Option<&TimelineEntry> {
        self.entries.iter().rev().find(|entry| entry.kind != Kind::Safety)
    }

    /// Returns the checkpoint that the workspace stands on: the newest, unless a restore came after it. If that
    /// checkpoint and all that led to it are deleted, returns the oldest one that is left.
    pub(crate) fn current(&self) -> Option<&TimelineEntry> {
        let newest = self.newest();
        let moved = self.operations.restores().next_back();
        let id = match (newest, moved) {
            (Some(newest), Some(moved)) if newest.sequence > moved.sequence => Some(newest.id),
            (_, Some(moved)) => moved.after,
            (newest, None) => newest.map(|newest| newest.id),
        };
        self.nearest(id?).or_else(|| self.entries.iter().find(|entry| entry.kind != Kind::Safety))
    }

    /// Returns this checkpoint, or the nearest one before it that still exists.
    pub(crate) fn nearest(&self, id: CheckpointId) -> Option<&TimelineEntry> {
        let mut id = id;
        // A sound log has no cycle, but a damaged one could.
        for _ in 0..=self.operations.entries.len() {
            if let Some(entry) = self.get(&id) {
                return Some(entry);
            }
            id = self.operations.parent_of_deleted(&id)??;
        }
        None
    }

    /// Returns the checkpoint `steps` before this one, skipping deleted ones. Returns `None` if there are not so many.
    pub(crate) fn ancestor(&self, entry: &TimelineEntry, steps: u64) -> Option<&TimelineEntry> {
        let mut present = self.get(&entry.id)?;
        for _ in 0..steps {
            present = self.nearest(present.parent?)?;
        }
        Some(present)
    }
}

/// Appends one checkpoint to the file.
pub(super) fn append(layout: &Layout, id: CheckpointId, record: Record) -> io::Result<TimelineEntry> {
    let entry = TimelineEntry::of(id, record).map_err(io::Error::other)?;
    private::append(&layout.timeline(), entry.to_line().as_bytes(), Durability::Unsynced)?;
    Ok(entry)
}

/// Rewrites the file.
pub(super) fn rewrite(layout: &Layout, timeline: &Timeline, durability: Durability) -> io::Result<()> {
    let text: String = timeline.entries.iter().map(TimelineEntry::to_line).collect();
    private::replace(&layout.timeline(), text.as_bytes(), durability)
}
