//! What the last scan saw, so that the next one reads only what changed.
//!
//! One record per directory, checksummed by itself, children in front of their parents. It only ever saves work: a
//! record that is missing, damaged or in doubt means that its files are read again. The file's layout is described in
//! `docs/store-format.md`.

use std::path::Path;

use bstr::ByteSlice;
use xxhash_rust::xxh3::xxh3_64;

use crate::{
    disk::private::{self, Durability},
    model::{
        CheckpointId, ContentId, Directory, DirectoryIds, Entry, Exception, FileEntry, Mode, ModeDefaults, ModesId,
        Node, Reason, Stamp, TreeId,
    },
};

const MAGIC: &[u8; 8] = b"BTSTAT\x00\x02";

/// Times this close to the scan may still be stamped on later changes: the kernel's clock for files ticks that slowly.
const TICK: i64 = 20_000_000;
/// The same where a file system keeps whole seconds, or two of them.
const COARSE_TICK: i64 = 2_000_000_000;

/// What the recorded ids rest on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CacheBase {
    /// Checkpoints that together hold every recorded id; without one of them the cache is worth nothing.
    pub(crate) checkpoints: Vec<CheckpointId>,
    /// The usual permission bits that the recorded ids leave unsaid.
    pub(crate) mode_defaults: ModeDefaults,
    /// The user's index that decided what is tracked.
    pub(crate) index: Option<Stamp>,
}

/// A loaded cache.
#[derive(Debug)]
pub(crate) struct StatCache {
    bytes: Vec<u8>,
    base: CacheBase,
    root: u64,
}

/// The record of one directory.
#[derive(Debug)]
pub(super) struct CachedDirectory<'a> {
    pub(super) stamp: Stamp,
    pub(super) ids: Option<DirectoryIds>,
    pub(super) fingerprint: u64,
    pub(super) is_settled: bool,
    pub(super) entries: Vec<CachedEntry<'a>>,
}

#[derive(Debug, Clone)]
pub(super) struct CachedEntry<'a> {
    pub(super) name: &'a [u8],
    pub(super) node: CachedNode,
    pub(super) exception: Option<Exception>,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum CachedNode {
    /// A file, and whether its stamp tells a later change for sure.
    File(FileEntry, bool),
    Symlink(FileEntry, bool),
    /// Where the directory's own record lies.
    Directory(u64),
    Skipped(Reason),
}

impl CachedDirectory<'_> {
    pub(super) fn find(&self, name: &[u8]) -> Option<&CachedEntry<'_>> {
        let position = self.entries.binary_search_by(|entry| entry.name.cmp(name)).ok()?;
        Some(&self.entries[position])
    }
}

impl StatCache {
    /// Loads the cache; none where there is none or its header is damaged.
    pub(crate) fn load(path: &Path) -> Option<Self> {
        let bytes = private::read(path).ok()??;
        let body = bytes.strip_prefix(MAGIC)?;
        let checksum = u64::from_le_bytes(body.get(..8)?.try_into().ok()?);
        let length = u32::from_le_bytes(body.get(8..12)?.try_into().ok()?) as usize;
        let header = body.get(12..12 + length)?;
        if xxh3_64(header) != checksum {
            return None;
        }
        let mut reader = Reader(header);
        let root = reader.u64()?;
        let mode = |reader: &mut Reader<'_>| reader.u16().map(Mode);
        let mode_defaults =
            ModeDefaults { file: mode(&mut reader)?, executable: mode(&mut reader)?, directory: mode(&mut reader)? };
        let index = if reader.u8()? == 1 { Some(reader.stamp()?) } else { None };
        let count = reader.u16()?;
        let checkpoints = (0..count).map(|_| reader.id().map(CheckpointId)).collect::<Option<_>>()?;
        Some(Self { base: CacheBase { checkpoints, mode_defaults, index }, root, bytes })
    }

    /// What the recorded ids rest on.
    pub(crate) fn base(&self) -> &CacheBase {
        &self.base
    }

    pub(super) fn root(&self) -> Option<CachedDirectory<'_>> {
        self.directory(self.root)
    }

    /// The record at this place; none where it is damaged.
    pub(super) fn directory(&self, offset: u64) -> Option<CachedDirectory<'_>> {
        let start = usize::try_from(offset).ok()?;
        let head = self.bytes.get(start..start.checked_add(12)?)?;
        let checksum = u64::from_le_bytes(head[..8].try_into().ok()?);
        let length = u32::from_le_bytes(head[8..].try_into().ok()?) as usize;
        let record = self.bytes.get(start + 12..start.checked_add(12)?.checked_add(length)?)?;
        if xxh3_64(record) != checksum {
            return None;
        }
        parse_directory(record)
    }

    /// Writes what a scan saw; the ids in it must be those of the checkpoints in `base`.
    pub(crate) fn write(path: &Path, root: &Directory, base: &CacheBase, started: i64) -> std::io::Result<()> {
        let mut header = Vec::new();
        // The header comes first and says where the root's record lies, which is known last: its length is fixed.
        let header_length = header_length(base);
        let mut out = vec![0; MAGIC.len() + 12 + header_length];
        let root = write_directory(&mut out, root, started);
        header.extend_from_slice(&root.to_le_bytes());
        for mode in [base.mode_defaults.file, base.mode_defaults.executable, base.mode_defaults.directory] {
            header.extend_from_slice(&mode.0.to_le_bytes());
        }
        match &base.index {
            Some(stamp) => {
                header.push(1);
                push_stamp(&mut header, stamp);
            }
            None => header.push(0),
        }
        header.extend_from_slice(&(base.checkpoints.len() as u16).to_le_bytes());
        for checkpoint in &base.checkpoints {
            header.extend_from_slice(checkpoint.as_bytes());
        }
        debug_assert_eq!(header.len(), header_length);
        let mut place = out.as_mut_slice();
        for part in [MAGIC.as_slice(), &xxh3_64(&header).to_le_bytes(), &(header.len() as u32).to_le_bytes(), &header] {
            let (here, rest) = place.split_at_mut(part.len());
            here.copy_from_slice(part);
            place = rest;
        }
        private::replace(path, &out, Durability::Unsynced)
    }
}

fn header_length(base: &CacheBase) -> usize {
    8 + 6 + 1 + if base.index.is_some() { STAMP_BYTES } else { 0 } + 2 + base.checkpoints.len() * 20
}

/// Can this stamp be told from that of a change made right after the scan began?
fn is_settled(stamp: &Stamp, started: i64) -> bool {
    let whole_seconds = stamp.mtime % 1_000_000_000 == 0 && stamp.ctime % 1_000_000_000 == 0;
    let tick = if whole_seconds { COARSE_TICK } else { TICK };
    stamp.mtime.max(stamp.ctime) < started.saturating_sub(tick)
}

const FILE: u8 = 1;
const SYMLINK: u8 = 2;
const DIRECTORY: u8 = 3;
const SKIPPED: u8 = 4;

fn write_directory(out: &mut Vec<u8>, directory: &Directory, started: i64) -> u64 {
    let children: Vec<u64> = directory
        .entries
        .iter()
        .map(|entry| match &entry.node {
            Node::Directory(child) => write_directory(out, child, started),
            _ => 0,
        })
        .collect();
    let offset = out.len();
    out.extend_from_slice(&[0; 12]);
    push_stamp(out, &directory.stamp);
    out.extend_from_slice(&directory.fingerprint.to_le_bytes());
    let modes = directory.ids.and_then(|ids| ids.modes);
    let flags = u8::from(is_settled(&directory.stamp, started))
        | u8::from(directory.ids.is_some()) << 1
        | u8::from(modes.is_some()) << 2;
    out.push(flags);
    if let Some(ids) = &directory.ids {
        out.extend_from_slice(ids.tree.as_bytes());
    }
    if let Some(modes) = &modes {
        out.extend_from_slice(modes.as_bytes());
    }
    out.extend_from_slice(&(directory.entries.len() as u32).to_le_bytes());
    for (entry, child) in directory.entries.iter().zip(children) {
        write_entry(out, entry, child, started);
    }
    let checksum = xxh3_64(&out[offset + 12..]);
    let length = (out.len() - offset - 12) as u32;
    out[offset..offset + 8].copy_from_slice(&checksum.to_le_bytes());
    out[offset + 8..offset + 12].copy_from_slice(&length.to_le_bytes());
    offset as u64
}

fn write_entry(out: &mut Vec<u8>, entry: &Entry, child: u64, started: i64) {
    out.extend_from_slice(&(entry.name.len() as u16).to_le_bytes());
    out.extend_from_slice(&entry.name);
    let exception = match entry.exception {
        None => 0,
        Some(Exception::Named) => 1,
        Some(Exception::Tracked) => 2,
        Some(Exception::Held) => 3,
    };
    let kind = match &entry.node {
        Node::File(_) => FILE,
        Node::Symlink(_) => SYMLINK,
        Node::Directory(_) => DIRECTORY,
        Node::Skipped(..) => SKIPPED,
    };
    out.push(kind | exception << 4);
    match &entry.node {
        Node::File(file) | Node::Symlink(file) => {
            out.push(u8::from(is_settled(&file.stamp, started)));
            push_stamp(out, &file.stamp);
            out.extend_from_slice(file.content.as_bytes());
        }
        Node::Directory(_) => out.extend_from_slice(&child.to_le_bytes()),
        Node::Skipped(reason, _) => out.push(reason_number(*reason)),
    }
}

fn parse_directory(record: &[u8]) -> Option<CachedDirectory<'_>> {
    let mut reader = Reader(record);
    let stamp = reader.stamp()?;
    let fingerprint = reader.u64()?;
    let flags = reader.u8()?;
    let tree = if flags & 2 != 0 { Some(TreeId(reader.id()?)) } else { None };
    let modes = if flags & 4 != 0 { Some(ModesId(reader.id()?)) } else { None };
    let count = reader.u32()? as usize;
    let mut entries = Vec::with_capacity(count.min(record.len() / 4));
    for _ in 0..count {
        entries.push(parse_entry(&mut reader)?);
    }
    Some(CachedDirectory {
        stamp,
        ids: tree.map(|tree| DirectoryIds { tree, modes }),
        fingerprint,
        is_settled: flags & 1 != 0,
        entries,
    })
}

fn parse_entry<'a>(reader: &mut Reader<'a>) -> Option<CachedEntry<'a>> {
    let length = reader.u16()? as usize;
    let name = reader.take(length)?;
    let kind = reader.u8()?;
    let exception = match kind >> 4 {
        0 => None,
        1 => Some(Exception::Named),
        2 => Some(Exception::Tracked),
        _ => Some(Exception::Held),
    };
    let file = |reader: &mut Reader<'a>| {
        let settled = reader.u8()? == 1;
        Some((FileEntry { stamp: reader.stamp()?, content: ContentId(reader.id()?) }, settled))
    };
    let node = match kind & 15 {
        FILE => file(reader).map(|(entry, settled)| CachedNode::File(entry, settled))?,
        SYMLINK => file(reader).map(|(entry, settled)| CachedNode::Symlink(entry, settled))?,
        DIRECTORY => CachedNode::Directory(reader.u64()?),
        _ => CachedNode::Skipped(reason_of(reader.u8()?)?),
    };
    Some(CachedEntry { name: name.as_bytes(), node, exception })
}

const REASONS: [Reason; 9] = [
    Reason::Ignored,
    Reason::Rebuildable,
    Reason::Git,
    Reason::Own,
    Reason::Special,
    Reason::TooLarge,
    Reason::Unreadable,
    Reason::Changing,
    Reason::Name,
];

fn reason_number(reason: Reason) -> u8 {
    REASONS.iter().position(|other| *other == reason).unwrap_or_default() as u8
}

fn reason_of(number: u8) -> Option<Reason> {
    REASONS.get(number as usize).copied()
}

const STAMP_BYTES: usize = 48;

fn push_stamp(out: &mut Vec<u8>, stamp: &Stamp) {
    for number in [stamp.device, stamp.inode, stamp.size, stamp.mtime as u64, stamp.ctime as u64] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&stamp.mode.to_le_bytes());
    out.extend_from_slice(&stamp.links.to_le_bytes());
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn id(&mut self) -> Option<[u8; 20]> {
        self.array()
    }

    fn stamp(&mut self) -> Option<Stamp> {
        Some(Stamp {
            device: self.u64()?,
            inode: self.u64()?,
            size: self.u64()?,
            mtime: self.u64()? as i64,
            ctime: self.u64()? as i64,
            mode: self.u32()?,
            links: self.u32()?,
        })
    }
}
