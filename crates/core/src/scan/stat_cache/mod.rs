//! Caches the result of the last scan, so that the next one reads only what changed.
//!
//! The file has one record per directory, children before their parents. Records are never modified: new ones are
//! appended, and the header gives the offset of the root's current record. The cache only saves work: if the file is
//! damaged or in doubt, everything is read again. Its layout is described in `docs/store-format.md`.

mod differences;
mod record;
mod write;

use std::{path::Path, sync::Arc};

use xxhash_rust::xxh3::xxh3_64;

pub(super) use record::{CachedDirectory, CachedEntry, CachedNode};
use record::{Reader, push_stamp};

use crate::{
    disk::private,
    model::{CheckpointId, Entry, GitChanges, Memory, Mode, ModeDefaults, Stamp, WorkspacePath},
};

const MAGIC: &[u8; 8] = b"BTSTAT\x00\x05";
const HEADER_BYTES: usize = 4096;
/// A file with more segments than this is rewritten as one.
const MAX_SEGMENTS: usize = 200;

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

/// A part of the file that was written at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    length: u64,
    hash: u64,
}

impl Segment {
    fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len() as u64, hash: xxh3_64(bytes) }
    }
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
    segments: Vec<Segment>,
}

/// A loaded cache.
#[derive(Debug)]
pub(crate) struct StatCache {
    bytes: Vec<u8>,
    header: Header,
    base: CacheBase,
}

impl StatCache {
    /// Loads the cache. Returns `None` if it does not exist or is damaged.
    pub(crate) fn load(path: &Path) -> Option<Arc<Self>> {
        let mut bytes = private::read(path).ok()??;
        let header = Header::parse(bytes.get(..HEADER_BYTES)?)?;
        let mut end = HEADER_BYTES;
        for segment in &header.segments {
            let next = end.checked_add(usize::try_from(segment.length).ok()?)?;
            if Segment::of(bytes.get(end..next)?) != *segment {
                return None;
            }
            end = next;
        }
        // Another process may be appending after this point.
        bytes.truncate(end);
        let base = CacheBase {
            checkpoint: header.checkpoint,
            mode_defaults: header.mode_defaults,
            index: header.index,
            git_changes: parse_changes(&bytes, header.git_changes),
        };
        Some(Arc::new(Self { bytes, header, base }))
    }

    /// Returns the state that the recorded ids depend on.
    pub(crate) fn base(&self) -> &CacheBase {
        &self.base
    }

    pub(super) fn root(&self) -> Option<CachedDirectory<'_>> {
        self.record(self.header.root)
    }

    /// Returns the record at this offset.
    pub(super) fn record(&self, place: u64) -> Option<CachedDirectory<'_>> {
        CachedDirectory::parse(&self.bytes, place)
    }
}

impl Memory for StatCache {
    fn entries(self: Arc<Self>, place: u64) -> Vec<Entry> {
        // The caller got this place from a record that was parsed from the same bytes.
        let record = self.record(place);
        record.map(|record| record.entries().map(|entry| entry.to_entry(&self)).collect()).unwrap_or_default()
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
        let count = reader.u16()?;
        let mut segment = || Some(Segment { length: reader.u64()?, hash: reader.u64()? });
        let segments = (0..count).map(|_| segment()).collect::<Option<_>>()?;
        Some(Self { checkpoint, mode_defaults, index, root, git_changes, segments })
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
        body.extend_from_slice(&(self.segments.len() as u16).to_le_bytes());
        for segment in &self.segments {
            body.extend_from_slice(&segment.length.to_le_bytes());
            body.extend_from_slice(&segment.hash.to_le_bytes());
        }
        body.resize(HEADER_BYTES - MAGIC.len() - 8, 0);
        [MAGIC.as_slice(), &xxh3_64(&body).to_le_bytes(), &body].concat()
    }
}

/// Returns the git changes at this offset. Returns `None` if the offset is zero or the data is damaged.
fn parse_changes(bytes: &[u8], place: u64) -> Option<GitChanges> {
    if place == 0 {
        return None;
    }
    let mut reader = Reader(bytes.get(usize::try_from(place).ok()?..)?);
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
