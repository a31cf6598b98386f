//! The index of the user repository, read in place: the files that git tracks, and the stat data that git recorded for
//! each.
//!
//! The usual format is parsed here, since every save reads it. Gitoxide parses all others.

use std::{
    ops::Range,
    path::{Path, PathBuf},
};

use bstr::{BStr, ByteSlice};

use crate::disk;

/// The index of a repository.
pub(super) enum Index {
    Plain(PlainIndex),
    Other(Box<gix_index::File>),
}

/// One file that git tracks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct IndexEntry<'a> {
    pub(super) path: &'a BStr,
    /// Git's mode, including the type.
    pub(super) mode: u32,
    pub(super) id: &'a [u8],
    /// Set if this is one side of a conflict.
    pub(super) is_conflicted: bool,
    /// Set if the user told git not to check the file.
    pub(super) is_exempt: bool,
    /// The modification time in seconds and nanoseconds.
    pub(super) mtime: (u32, u32),
    /// The low 32 bits of the size.
    pub(super) size: u32,
}

/// A directory whose files a sparse index does not list.
pub(super) const DIRECTORY: u32 = 0o040_000;
pub(super) const FILE: u32 = 0o100_644;
pub(super) const EXECUTABLE: u32 = 0o100_755;
pub(super) const SYMLINK: u32 = 0o120_000;
pub(super) const SUBMODULE: u32 = 0o160_000;

impl Index {
    /// Reads the index. Returns `None` if it does not exist or can't be parsed.
    pub(super) fn at(path: PathBuf, hash: gix_hash::Kind) -> Option<Self> {
        match disk::read_regular(&path).ok()?.and_then(|bytes| PlainIndex::parse(bytes, hash.len_in_bytes())) {
            Some(plain) => Some(Self::Plain(plain)),
            None => Self::other(&path, hash),
        }
    }

    fn other(path: &Path, hash: gix_hash::Kind) -> Option<Self> {
        parsed(path, hash).map(|file| Self::Other(Box::new(file)))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Plain(plain) => plain.starts.len(),
            Self::Other(file) => file.entries().len(),
        }
    }

    /// Returns the entry at this position. Entries are sorted by their paths.
    pub(super) fn entry(&self, position: usize) -> IndexEntry<'_> {
        match self {
            Self::Plain(plain) => plain.entry(position),
            Self::Other(file) => entry_of(file, position),
        }
    }

    /// Returns the positions of the entries with this path. There is more than one in a conflict.
    pub(super) fn of_path(&self, path: &[u8]) -> Range<usize> {
        let start = partition(0..self.len(), |position| self.entry(position).path < path.as_bstr());
        start..partition(start..self.len(), |position| self.entry(position).path <= path.as_bstr())
    }

    /// Returns whether a sparse index has a directory above this path as a single entry.
    pub(super) fn is_below_directory(&self, path: &[u8]) -> bool {
        let Self::Other(file) = self else { return false };
        file.is_sparse()
            && path
                .find_iter("/")
                .any(|end| self.of_path(&path[..=end]).any(|position| self.entry(position).mode == DIRECTORY))
    }

    /// Returns the part of the range whose paths start with this prefix. The entries are sorted, so it is contiguous.
    pub(super) fn with_prefix(&self, range: Range<usize>, prefix: &[u8]) -> Range<usize> {
        let start = partition(range.clone(), |position| self.entry(position).path < prefix.as_bstr());
        start..partition(start..range.end, |position| self.entry(position).path.starts_with(prefix))
    }
}

/// Reads the complete index, with its shared part. Returns `None` if the index or a shared part is not a regular file:
/// gitoxide would wait for a FIFO.
pub(super) fn parsed(path: &Path, hash: gix_hash::Kind) -> Option<gix_index::File> {
    let directory = path.parent()?;
    let names = disk::private::names(directory).ok()?;
    let mut shared = names.iter().filter(|name| name.as_encoded_bytes().starts_with(b"sharedindex."));
    let is_sound = disk::is_regular(path) && shared.all(|name| disk::is_regular(&directory.join(name)));
    is_sound.then(|| gix_index::File::at(path, hash, true, Default::default()).ok()).flatten()
}

/// Returns the first position in a range for which `is_before` is false.
fn partition(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

fn entry_of(file: &gix_index::File, position: usize) -> IndexEntry<'_> {
    use gix_index::entry::{Flags, Stage};
    let entry = file.entry(position);
    IndexEntry {
        path: entry.path(file),
        mode: entry.mode.bits(),
        id: entry.id.as_bytes(),
        is_conflicted: entry.stage() != Stage::Unconflicted,
        is_exempt: entry.flags.intersects(Flags::SKIP_WORKTREE | Flags::ASSUME_VALID),
        mtime: (entry.stat.mtime.secs, entry.stat.mtime.nsecs),
        size: entry.stat.size,
    }
}

/// An index of version 2 or 3 that contains all of its entries itself.
pub(super) struct PlainIndex {
    bytes: Vec<u8>,
    id_bytes: usize,
    starts: Vec<u32>,
}

/// The size of the stat data before each id.
const STAT_BYTES: usize = 40;
const ASSUME_VALID: u16 = 1 << 15;
const EXTENDED: u16 = 1 << 14;
const STAGE: u16 = 3 << 12;
/// The bits of the flags that hold the length of the path. If all of them are set, the path is this long or longer.
const NAME_BYTES: u16 = 0xfff;
const SKIP_WORKTREE: u16 = 1 << 14;

impl PlainIndex {
    /// Parses an index. Returns `None` for every other format, and for a damaged index.
    fn parse(bytes: Vec<u8>, id_bytes: usize) -> Option<Self> {
        let version = number(bytes.strip_prefix(b"DIRC")?, 0)?;
        if !matches!(version, 2 | 3) {
            return None;
        }
        let count = number(&bytes, 8)? as usize;
        let mut starts = Vec::with_capacity(count.min(bytes.len() / STAT_BYTES));
        let mut start = 12;
        for _ in 0..count {
            starts.push(u32::try_from(start).ok()?);
            let path = path_range(&bytes, start, id_bytes)?;
            // Each entry is padded to a multiple of eight bytes, with at least one NUL.
            start += (path.end - start + 8) & !7;
        }
        holds_all_entries(&bytes, start, id_bytes).then_some(Self { bytes, id_bytes, starts })
    }

    fn entry(&self, position: usize) -> IndexEntry<'_> {
        let start = self.starts[position] as usize;
        let number = |offset: usize| number(&self.bytes, start + offset).unwrap_or_default();
        let after_id = start + STAT_BYTES + self.id_bytes;
        let flags = short(&self.bytes, after_id).unwrap_or_default();
        let more = if flags & EXTENDED != 0 { short(&self.bytes, after_id + 2).unwrap_or_default() } else { 0 };
        let path = path_range(&self.bytes, start, self.id_bytes).unwrap_or_default();
        IndexEntry {
            path: self.bytes[path].as_bstr(),
            mode: number(24),
            id: &self.bytes[start + STAT_BYTES..after_id],
            is_conflicted: flags & STAGE != 0,
            is_exempt: flags & ASSUME_VALID != 0 || more & SKIP_WORKTREE != 0,
            mtime: (number(8), number(12)),
            size: number(36),
        }
    }
}

/// Returns the range of the path of the entry at `start`.
fn path_range(bytes: &[u8], start: usize, id_bytes: usize) -> Option<Range<usize>> {
    let flags_at = start + STAT_BYTES + id_bytes;
    let flags = short(bytes, flags_at)?;
    let path = flags_at + if flags & EXTENDED != 0 { 4 } else { 2 };
    let length = match flags & NAME_BYTES {
        NAME_BYTES => bytes.get(path..)?.find_byte(0)?,
        length => usize::from(length),
    };
    (bytes.len() > path + length).then(|| path..path + length)
}

/// Returns whether all extensions after the entries are optional, so that the entries are complete without them.
fn holds_all_entries(bytes: &[u8], mut at: usize, id_bytes: usize) -> bool {
    while at + id_bytes < bytes.len() {
        let (Some(name), Some(length)) = (bytes.get(at..at + 4), number(bytes, at + 4)) else { return false };
        // A lower-case letter marks a required extension. Git itself refuses an index with a required extension that it
        // does not know.
        if !name[0].is_ascii_uppercase() {
            return false;
        }
        at += 8 + length as usize;
    }
    true
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}
