//! Caches the result of the last scan, so that the next one reads only what changed.
//!
//! The file has one record per directory, children before their parents. Records are never modified: new ones are
//! appended, and the header gives the offset of the root's current record. Each record has a checksum, so that it can be
//! read without the others. The cache only saves work: if a record is damaged, its directory is read again. The layout
//! is described in `docs/store-format.md`.

mod differences;
mod parts;
mod record;
mod write;

use std::{
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use xxhash_rust::xxh3::xxh3_64;

use parts::Parts;
pub(super) use record::{CachedDirectory, CachedEntry, CachedNode};
use record::{Reader, push_stamp};

use crate::{
    disk::StoreFile,
    model::{CheckpointId, Entry, GitChanges, Memory, Mode, ModeDefaults, Stamp, WorkspacePath},
};

const MAGIC: &[u8; 8] = b"BTSTAT\x00\x06";
const HEADER_BYTES: usize = 4096;
/// The length and the checksum before the bytes of a record.
const FRAME_BYTES: usize = 12;

/// The longest tick of the kernel's clock for file times, in nanoseconds. A change made after the scan began can still
/// get a time that is this much earlier.
const TICK: i64 = 20_000_000;
/// The same for file systems whose times have a resolution of one or two seconds.
const COARSE_TICK: i64 = 2_000_000_000;

/// The state that the recorded ids depend on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheBase {
    /// The checkpoint that holds every recorded id. The cache is useless without it.
    pub(crate) checkpoint: CheckpointId,
    /// The usual permission bits, which the recorded ids do not encode.
    pub(crate) mode_defaults: ModeDefaults,
    /// The index of the user repository that decided which files are tracked.
    pub(crate) index: Option<Stamp>,
    /// The differences from that index. `None` if they were not computed.
    pub(crate) git_changes: Option<GitChanges>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    checkpoint: CheckpointId,
    mode_defaults: ModeDefaults,
    index: Option<Stamp>,
    /// The offset of the root's record.
    root: u64,
    /// The offset of the git changes, or zero if there are none.
    git_changes: u64,
    /// The length of the file when it was last written as a whole.
    first_length: u64,
    /// The length of the file. Bytes after it are ignored.
    length: u64,
}

/// A cache that was opened. Records are read when they are needed, one by one or all at once.
#[derive(Debug)]
pub(crate) struct StatCache {
    file: StoreFile,
    header_bytes: Vec<u8>,
    header: Header,
    base: CacheBase,
    /// The whole file, once it was read as a whole.
    whole: OnceLock<Vec<u8>>,
    /// The records that were read one by one.
    parts: Parts,
    is_damaged: AtomicBool,
}

impl StatCache {
    /// Opens the cache. Returns `None` if it does not exist or if its header is damaged.
    pub(crate) fn load(path: &Path) -> Option<Arc<Self>> {
        let file = StoreFile::open(path).ok()??;
        let header_bytes = file.read_at(0, HEADER_BYTES).ok()??;
        let header = Header::parse(&header_bytes)?;
        if file.stamp().ok()?.size < header.length {
            return None;
        }
        let mut base = CacheBase {
            checkpoint: header.checkpoint,
            mode_defaults: header.mode_defaults,
            index: header.index,
            git_changes: None,
        };
        let (whole, is_damaged) = (OnceLock::new(), AtomicBool::new(false));
        let parts = Parts::of(header.length);
        let mut cache = Self { file, header_bytes, header, base: base.clone(), whole, parts, is_damaged };
        base.git_changes = cache.framed(cache.header.git_changes).and_then(parse_changes);
        cache.base = base;
        Some(Arc::new(cache))
    }

    /// Returns the state that the recorded ids depend on.
    pub(crate) fn base(&self) -> &CacheBase {
        &self.base
    }

    /// Reads the whole file at once, for a scan that needs nearly all records.
    pub(super) fn read_whole(&self) {
        let read = || self.file.read_at(0, self.header.length as usize).ok().flatten().unwrap_or_default();
        self.whole.get_or_init(read);
    }

    /// Returns whether a directory that the scan took as unchanged could not be read from the cache later. Then the scan
    /// lacks its contents.
    pub(crate) fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    pub(super) fn root(&self) -> Option<CachedDirectory<'_>> {
        self.record(self.header.root)
    }

    /// Returns the record at this offset. Returns `None` if it is damaged.
    pub(super) fn record(&self, place: u64) -> Option<CachedDirectory<'_>> {
        CachedDirectory::parse(self.framed(place)?, place)
    }

    /// Returns the bytes at this offset, behind their length and checksum. Returns `None` if they are damaged.
    fn framed(&self, place: u64) -> Option<&[u8]> {
        if !(HEADER_BYTES as u64..self.header.length).contains(&place) {
            return None;
        }
        match self.whole.get() {
            Some(whole) => unframed(whole.get(usize::try_from(place).ok()?..)?),
            None => self.parts.get(place, || self.read_framed(place)),
        }
    }

    fn read_framed(&self, place: u64) -> Option<Box<[u8]>> {
        /// Most records are shorter.
        const FIRST_READ: u64 = 2048;
        let left = self.header.length - place;
        let mut bytes = self.file.read_at(place, left.min(FIRST_READ) as usize).ok()??;
        let length = Reader(&bytes).u32()? as u64 + FRAME_BYTES as u64;
        if length > bytes.len() as u64 {
            bytes = if length <= left { self.file.read_at(place, length as usize).ok()?? } else { return None };
        }
        unframed(&bytes).map(Box::from)
    }
}

/// Returns bytes without the length and the checksum before them. Returns `None` if the checksum does not match.
fn unframed(bytes: &[u8]) -> Option<&[u8]> {
    let mut reader = Reader(bytes);
    let length = reader.u32()? as usize;
    let checksum = reader.u64()?;
    reader.take(length).filter(|bytes| xxh3_64(bytes) == checksum)
}

/// Writes bytes behind their length and checksum.
fn push_framed(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; FRAME_BYTES]);
    write(out);
    let (frame, bytes) = out[start..].split_at_mut(FRAME_BYTES);
    frame[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
    frame[4..].copy_from_slice(&xxh3_64(bytes).to_le_bytes());
}

impl Memory for StatCache {
    fn entries(self: Arc<Self>, place: u64) -> Vec<Entry> {
        let Some(record) = self.record(place) else {
            self.is_damaged.store(true, Ordering::Relaxed);
            return Vec::new();
        };
        record.entries().map(|entry| entry.to_entry(&self)).collect()
    }
}

impl Header {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let body = bytes.strip_prefix(MAGIC)?;
        let (checksum, body) = body.split_first_chunk::<8>()?;
        if xxh3_64(body) != u64::from_le_bytes(*checksum) {
            return None;
        }
        let mut reader = Reader(body);
        let root = reader.u64()?;
        let git_changes = reader.u64()?;
        let mut mode = || reader.u16().map(Mode);
        let mode_defaults = ModeDefaults { file: mode()?, executable: mode()?, directory: mode()? };
        let index = if reader.u8()? == 1 { Some(reader.stamp()?) } else { None };
        let checkpoint = CheckpointId(reader.id()?);
        let (first_length, length) = (reader.u64()?, reader.u64()?);
        Some(Self { checkpoint, mode_defaults, index, root, git_changes, first_length, length })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::with_capacity(HEADER_BYTES);
        body.extend_from_slice(&self.root.to_le_bytes());
        body.extend_from_slice(&self.git_changes.to_le_bytes());
        let defaults = &self.mode_defaults;
        for mode in [defaults.file, defaults.executable, defaults.directory] {
            body.extend_from_slice(&mode.0.to_le_bytes());
        }
        body.push(u8::from(self.index.is_some()));
        if let Some(stamp) = &self.index {
            push_stamp(&mut body, stamp);
        }
        body.extend_from_slice(self.checkpoint.as_bytes());
        body.extend_from_slice(&self.first_length.to_le_bytes());
        body.extend_from_slice(&self.length.to_le_bytes());
        body.resize(HEADER_BYTES - MAGIC.len() - 8, 0);
        [MAGIC.as_slice(), &xxh3_64(&body).to_le_bytes(), &body].concat()
    }
}

/// Returns the git changes in these bytes.
fn parse_changes(bytes: &[u8]) -> Option<GitChanges> {
    let mut reader = Reader(bytes);
    let commit = String::from_utf8(reader.text()?.to_vec()).ok()?;
    let commit = Some(commit).filter(|commit| !commit.is_empty());
    let mut paths = || {
        let count = reader.u32()?;
        (0..count).map(|_| WorkspacePath::new(reader.text()?).ok()).collect::<Option<Vec<_>>>()
    };
    Some(GitChanges { commit, staged: paths()?, unstaged: paths()? })
}

fn push_changes(out: &mut Vec<u8>, changes: &GitChanges) {
    push_text(out, changes.commit.as_deref().unwrap_or_default().as_bytes());
    for paths in [&changes.staged, &changes.unstaged] {
        out.extend_from_slice(&(paths.len() as u32).to_le_bytes());
        paths.iter().for_each(|path| push_text(out, path.as_bytes()));
    }
}

fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u32).to_le_bytes());
    out.extend_from_slice(text);
}

/// Returns whether a change made after the scan began is certain to get a different stamp.
pub(super) fn is_settled(stamp: &Stamp, started: i64) -> bool {
    let whole_seconds = stamp.mtime % 1_000_000_000 == 0 && stamp.ctime % 1_000_000_000 == 0;
    let tick = if whole_seconds { COARSE_TICK } else { TICK };
    stamp.mtime.max(stamp.ctime) < started.saturating_sub(tick)
}
