//! The timeline index: the checkpoints whose refs are packed, as rows of one size, so that a command reads only the
//! rows that it needs.
//!
//! The index is a cache. It belongs to one `packed-refs` file, whose stamp it holds: if that file was replaced since,
//! the index is ignored. Each part has a checksum of its own and is checked when it is read. Checkpoints with loose
//! refs are not in the index.

use std::{
    fmt, io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use xxhash_rust::xxh3::xxh3_64;

use super::{
    Layout, Record, checksummed_lines,
    timeline::{Place, TimelineEntry},
};
use crate::{
    disk::{
        self, StoreFile,
        private::{self, Durability},
    },
    model::{CheckpointId, Kind, Stamp},
};

const MAGIC: &[u8; 8] = b"BTLINE\x00\x01";
/// The magic, the length of the header, and its checksum.
const PREFIX_BYTES: usize = 24;
const ROW_BYTES: usize = 72;
/// The number of rows that are read and checked at once.
const CHUNK_ROWS: usize = 64;
const BUCKETS: usize = 256;
const KEY_BYTES: usize = 12;
/// A header that claims to be longer is damaged.
const MAX_HEADER_BYTES: u64 = 64 << 20;

const HAS_PARENT: u8 = 1;
const IS_PINNED: u8 = 2;

/// Reads the record of a checkpoint from its commit. Returns `None` if that is not possible.
pub(super) type ReadRecord = Arc<dyn Fn(&CheckpointId) -> Option<Record> + Send + Sync>;

/// Reads all checkpoints without the index.
pub(super) type ReadWhole = Arc<dyn Fn() -> Vec<TimelineEntry> + Send + Sync>;

/// The timeline file, for records that are read when they are needed.
pub(super) struct RecordSource {
    file: Option<StoreFile>,
    read_record: ReadRecord,
}

impl fmt::Debug for RecordSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordSource").field("file", &self.file).finish_non_exhaustive()
    }
}

impl RecordSource {
    /// Returns the record of a checkpoint: from its line if that is sound, otherwise from its commit.
    pub(super) fn record(&self, id: &CheckpointId, place: Option<Place>) -> Option<Record> {
        self.record_in_line(id, place?).or_else(|| (self.read_record)(id))
    }

    fn record_in_line(&self, id: &CheckpointId, place: Place) -> Option<Record> {
        let line = self.file.as_ref()?.read_at(place.offset, place.length as usize).ok()??;
        let entry = TimelineEntry::parse(checksummed_lines::open(&line)?, None)?;
        if entry.id == *id { entry.record().map(|record| Record::clone(&record)) } else { None }
    }
}

/// The first bytes of an id, and the number of the row.
type Key = (u64, u32);

/// The number of checkpoints of one kind, and the time of the one with the lowest time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KindCount {
    pub(crate) count: u64,
    pub(crate) oldest: i64,
}

#[derive(Debug, Clone, PartialEq)]
struct Header {
    packed_refs: Stamp,
    timeline: (u64, u64),
    covered: u64,
    surplus: u64,
    latest: (i64, CheckpointId),
    last_sequence: u64,
    rows: usize,
    kinds: Vec<(Kind, KindCount)>,
    /// The checksum and the first sequence number of each chunk of rows.
    chunks: Vec<(u64, u64)>,
    /// The end of each bucket, counted in keys, and its checksum.
    buckets: Vec<(u32, u64)>,
}

/// An index that was opened.
pub(super) struct TimelineIndex {
    file: StoreFile,
    header: Header,
    rows_at: u64,
    keys_at: u64,
    chunks: Vec<OnceLock<Vec<TimelineEntry>>>,
    /// `None` for one that is damaged.
    buckets: Vec<OnceLock<Option<Vec<Key>>>>,
    records: Arc<RecordSource>,
    read_whole: ReadWhole,
    /// Checkpoints with a loose pin.
    pinned: std::collections::HashSet<CheckpointId>,
    is_damaged: AtomicBool,
}

impl fmt::Debug for TimelineIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimelineIndex").field("rows", &self.header.rows).finish_non_exhaustive()
    }
}

impl TimelineIndex {
    /// Opens the index. Returns `None` if there is none, or if it is damaged or not that of the present `packed-refs`
    /// and `timeline`.
    pub(super) fn open(
        layout: &Layout,
        pinned: std::collections::HashSet<CheckpointId>,
        read_record: ReadRecord,
        read_whole: ReadWhole,
    ) -> io::Result<Option<Self>> {
        let Some(file) = StoreFile::open(&layout.timeline_index())? else { return Ok(None) };
        let Some((header, rows_at)) = read_header(&file)? else { return Ok(None) };
        if disk::stamp_following(&layout.packed_refs())? != Some(header.packed_refs) {
            return Ok(None);
        }
        let timeline = StoreFile::open(&layout.timeline())?;
        let stamp = timeline.as_ref().map(StoreFile::stamp).transpose()?;
        let is_same = |stamp: Stamp| (stamp.device, stamp.inode) == header.timeline && stamp.size >= header.covered;
        if !stamp.is_some_and(is_same) {
            return Ok(None);
        }
        let keys_at = rows_at + (header.rows * ROW_BYTES) as u64;
        Ok(Some(Self {
            chunks: (0..header.chunks.len()).map(|_| OnceLock::new()).collect(),
            buckets: (0..BUCKETS).map(|_| OnceLock::new()).collect(),
            records: Arc::new(RecordSource { file: timeline, read_record }),
            is_damaged: AtomicBool::new(false),
            file,
            header,
            rows_at,
            keys_at,
            read_whole,
            pinned,
        }))
    }

    /// Returns the lines that were appended to the timeline file since the index was written, and their offset.
    pub(super) fn newer_lines(&self) -> io::Result<(Vec<u8>, u64)> {
        let covered = self.header.covered;
        let lines = self.records.file.as_ref().map(|file| file.read_from(covered)).transpose()?;
        Ok((lines.unwrap_or_default(), covered))
    }

    pub(super) fn len(&self) -> usize {
        self.header.rows
    }

    /// Returns the number of lines of the timeline file before the newer ones that belong to no checkpoint.
    pub(super) fn surplus(&self) -> u64 {
        self.header.surplus
    }

    pub(super) fn last_sequence(&self) -> u64 {
        self.header.last_sequence
    }

    /// Returns the latest time of a checkpoint, with that checkpoint.
    pub(super) fn latest(&self) -> (i64, CheckpointId) {
        self.header.latest
    }

    /// Returns the number of checkpoints of this kind.
    pub(super) fn count_of(&self, kind: Kind) -> KindCount {
        let found = self.header.kinds.iter().find(|(found, _)| *found == kind);
        found.map_or(KindCount { count: 0, oldest: i64::MAX }, |(_, count)| *count)
    }

    /// Returns whether a damaged part was found.
    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    /// Returns the rows, oldest first. They are read in chunks.
    pub(super) fn rows(&self) -> impl DoubleEndedIterator<Item = &TimelineEntry> {
        (0..self.chunks.len()).flat_map(|chunk| self.chunk(chunk))
    }

    /// Returns the row of a checkpoint.
    pub(super) fn find(&self, id: &CheckpointId) -> Option<&TimelineEntry> {
        let key = key_of(id);
        match self.bucket(id.as_bytes()[0]) {
            Some(keys) => {
                let start = keys.partition_point(|(found, _)| *found < key);
                let same = keys[start..].iter().take_while(|(found, _)| *found == key);
                let found = same.filter_map(|(_, row)| self.row(*row as usize)).find(|entry| entry.id == *id);
                // The rows of a damaged chunk need not be at their numbers.
                if found.is_none() && self.is_damaged() { self.search(id) } else { found }
            }
            None => self.search(id),
        }
    }

    fn search(&self, id: &CheckpointId) -> Option<&TimelineEntry> {
        self.rows().find(|entry| entry.id == *id)
    }

    /// Returns the rows whose ids start with this byte.
    pub(super) fn starting_with(&self, byte: u8) -> Vec<&TimelineEntry> {
        match self.bucket(byte) {
            Some(keys) if !self.is_damaged() => keys.iter().filter_map(|(_, row)| self.row(*row as usize)).collect(),
            _ => self.rows().filter(|entry| entry.id.as_bytes()[0] == byte).collect(),
        }
    }

    fn row(&self, row: usize) -> Option<&TimelineEntry> {
        self.chunk(row / CHUNK_ROWS).get(row % CHUNK_ROWS)
    }

    fn chunk(&self, chunk: usize) -> &[TimelineEntry] {
        self.chunks[chunk].get_or_init(|| self.read_chunk(chunk).unwrap_or_else(|| self.chunk_without_index(chunk)))
    }

    /// Returns the rows of a damaged chunk, read from the timeline file and the commits.
    fn chunk_without_index(&self, chunk: usize) -> Vec<TimelineEntry> {
        self.is_damaged.store(true, Ordering::Relaxed);
        let first = self.header.chunks[chunk].1;
        let next = self.header.chunks.get(chunk + 1).map_or(self.header.last_sequence.saturating_add(1), |next| next.1);
        // Checkpoints on the border between two chunks can have the same sequence number only in a damaged store.
        (self.read_whole)().into_iter().filter(|entry| (first..next).contains(&entry.sequence)).collect()
    }

    fn read_chunk(&self, chunk: usize) -> Option<Vec<TimelineEntry>> {
        let bytes = self.chunk_bytes(chunk)?;
        let kinds: Vec<Kind> = self.header.kinds.iter().map(|(kind, _)| *kind).collect();
        let row = |row: &[u8]| parse_row(row, &kinds, &self.records);
        let mut rows = bytes.chunks_exact(ROW_BYTES).map(row).collect::<Option<Vec<_>>>()?;
        rows.iter_mut().for_each(|entry| entry.pinned |= self.pinned.contains(&entry.id));
        Some(rows)
    }

    /// Returns the bytes of a chunk. Returns `None` if they can't be read or do not match their checksum.
    fn chunk_bytes(&self, chunk: usize) -> Option<Vec<u8>> {
        let start = chunk * CHUNK_ROWS;
        let rows = CHUNK_ROWS.min(self.header.rows - start);
        let bytes = self.file.read_at(self.rows_at + (start * ROW_BYTES) as u64, rows * ROW_BYTES).ok()??;
        (xxh3_64(&bytes) == self.header.chunks[chunk].0).then_some(bytes)
    }

    /// Returns the keys of the ids that start with this byte, and their rows. Returns `None` if they are damaged.
    fn bucket(&self, byte: u8) -> Option<&[Key]> {
        let read = || self.read_bucket(usize::from(byte));
        let keys = self.buckets[usize::from(byte)].get_or_init(read);
        if keys.is_none() {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
        keys.as_deref()
    }

    fn read_bucket(&self, bucket: usize) -> Option<Vec<Key>> {
        let start = bucket.checked_sub(1).map_or(0, |before| self.header.buckets[before].0 as usize);
        let (end, checksum) = self.header.buckets[bucket];
        let length = (end as usize).checked_sub(start)? * KEY_BYTES;
        let bytes = self.file.read_at(self.keys_at + (start * KEY_BYTES) as u64, length).ok()??;
        if xxh3_64(&bytes) != checksum {
            return None;
        }
        let key = |bytes: &[u8]| {
            let (key, row) = bytes.split_first_chunk::<8>()?;
            Some((u64::from_be_bytes(*key), u32::from_le_bytes(row.try_into().ok()?)))
        };
        bytes.chunks_exact(KEY_BYTES).map(key).collect()
    }
}

/// Writes an index of checkpoints, oldest first, each with whether it has a packed pin. All of them have packed refs,
/// and no other checkpoint has one.
///
/// `covered` is the length of the part of the timeline file that is not read again, with `surplus` lines that belong to
/// no checkpoint.
pub(super) fn write<'t>(
    layout: &Layout,
    entries: impl Iterator<Item = (&'t TimelineEntry, bool)>,
    covered: u64,
    surplus: u64,
) -> io::Result<()> {
    let Some(packed_refs) = disk::stamp_following(&layout.packed_refs())? else { return Ok(()) };
    let Some(timeline) = disk::stamp_following(&layout.timeline())? else { return Ok(()) };
    let mut writer = IndexWriter::default();
    entries.for_each(|(entry, has_packed_pin)| writer.add(entry, has_packed_pin));
    let header = writer.header(packed_refs, (timeline.device, timeline.inode), covered, surplus);
    let bytes = [to_bytes(&header), writer.rows, writer.key_bytes].concat();
    private::replace(&layout.timeline_index(), &bytes, Durability::Unsynced)
}

#[derive(Default)]
struct IndexWriter {
    rows: Vec<u8>,
    count: usize,
    keys: Vec<Key>,
    key_bytes: Vec<u8>,
    kinds: Vec<(Kind, KindCount)>,
    first_sequences: Vec<u64>,
    last_sequence: u64,
    latest: Option<(i64, CheckpointId)>,
}

impl IndexWriter {
    fn add(&mut self, entry: &TimelineEntry, has_packed_pin: bool) {
        if self.count.is_multiple_of(CHUNK_ROWS) {
            self.first_sequences.push(entry.sequence);
        }
        let kind = self.kinds.iter().position(|(kind, _)| *kind == entry.kind).unwrap_or_else(|| {
            self.kinds.push((entry.kind, KindCount { count: 0, oldest: i64::MAX }));
            self.kinds.len() - 1
        });
        let counted = &mut self.kinds[kind].1;
        counted.count += 1;
        counted.oldest = counted.oldest.min(entry.time);
        if self.latest.is_none_or(|(time, _)| entry.time > time) {
            self.latest = Some((entry.time, entry.id));
        }
        self.last_sequence = entry.sequence;
        self.keys.push((key_of(&entry.id), self.count as u32));
        self.count += 1;
        push_row(&mut self.rows, entry, kind as u8, has_packed_pin);
    }

    fn header(&mut self, packed_refs: Stamp, timeline: (u64, u64), covered: u64, surplus: u64) -> Header {
        self.keys.sort_unstable();
        let mut buckets = Vec::with_capacity(BUCKETS);
        let mut end = 0;
        for byte in 0..BUCKETS as u64 {
            let start = end;
            end += self.keys[start..].partition_point(|(key, _)| key >> 56 <= byte);
            let at = self.key_bytes.len();
            for (key, row) in &self.keys[start..end] {
                self.key_bytes.extend_from_slice(&key.to_be_bytes());
                self.key_bytes.extend_from_slice(&row.to_le_bytes());
            }
            buckets.push((end as u32, xxh3_64(&self.key_bytes[at..])));
        }
        let checksums = self.rows.chunks(CHUNK_ROWS * ROW_BYTES).map(xxh3_64);
        Header {
            packed_refs,
            timeline,
            covered,
            surplus,
            latest: self.latest.unwrap_or((i64::MIN, CheckpointId([0; 20]))),
            last_sequence: self.last_sequence,
            rows: self.count,
            kinds: self.kinds.clone(),
            chunks: checksums.zip(self.first_sequences.iter().copied()).collect(),
            buckets,
        }
    }
}

/// Returns the first bytes of an id as a number. Ids and keys have the same order.
fn key_of(id: &CheckpointId) -> u64 {
    id.as_bytes().first_chunk().map_or(0, |start| u64::from_be_bytes(*start))
}

fn push_row(out: &mut Vec<u8>, entry: &TimelineEntry, kind: u8, has_packed_pin: bool) {
    let flags = if entry.parent.is_some() { HAS_PARENT } else { 0 } | if has_packed_pin { IS_PINNED } else { 0 };
    let place = entry.place().unwrap_or_default();
    out.extend_from_slice(entry.id.as_bytes());
    out.extend_from_slice(entry.parent.unwrap_or(CheckpointId([0; 20])).as_bytes());
    out.extend_from_slice(&entry.sequence.to_le_bytes());
    out.extend_from_slice(&entry.time.to_le_bytes());
    out.extend_from_slice(&place.offset.to_le_bytes());
    out.extend_from_slice(&place.length.to_le_bytes());
    out.extend_from_slice(&[kind, flags, 0, 0]);
}

fn parse_row(row: &[u8], kinds: &[Kind], records: &Arc<RecordSource>) -> Option<TimelineEntry> {
    let mut bytes = Bytes(row);
    let id = CheckpointId(bytes.take()?);
    let parent = CheckpointId(bytes.take()?);
    let (sequence, time) = (bytes.u64()?, bytes.u64()? as i64);
    let place = Place { offset: bytes.u64()?, length: bytes.u32()? };
    let [kind, flags, ..] = bytes.take::<4>()?;
    let kind = *kinds.get(usize::from(kind))?;
    let parent = (flags & HAS_PARENT != 0).then_some(parent);
    let pinned = flags & IS_PINNED != 0;
    Some(TimelineEntry::in_index(id, sequence, kind, time, parent, pinned, place, Arc::clone(records)))
}

fn to_bytes(header: &Header) -> Vec<u8> {
    let mut body = Vec::new();
    let mut number = |number: u64| body.extend_from_slice(&number.to_le_bytes());
    let stamp = &header.packed_refs;
    for part in [stamp.device, stamp.inode, stamp.size, stamp.mtime as u64, stamp.ctime as u64] {
        number(part);
    }
    number(u64::from(stamp.mode) << 32 | u64::from(stamp.links));
    let (device, inode) = header.timeline;
    for part in [device, inode, header.covered, header.surplus, header.latest.0 as u64, header.last_sequence] {
        number(part);
    }
    number(header.rows as u64);
    body.extend_from_slice(header.latest.1.as_bytes());
    body.push(header.kinds.len() as u8);
    for (kind, counted) in &header.kinds {
        let name = kind.as_str();
        body.push(name.len() as u8);
        body.extend_from_slice(name.as_bytes());
        body.extend_from_slice(&counted.count.to_le_bytes());
        body.extend_from_slice(&counted.oldest.to_le_bytes());
    }
    for (checksum, first) in &header.chunks {
        body.extend_from_slice(&checksum.to_le_bytes());
        body.extend_from_slice(&first.to_le_bytes());
    }
    for (end, checksum) in &header.buckets {
        body.extend_from_slice(&end.to_le_bytes());
        body.extend_from_slice(&checksum.to_le_bytes());
    }
    let length = (PREFIX_BYTES + body.len()) as u64;
    // The length takes part in the checksum.
    let checksum = xxh3_64(&[&length.to_le_bytes(), body.as_slice()].concat());
    [MAGIC.as_slice(), &length.to_le_bytes(), &checksum.to_le_bytes(), &body].concat()
}

/// Returns the header and its length. Returns `None` if it is damaged or of another version.
fn read_header(file: &StoreFile) -> io::Result<Option<(Header, u64)>> {
    let Some(prefix) = file.read_at(0, PREFIX_BYTES)? else { return Ok(None) };
    let Some(length) = length_of_header(&prefix) else { return Ok(None) };
    let Some(body) = file.read_at(PREFIX_BYTES as u64, length as usize - PREFIX_BYTES)? else { return Ok(None) };
    let found = xxh3_64(&[&prefix[8..16], body.as_slice()].concat());
    if found.to_le_bytes() != prefix[16..] {
        return Ok(None);
    }
    Ok(parse_header(&body).map(|header| (header, length)))
}

fn length_of_header(prefix: &[u8]) -> Option<u64> {
    let (length, _) = prefix.strip_prefix(MAGIC)?.split_first_chunk::<8>()?;
    let length = u64::from_le_bytes(*length);
    (PREFIX_BYTES as u64..=MAX_HEADER_BYTES).contains(&length).then_some(length)
}

fn parse_header(body: &[u8]) -> Option<Header> {
    let mut bytes = Bytes(body);
    let (device, inode, size) = (bytes.u64()?, bytes.u64()?, bytes.u64()?);
    let (mtime, ctime, rest) = (bytes.u64()? as i64, bytes.u64()? as i64, bytes.u64()?);
    let packed_refs = Stamp { device, inode, size, mtime, ctime, mode: (rest >> 32) as u32, links: rest as u32 };
    let timeline = (bytes.u64()?, bytes.u64()?);
    let (covered, surplus) = (bytes.u64()?, bytes.u64()?);
    let (latest, last_sequence) = (bytes.u64()? as i64, bytes.u64()?);
    let rows = usize::try_from(bytes.u64()?).ok()?;
    let latest = (latest, CheckpointId(bytes.take()?));
    let kinds = bytes.u8()?;
    let kinds = (0..kinds).map(|_| parse_kind(&mut bytes)).collect::<Option<Vec<_>>>()?;
    let chunks = (0..rows.div_ceil(CHUNK_ROWS)).map(|_| Some((bytes.u64()?, bytes.u64()?)));
    let chunks = chunks.collect::<Option<Vec<_>>>()?;
    let buckets = (0..BUCKETS).map(|_| Some((bytes.u32()?, bytes.u64()?))).collect::<Option<Vec<_>>>()?;
    Some(Header { packed_refs, timeline, covered, surplus, latest, last_sequence, rows, kinds, chunks, buckets })
}

/// Returns `None` for a kind that this version does not know.
fn parse_kind(bytes: &mut Bytes<'_>) -> Option<(Kind, KindCount)> {
    let length = usize::from(bytes.u8()?);
    let (name, rest) = bytes.0.split_at_checked(length)?;
    bytes.0 = rest;
    let kind = std::str::from_utf8(name).ok()?.parse().ok()?;
    Some((kind, KindCount { count: bytes.u64()?, oldest: bytes.u64()? as i64 }))
}

struct Bytes<'b>(&'b [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
}
