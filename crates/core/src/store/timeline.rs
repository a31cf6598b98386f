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
    Layout, Operations, Record, checksummed_lines,
    operations::Fate,
    refs::Refs,
    timeline_index::{self, KindCount, ReadRecord, ReadWhole, RecordSource, TimelineIndex},
};
use crate::{
    disk::private::{self, Durability},
    error::Error,
    model::{CheckpointId, Kind, Scope},
};

/// A timeline with fewer checkpoints is read whole: an index would save nothing.
const FEW: usize = 200;

/// The place of a checkpoint's line in the timeline file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: u64,
    pub(super) length: u32,
}

/// The place from which a record is read on first use.
#[derive(Debug, Clone)]
enum RecordText {
    Json(Arc<str>),
    InFile(Arc<RecordSource>),
}

/// One checkpoint in the timeline. Its record is parsed on first use.
#[derive(Debug, Clone)]
pub(crate) struct TimelineEntry {
    pub(crate) id: CheckpointId,
    pub(crate) sequence: u64,
    pub(crate) kind: Kind,
    pub(crate) time: i64,
    pub(crate) parent: Option<CheckpointId>,
    pub(crate) pinned: bool,
    /// `None` if the timeline file has no line of it.
    place: Option<Place>,
    text: RecordText,
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
            place: None,
            text: RecordText::Json(serde_json::to_string(&record)?.into()),
            record: OnceLock::from(Some(Arc::new(record))),
        })
    }

    /// Returns a checkpoint from a row of the index.
    #[expect(clippy::too_many_arguments, reason = "these are the columns of a row")]
    pub(super) fn in_index(
        id: CheckpointId,
        sequence: u64,
        kind: Kind,
        time: i64,
        parent: Option<CheckpointId>,
        pinned: bool,
        place: Place,
        source: Arc<RecordSource>,
    ) -> Self {
        let (place, text) = (Some(place), RecordText::InFile(source));
        Self { id, sequence, kind, time, parent, pinned, place, text, record: OnceLock::new() }
    }

    /// Returns the whole record, or `None` if this version can't parse it.
    pub(crate) fn record(&self) -> Option<Arc<Record>> {
        let read = || match &self.text {
            RecordText::Json(json) => serde_json::from_str(json).ok().map(Arc::new),
            RecordText::InFile(source) => source.record(&self.id, self.place).map(Arc::new),
        };
        self.record.get_or_init(read).clone()
    }

    pub(super) fn place(&self) -> Option<Place> {
        self.place
    }

    /// Returns the line of the checkpoint. Returns `None` if its record can't be read.
    fn to_line(&self) -> Option<String> {
        let json = match &self.text {
            RecordText::Json(json) => Arc::clone(json),
            RecordText::InFile(_) => serde_json::to_string(&*self.record()?).ok()?.into(),
        };
        let parent = self.parent.map_or_else(|| "-".to_owned(), |parent| parent.to_string());
        let line = format!("{} {} {} {} {parent} {json}", self.id, self.sequence, self.kind, self.time);
        Some(checksummed_lines::seal(&line))
    }

    pub(super) fn parse(line: &str, place: Option<Place>) -> Option<Self> {
        let mut parts = line.splitn(6, ' ');
        let id = parts.next()?.parse().ok()?;
        let sequence = parts.next()?.parse().ok()?;
        let kind = parts.next()?.parse().ok()?;
        let time = parts.next()?.parse().ok()?;
        let parent = match parts.next()? {
            "-" => None,
            parent => Some(parent.parse().ok()?),
        };
        let text = RecordText::Json(parts.next()?.into());
        Some(Self { id, sequence, kind, time, parent, pinned: false, place, text, record: OnceLock::new() })
    }
}

/// The checkpoints of a store, in the order of their creation, with the log of operations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timeline {
    /// The older checkpoints, whose rows are read when they are needed. `None` if all of them are in `read`.
    index: Option<Arc<TimelineIndex>>,
    /// The checkpoints that are not in the index. All of them are newer.
    read: Vec<TimelineEntry>,
    positions: HashMap<CheckpointId, usize>,
    pub(crate) operations: Operations,
    /// Refs whose commit can't be read.
    pub(crate) unreadable: Vec<CheckpointId>,
    pub(crate) loose_refs: usize,
    /// The checkpoints of `read` with a loose ref.
    loose: HashSet<CheckpointId>,
    /// The checkpoints with a loose pin. All other pins are packed.
    loose_pins: HashSet<CheckpointId>,
    /// Checkpoints that were published, were never deleted, and have no ref.
    pub(super) lost: Vec<CheckpointId>,
    /// Pins of deleted checkpoints: the process that deleted them was killed before it removed the pins.
    pub(super) stray_pins: Vec<CheckpointId>,
    /// The checkpoints in the bin, in the order of their ids.
    pub(crate) binned: Vec<CheckpointId>,
    /// Refs that an interrupted process left: of checkpoints that are in the bin, and of the bin.
    pub(super) stray_refs: StrayRefs,
    /// Set if plain git packed refs of the bin. The index does not know them.
    has_packed_bin: bool,
    /// The number of lines of the file that belong to no checkpoint.
    surplus: u64,
    /// Set if the file is out of date or damaged and has to be rewritten.
    is_stale: bool,
}

/// The checkpoints of a timeline, oldest first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entries<'t> {
    timeline: &'t Timeline,
}

impl<'t> Entries<'t> {
    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = &'t TimelineEntry> + use<'t> {
        let timeline = self.timeline;
        timeline.index.iter().flat_map(|index| index.rows()).chain(&timeline.read)
    }

    pub(crate) fn len(self) -> usize {
        self.timeline.index.as_ref().map_or(0, |index| index.len()) + self.timeline.read.len()
    }

    pub(crate) fn last(self) -> Option<&'t TimelineEntry> {
        self.iter().next_back()
    }
}

/// The lines of the timeline file, sorted by the refs.
#[derive(Default)]
struct FoundLines {
    entries: HashMap<CheckpointId, TimelineEntry>,
    surplus: u64,
    damaged: usize,
    without_ref: HashSet<CheckpointId>,
}

impl FoundLines {
    /// Takes the lines of these bytes, which are at this offset of the file. `has_ref` tells whether a checkpoint has a
    /// ref that is not in the index, and `is_indexed` whether one is in the index.
    fn of(
        bytes: &[u8],
        offset: u64,
        has_ref: &dyn Fn(&CheckpointId) -> bool,
        is_indexed: &dyn Fn(&CheckpointId) -> bool,
    ) -> Self {
        let mut found = Self::default();
        for (start, line) in checksummed_lines::positioned(bytes) {
            let Some(text) = line else {
                found.damaged += 1;
                continue;
            };
            let length = checksummed_lines::sealed_length(text) as u32;
            let place = Place { offset: offset + start as u64, length };
            let Some(entry) = TimelineEntry::parse(text, Some(place)) else { continue };
            if has_ref(&entry.id) {
                if found.entries.insert(entry.id, entry).is_some() {
                    found.surplus += 1;
                }
            } else if !is_indexed(&entry.id) {
                found.without_ref.insert(entry.id);
                found.surplus += 1;
            }
        }
        found
    }
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
    /// Reads the timeline. Of the checkpoints in the index, only those that are asked for are read.
    pub(super) fn load(
        layout: &Layout,
        read_record: &dyn Fn(&CheckpointId) -> io::Result<Option<Record>>,
        of_index: (ReadRecord, ReadWhole),
    ) -> io::Result<Self> {
        match Self::load_by_index(layout, read_record, of_index)? {
            Some(timeline) => Ok(timeline),
            None => Self::load_whole(layout, read_record),
        }
    }

    fn load_by_index(
        layout: &Layout,
        read_record: &dyn Fn(&CheckpointId) -> io::Result<Option<Record>>,
        (read_commit, read_whole): (ReadRecord, ReadWhole),
    ) -> io::Result<Option<Self>> {
        // Loose refs first: a ref that is packed in between is then missing in the index, which is opened later and
        // does not fit the new `packed-refs`.
        let mut refs = Refs::read_loose(layout)?;
        let Some(index) = TimelineIndex::open(layout, refs.pinned.clone(), read_commit, read_whole)? else {
            return Ok(None);
        };
        // A process was killed between the log and the refs. The index does not tell which of its rows are hidden.
        if refs.deleted.iter().any(|id| index.find(id).is_some()) {
            return Ok(None);
        }
        let operations = Operations::read(layout)?;
        let stray_refs = StrayRefs::split_from(&mut refs, &operations.fates());
        let (bytes, offset) = index.newer_lines()?;
        let is_indexed = |id: &CheckpointId| index.find(id).is_some();
        let lines = FoundLines::of(&bytes, offset, &|id| refs.checkpoints.contains(id), &is_indexed);
        // A ref can be loose and packed if a process was killed while it packed them.
        let missing = refs.checkpoints.iter().filter(|id| !lines.entries.contains_key(id) && !is_indexed(id));
        let missing: Vec<CheckpointId> = missing.copied().collect();
        let surplus = index.surplus() + lines.surplus;
        let limit = index.len() as u64 + lines.entries.len() as u64 + 64;
        let mut timeline = Self { surplus, is_stale: surplus > limit || lines.damaged > 0, ..Self::default() };
        timeline.stray_refs = stray_refs;
        timeline.take(lines, &missing, (&refs, operations), read_record, &|id| index.find(id).is_some())?;
        if timeline.read.first().is_some_and(|first| first.sequence <= index.last_sequence()) {
            return Ok(None);
        }
        timeline.index = Some(Arc::new(index));
        Ok(Some(timeline))
    }

    /// Reads all checkpoints, without the index.
    pub(super) fn load_whole(
        layout: &Layout,
        read_record: &dyn Fn(&CheckpointId) -> io::Result<Option<Record>>,
    ) -> io::Result<Self> {
        let mut refs = Refs::read(layout)?;
        let operations = Operations::read(layout)?;
        let stray_refs = StrayRefs::split_from(&mut refs, &operations.fates());
        let bytes = private::read(&layout.timeline())?.unwrap_or_default();
        let lines = FoundLines::of(&bytes, 0, &|id| refs.checkpoints.contains(id), &|_| false);
        let missing = refs.checkpoints.iter().filter(|id| !lines.entries.contains_key(id)).copied();
        let missing: Vec<CheckpointId> = missing.collect();
        let is_stale = lines.surplus > lines.entries.len() as u64 + 64 || lines.damaged > 0;
        let mut timeline = Self { surplus: lines.surplus, is_stale, ..Self::default() };
        timeline.stray_refs = stray_refs;
        timeline.take(lines, &missing, (&refs, operations), read_record, &|_| false)?;
        Ok(timeline)
    }

    /// Takes the checkpoints of these lines, and reads those that have a ref and no line.
    fn take(
        &mut self,
        lines: FoundLines,
        missing: &[CheckpointId],
        (refs, operations): (&Refs, Operations),
        read_record: &dyn Fn(&CheckpointId) -> io::Result<Option<Record>>,
        is_indexed: &dyn Fn(&CheckpointId) -> bool,
    ) -> io::Result<()> {
        self.read = lines.entries.into_values().collect();
        for id in missing {
            self.is_stale = true;
            match read_record(id)?.and_then(|record| TimelineEntry::of(*id, record).ok()) {
                Some(entry) => self.read.push(entry),
                None => self.unreadable.push(*id),
            }
        }
        for entry in &mut self.read {
            entry.pinned = refs.pinned.contains(&entry.id);
        }
        self.unreadable.sort();
        let fates = operations.fates();
        self.binned = refs.deleted.iter().copied().collect();
        self.binned.sort();
        self.has_packed_bin = refs.has_packed_bin;
        let pins_alone: Vec<CheckpointId> = refs.pinned.difference(&refs.checkpoints).copied().collect();
        let pins_alone: Vec<CheckpointId> = pins_alone.into_iter().filter(|id| !is_indexed(id)).collect();
        let is_deleted = |id: &CheckpointId| matches!(fates.get(id), Some(Fate::Deleted | Fate::Binned(_)));
        self.stray_pins = pins_alone.iter().copied().filter(is_deleted).collect();
        let is_in_no_bin = |id: &CheckpointId| !refs.deleted.contains(id) || fates.get(id) == Some(&Fate::Back);
        let perhaps_lost = lines.without_ref.into_iter().chain(pins_alone).filter(is_in_no_bin);
        self.lost = operations.not_deleted(perhaps_lost.collect());
        self.operations = operations;
        self.loose_refs = refs.loose;
        self.loose = refs.loose_checkpoints.clone();
        self.loose_pins = refs.loose_pins.clone();
        self.sort();
        Ok(())
    }

    /// Adds a checkpoint that was just published. It is the newest, unless sequence numbers have run out.
    pub(super) fn add(&mut self, entry: TimelineEntry) {
        let is_newest = self.entries().last().is_none_or(|last| last.sequence < entry.sequence);
        self.positions.insert(entry.id, self.read.len());
        self.loose.insert(entry.id);
        self.read.push(entry);
        self.loose_refs += 1;
        if !is_newest {
            self.sort();
        }
    }

    fn sort(&mut self) {
        self.read.sort_unstable_by_key(|entry| (entry.sequence, entry.id));
        self.positions = self.read.iter().enumerate().map(|(position, entry)| (entry.id, position)).collect();
    }

    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        let entry = |entry: &TimelineEntry| (entry.id, entry.sequence, entry.pinned);
        self.entries().iter().map(entry).eq(other.entries().iter().map(entry))
            && self.operations.entries == other.operations.entries
            && self.loose_refs == other.loose_refs
            && self.binned == other.binned
    }

    /// Returns the checkpoints of a timeline that was read whole.
    pub(super) fn into_entries(self) -> Vec<TimelineEntry> {
        self.read
    }

    /// Returns whether the file is out of date or damaged and has to be rewritten.
    pub(super) fn is_stale(&self) -> bool {
        self.is_stale || self.index.as_ref().is_some_and(|index| index.is_damaged())
    }

    /// Returns whether an index should be written.
    pub(super) fn lacks_index(&self) -> bool {
        self.index.is_none() && self.read.len() >= FEW && self.is_sound()
    }

    fn is_sound(&self) -> bool {
        self.lost.is_empty()
            && self.stray_pins.is_empty()
            && self.unreadable.is_empty()
            && !self.is_stale()
            && self.stray_refs.is_empty()
            && !self.has_packed_bin
    }

    /// Returns the number of checkpoints of this kind, and the lowest time of one.
    pub(crate) fn count_of(&self, kind: Kind) -> KindCount {
        let indexed = self.index.as_ref().map(|index| index.count_of(kind));
        let mut counted = indexed.unwrap_or(KindCount { count: 0, oldest: i64::MAX });
        for entry in self.read.iter().filter(|entry| entry.kind == kind) {
            counted.count += 1;
            counted.oldest = counted.oldest.min(entry.time);
        }
        counted
    }

    /// Returns the latest time of a checkpoint, and that checkpoint.
    pub(crate) fn latest(&self) -> Option<(i64, CheckpointId)> {
        let read = self.read.iter().map(|entry| (entry.time, entry.id)).max();
        self.index.as_ref().map(|index| index.latest()).into_iter().chain(read).max()
    }

    /// Returns the checkpoints whose ids start with these hexadecimal digits, two or more, oldest first.
    pub(crate) fn starting_with(&self, digits: &str) -> Vec<&TimelineEntry> {
        let Some(Ok(byte)) = digits.get(..2).map(|digits| u8::from_str_radix(digits, 16)) else { return Vec::new() };
        let indexed = self.index.iter().flat_map(|index| index.starting_with(byte));
        let mut found: Vec<&TimelineEntry> =
            indexed.chain(&self.read).filter(|entry| entry.id.to_string().starts_with(digits)).collect();
        found.sort_unstable_by_key(|entry| (entry.sequence, entry.id));
        found
    }

    /// Returns the checkpoints, oldest first.
    pub(crate) fn entries(&self) -> Entries<'_> {
        Entries { timeline: self }
    }

    /// Returns the entry of a checkpoint, or an error if it is not on the timeline.
    pub(crate) fn require(&self, id: &CheckpointId) -> crate::error::Result<&TimelineEntry> {
        self.get(id).ok_or_else(|| Error::unknown_checkpoint(id))
    }

    pub(crate) fn get(&self, id: &CheckpointId) -> Option<&TimelineEntry> {
        match self.positions.get(id) {
            Some(position) => Some(&self.read[*position]),
            None => self.index.as_ref()?.find(id),
        }
    }

    /// Returns whether a checkpoint is in the bin.
    pub(crate) fn is_binned(&self, id: &CheckpointId) -> bool {
        self.binned.binary_search(id).is_ok()
    }

    /// Returns the sequence number for the next checkpoint or operation.
    pub(crate) fn next_sequence(&self) -> u64 {
        let newest = self.entries().last().map_or(0, |entry| entry.sequence);
        newest.max(self.operations.last_sequence()).saturating_add(1)
    }

    /// Returns the newest checkpoint that is not a safety checkpoint.
    pub(crate) fn newest(&self) -> Option<&TimelineEntry> {
        self.entries().iter().rev().find(|entry| entry.kind != Kind::Safety)
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
        self.nearest(id?).or_else(|| self.entries().iter().find(|entry| entry.kind != Kind::Safety))
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
    let mut entry = TimelineEntry::of(id, record).map_err(io::Error::other)?;
    let Some(line) = entry.to_line() else { return Ok(entry) };
    let offset = private::size(&layout.timeline())?.unwrap_or(0);
    private::append(&layout.timeline(), line.as_bytes(), Durability::Unsynced)?;
    entry.place = Some(Place { offset, length: line.len() as u32 });
    Ok(entry)
}

/// Rewrites the file.
pub(super) fn rewrite(layout: &Layout, timeline: &Timeline, durability: Durability) -> io::Result<()> {
    let text: String = timeline.entries().iter().filter_map(TimelineEntry::to_line).collect();
    private::replace(&layout.timeline(), text.as_bytes(), durability)
}

/// Whether all refs were packed since a timeline was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packed {
    /// All of them.
    All,
    /// Those that were packed before.
    AsRead,
}

/// Writes the index of a timeline. Does nothing if something about the timeline is in doubt.
pub(super) fn write_index(layout: &Layout, timeline: &Timeline, packed: Packed) -> io::Result<()> {
    if !timeline.is_sound() {
        return Ok(());
    }
    let is_loose = |entry: &&TimelineEntry| packed == Packed::AsRead && timeline.loose.contains(&entry.id);
    let length = private::size(&layout.timeline())?.unwrap_or(0);
    // The lines of checkpoints that are not in the index are read each time.
    let first = timeline.read.iter().filter(is_loose).filter_map(TimelineEntry::place).map(|place| place.offset).min();
    let indexed = timeline.entries().iter().filter(|entry| !is_loose(entry));
    let has_packed_pin =
        |entry: &TimelineEntry| entry.pinned && (packed == Packed::All || !timeline.loose_pins.contains(&entry.id));
    let indexed = indexed.map(|entry| (entry, has_packed_pin(entry)));
    timeline_index::write(layout, indexed, first.unwrap_or(length), timeline.surplus)
}
