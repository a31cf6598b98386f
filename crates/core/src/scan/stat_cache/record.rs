//! One directory in the stat cache: its layout, and how it is read in place.

use std::{ffi::CStr, sync::Arc};

use super::{StatCache, is_settled, push_framed};
use crate::model::{
    ContentId, Directory, DirectoryIds, Entry, Exception, FileEntry, ModesId, Node, Reason, Stamp, Summary, TreeId,
};

/// A record in the cache's bytes. Its entries are parsed only on request.
#[derive(Debug, Clone, Copy)]
pub(in crate::scan) struct CachedDirectory<'a> {
    pub(in crate::scan) place: u64,
    pub(in crate::scan) stamp: Stamp,
    pub(in crate::scan) fingerprint: u64,
    pub(in crate::scan) ids: Option<DirectoryIds>,
    bytes_below: u64,
    flags: u16,
    count: u32,
    entries: &'a [u8],
}

/// Any later change alters the stamp of the directory.
const SETTLED: u16 = 1;
const HAS_TREE: u16 = 1 << 1;
const HAS_MODES: u16 = 1 << 2;
const IS_CAPTURED: u16 = 1 << 3;
const HAS_SKIPPED: u16 = 1 << 4;
const HAS_IGNORED: u16 = 1 << 5;
/// Something in or below the directory was captured only because a checkpoint holds it.
const HAS_HELD: u16 = 1 << 6;
/// The directory contains a `.gitignore`.
const HAS_IGNORE_FILE: u16 = 1 << 7;
/// The directory contains a file whose name may mark it as rebuildable.
const HAS_MARK: u16 = 1 << 8;
/// More than the rules decided about one of the names: an exception applies to it, or one could.
const HAS_VERDICTS: u16 = 1 << 9;
/// The directory contains `.git`.
const HAS_GIT: u16 = 1 << 10;

/// One name in a record.
#[derive(Debug, Clone, Copy)]
pub(in crate::scan) struct CachedEntry<'a> {
    pub(in crate::scan) name: &'a CStr,
    pub(in crate::scan) node: CachedNode,
    pub(in crate::scan) exception: Option<Exception>,
    /// Of a directory, what its own record says about it as a whole.
    child: &'a [u8],
}

/// What the record of a directory says about one of its subdirectories, so that its record need not be read.
#[derive(Debug, Clone, Copy)]
pub(in crate::scan) struct CachedChild {
    pub(in crate::scan) stamp: Stamp,
    pub(in crate::scan) ids: Option<DirectoryIds>,
    fingerprint: u64,
    bytes_below: u64,
    flags: u16,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::scan) enum CachedNode {
    /// A file, and whether any later change alters its stamp.
    File(FileEntry, bool),
    Symlink(FileEntry, bool),
    /// A directory, with the offset of its own record.
    Directory(u64),
    /// A skipped name, with the reason and the size.
    Skipped(Reason, u64),
}

const FILE: u8 = 1;
const SYMLINK: u8 = 2;
const DIRECTORY: u8 = 3;
const SKIPPED: u8 = 4;

impl<'a> CachedDirectory<'a> {
    pub(super) fn parse(bytes: &'a [u8], place: u64) -> Option<Self> {
        let mut reader = Reader(bytes);
        let stamp = reader.stamp()?;
        let fingerprint = reader.u64()?;
        let bytes_below = reader.u64()?;
        let flags = reader.u16()?;
        let tree = if flags & HAS_TREE != 0 { Some(TreeId(reader.id()?)) } else { None };
        let modes = if flags & HAS_MODES != 0 { Some(ModesId(reader.id()?)) } else { None };
        let ids = tree.map(|tree| DirectoryIds { tree, modes });
        let count = reader.u32()?;
        Some(Self { place, stamp, fingerprint, ids, bytes_below, flags, count, entries: reader.0 })
    }

    /// Returns whether any later change alters the stamp of the directory.
    pub(in crate::scan) fn is_settled(&self) -> bool {
        self.flags & SETTLED != 0
    }

    pub(in crate::scan) fn has_ignore_file(&self) -> bool {
        self.flags & HAS_IGNORE_FILE != 0
    }

    pub(in crate::scan) fn has_mark(&self) -> bool {
        self.flags & HAS_MARK != 0
    }

    pub(in crate::scan) fn has_verdicts(&self) -> bool {
        self.flags & HAS_VERDICTS != 0
    }

    pub(in crate::scan) fn has_git(&self) -> bool {
        self.flags & HAS_GIT != 0
    }

    /// Returns the number of names.
    pub(in crate::scan) fn names(&self) -> usize {
        self.count as usize
    }

    /// Returns the entries, sorted by the bytes of their names.
    pub(in crate::scan) fn entries(&self) -> impl Iterator<Item = CachedEntry<'a>> + use<'a> {
        let mut reader = Reader(self.entries);
        (0..self.count).map_while(move |_| parse_entry(&mut reader))
    }

    /// Returns whether the directory contains this name.
    pub(in crate::scan) fn has_name(&self, name: &[u8]) -> bool {
        self.entries().map(|entry| entry.name.to_bytes()).take_while(|found| *found <= name).any(|found| found == name)
    }

    /// Returns the directory as it was recorded, with everything below it.
    pub(in crate::scan) fn to_directory(self, cache: &Arc<StatCache>) -> Directory {
        let Self { stamp, ids, fingerprint, bytes_below, flags, .. } = self;
        CachedChild { stamp, ids, fingerprint, bytes_below, flags }.to_directory(cache, self.place)
    }
}

impl CachedChild {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        let (stamp, fingerprint, bytes_below) = (reader.stamp()?, reader.u64()?, reader.u64()?);
        let flags = reader.u16()?;
        let tree = if flags & HAS_TREE != 0 { Some(TreeId(reader.id()?)) } else { None };
        let modes = if flags & HAS_MODES != 0 { Some(ModesId(reader.id()?)) } else { None };
        let ids = tree.map(|tree| DirectoryIds { tree, modes });
        Some(Self { stamp, ids, fingerprint, bytes_below, flags })
    }

    pub(in crate::scan) fn is_captured(&self) -> bool {
        self.flags & IS_CAPTURED != 0
    }

    fn to_directory(self, cache: &Arc<StatCache>, place: u64) -> Directory {
        let summary = Summary {
            bytes: self.bytes_below,
            is_captured: self.is_captured(),
            has_skipped: self.flags & HAS_SKIPPED != 0,
            has_ignored: self.flags & HAS_IGNORED != 0,
            has_held: self.flags & HAS_HELD != 0,
        };
        let mut directory = Directory::remembered(Arc::clone(cache) as _, place, summary);
        directory.stamp = self.stamp;
        directory.ids = self.ids;
        directory.fingerprint = self.fingerprint;
        directory
    }
}

impl CachedEntry<'_> {
    /// Returns what is recorded about a subdirectory as a whole.
    pub(in crate::scan) fn child(&self) -> Option<CachedChild> {
        CachedChild::parse(self.child)
    }

    /// Returns the entry as it was recorded.
    pub(in crate::scan) fn to_entry(self, cache: &Arc<StatCache>) -> Entry {
        let node = match self.node {
            CachedNode::File(file, _) => Node::File(file),
            CachedNode::Symlink(link, _) => Node::Symlink(link),
            CachedNode::Directory(place) => {
                let child = self.child().map(|child| child.to_directory(cache, place));
                Node::Directory(Box::new(child.unwrap_or_default()))
            }
            CachedNode::Skipped(reason, size) => Node::Skipped(reason, Stamp { size, ..Stamp::default() }),
        };
        Entry { name: self.name.to_bytes().into(), node, exception: self.exception }
    }
}

/// A subdirectory whose record is written: its offset and its summary.
pub(super) type WrittenChild = (u64, Summary);

/// Writes the record of one directory. `children` are its subdirectories, in order.
pub(super) fn push_record(
    out: &mut Vec<u8>,
    directory: &Directory,
    summary: &Summary,
    children: &[WrittenChild],
    started: i64,
) {
    push_framed(out, |out| {
        push_whole(out, directory, summary, flags_of(directory, summary, started));
        let entries = directory.entries();
        out.extend_from_slice(&(entries.len() as u32).to_le_bytes());
        let mut children = children.iter();
        for entry in entries {
            push_entry(out, entry, &mut children, started);
        }
    });
}

/// Writes what is recorded about a directory as a whole.
fn push_whole(out: &mut Vec<u8>, directory: &Directory, summary: &Summary, flags: u16) {
    push_stamp(out, &directory.stamp);
    out.extend_from_slice(&directory.fingerprint.to_le_bytes());
    out.extend_from_slice(&summary.bytes.to_le_bytes());
    out.extend_from_slice(&flags.to_le_bytes());
    if let Some(ids) = &directory.ids {
        out.extend_from_slice(ids.tree.as_bytes());
        out.extend_from_slice(ids.modes.as_ref().map_or(&[][..], |modes| modes.as_bytes()));
    }
}

/// Returns the flags that do not depend on the entries themselves.
fn flags_of_whole(directory: &Directory, summary: &Summary) -> u16 {
    let flags = [
        (HAS_TREE, directory.ids.is_some()),
        (HAS_MODES, directory.ids.is_some_and(|ids| ids.modes.is_some())),
        (IS_CAPTURED, summary.is_captured),
        (HAS_SKIPPED, summary.has_skipped),
        (HAS_IGNORED, summary.has_ignored),
        (HAS_HELD, summary.has_held),
    ];
    flags.into_iter().filter(|(_, is_set)| *is_set).fold(0, |flags, (flag, _)| flags | flag)
}

fn flags_of(directory: &Directory, summary: &Summary, started: i64) -> u16 {
    let entries = directory.entries();
    let has_name = |name: &[u8]| entries.iter().any(|entry| entry.name == name);
    let has_verdict = |entry: &Entry| {
        entry.exception.is_some() || matches!(entry.node, Node::Skipped(Reason::Ignored | Reason::Rebuildable, _))
    };
    let flags = [
        (SETTLED, is_settled(&directory.stamp, started)),
        (HAS_IGNORE_FILE, has_name(b".gitignore")),
        (HAS_MARK, has_name(b"pyvenv.cfg") || has_name(b"CACHEDIR.TAG")),
        (HAS_VERDICTS, entries.iter().any(has_verdict)),
        (HAS_GIT, has_name(b".git")),
    ];
    let whole = flags_of_whole(directory, summary);
    flags.into_iter().filter(|(_, is_set)| *is_set).fold(whole, |flags, (flag, _)| flags | flag)
}

fn push_entry<'c>(
    out: &mut Vec<u8>,
    entry: &Entry,
    children: &mut impl Iterator<Item = &'c WrittenChild>,
    started: i64,
) {
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
    out.extend_from_slice(&(entry.name.len() as u16).to_le_bytes());
    out.extend_from_slice(&entry.name);
    out.push(0);
    match &entry.node {
        Node::File(file) | Node::Symlink(file) => {
            out.push(u8::from(is_settled(&file.stamp, started)));
            push_stamp(out, &file.stamp);
            out.extend_from_slice(file.content.as_bytes());
        }
        Node::Directory(child) => {
            let (place, summary) = children.next().copied().unwrap_or_default();
            out.extend_from_slice(&place.to_le_bytes());
            push_whole(out, child, &summary, flags_of_whole(child, &summary));
        }
        Node::Skipped(reason, stamp) => {
            out.push(reason_number(*reason));
            out.extend_from_slice(&stamp.size.to_le_bytes());
        }
    }
}

fn parse_entry<'a>(reader: &mut Reader<'a>) -> Option<CachedEntry<'a>> {
    let kind = reader.u8()?;
    let length = reader.u16()? as usize;
    let name = CStr::from_bytes_with_nul(reader.take(length + 1)?).ok()?;
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
    let mut child = &[][..];
    let node = match kind & 15 {
        FILE => file(reader).map(|(entry, settled)| CachedNode::File(entry, settled))?,
        SYMLINK => file(reader).map(|(entry, settled)| CachedNode::Symlink(entry, settled))?,
        DIRECTORY => {
            let place = reader.u64()?;
            child = parse_whole(reader)?;
            CachedNode::Directory(place)
        }
        _ => CachedNode::Skipped(reason_of(reader.u8()?)?, reader.u64()?),
    };
    Some(CachedEntry { name, node, exception, child })
}

/// Returns the bytes that record a directory as a whole.
fn parse_whole<'a>(reader: &mut Reader<'a>) -> Option<&'a [u8]> {
    /// The stamp, the fingerprint and the bytes below, before the flags.
    const BEFORE_FLAGS: usize = 64;
    let flags = u16::from_le_bytes(*reader.0.get(BEFORE_FLAGS..)?.first_chunk()?);
    let ids = [HAS_TREE, HAS_MODES].into_iter().filter(|flag| flags & flag != 0).count();
    reader.take(BEFORE_FLAGS + 2 + ids * 20)
}

const REASONS: [Reason; 10] = [
    Reason::Ignored,
    Reason::Rebuildable,
    Reason::Git,
    Reason::Own,
    Reason::Special,
    Reason::TooLarge,
    Reason::Unreadable,
    Reason::Changing,
    Reason::Name,
    Reason::Deep,
];

fn reason_number(reason: Reason) -> u8 {
    match reason {
        Reason::Ignored => 0,
        Reason::Rebuildable => 1,
        Reason::Git => 2,
        Reason::Own => 3,
        Reason::Special => 4,
        Reason::TooLarge => 5,
        Reason::Unreadable => 6,
        Reason::Changing => 7,
        Reason::Name => 8,
        Reason::Deep => 9,
    }
}

/// Returns `None` for an unknown number.
fn reason_of(number: u8) -> Option<Reason> {
    REASONS.into_iter().find(|reason| reason_number(*reason) == number)
}

pub(super) fn push_stamp(out: &mut Vec<u8>, stamp: &Stamp) {
    for number in [stamp.device, stamp.inode, stamp.size, stamp.mtime as u64, stamp.ctime as u64] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&stamp.mode.to_le_bytes());
    out.extend_from_slice(&stamp.links.to_le_bytes());
}

/// Reads numbers and bytes in sequence. Each method returns `None` if too few bytes are left.
pub(super) struct Reader<'a>(pub(super) &'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads bytes that follow their length.
    pub(super) fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    pub(super) fn id(&mut self) -> Option<[u8; 20]> {
        self.array()
    }

    pub(super) fn stamp(&mut self) -> Option<Stamp> {
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
