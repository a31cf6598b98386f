//! Snapshots as git trees: writing a scanned directory, and listing a stored one.
//!
//! A directory is a git tree. Permission bits that git has no room for lie in a second tree of the same shape: `m` names
//! the exceptions among a directory's entries, `d` holds the same for its subdirectories. Where nothing is exceptional
//! there is no such tree, and an unchanged subtree shares both with the checkpoint before.

use std::io;

use bstr::{BString, ByteSlice};
use gix_object::tree::EntryKind;

use super::{
    objects::{ObjectKind, ObjectProblem, ObjectReader, bytes_of, hash_object, object_id},
    pack::PackWriter,
};
use crate::model::{
    ContentId, Directory, DirectoryIds, Mode, ModeDefaults, ModesId, Node, TreeId, is_safe_name,
};

/// A stored snapshot, or a directory in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) ids: DirectoryIds,
    pub(crate) defaults: ModeDefaults,
}

/// One name in a stored directory.
#[derive(Debug, Clone)]
pub(crate) struct StoredEntry {
    pub(crate) name: BString,
    pub(crate) node: StoredNode,
}

/// What a stored directory has under a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredNode {
    File { content: ContentId, mode: Mode },
    Symlink { target: ContentId },
    Directory { snapshot: Snapshot, mode: Mode },
}

/// Where tree objects go.
pub(super) trait TreeSink {
    fn put(&self, kind: ObjectKind, bytes: &[u8]) -> io::Result<gix_hash::ObjectId>;
}

impl TreeSink for PackWriter {
    fn put(&self, kind: ObjectKind, bytes: &[u8]) -> io::Result<gix_hash::ObjectId> {
        self.put_object(kind, bytes)
    }
}

impl TreeSink for super::HashOnly {
    fn put(&self, kind: ObjectKind, bytes: &[u8]) -> io::Result<gix_hash::ObjectId> {
        hash_object(kind, bytes)
    }
}

/// Names a directory with all that is below it, and puts its trees into the sink; known ids are taken as they are.
pub(super) fn write(directory: &mut Directory, defaults: &ModeDefaults, sink: &dyn TreeSink) -> io::Result<DirectoryIds> {
    if let Some(ids) = directory.ids {
        return Ok(ids);
    }
    let mut tree = Vec::new();
    let mut exceptions = Vec::new();
    let mut modes_below = Vec::new();
    for entry in &mut directory.entries {
        if !entry.node.is_captured() {
            continue;
        }
        let (kind, id, exceptional) = match &mut entry.node {
            Node::File(file) => {
                let mode = Mode::from_raw(file.stamp.mode);
                let is_executable = mode.is_executable();
                let kind = if is_executable { EntryKind::BlobExecutable } else { EntryKind::Blob };
                (kind, object_id(file.content.as_bytes()), (mode != defaults.of_file(is_executable)).then_some(mode))
            }
            Node::Symlink(link) => (EntryKind::Link, object_id(link.content.as_bytes()), None),
            Node::Directory(child) => {
                let ids = write(child, defaults, sink)?;
                if let Some(modes) = ids.modes {
                    modes_below.push(TreeLine::new(EntryKind::Tree, &entry.name, object_id(modes.as_bytes())));
                }
                let mode = child.mode();
                (EntryKind::Tree, object_id(ids.tree.as_bytes()), (mode != defaults.directory).then_some(mode))
            }
            Node::Skipped(..) => continue,
        };
        if let Some(mode) = exceptional {
            exceptions.extend_from_slice(format!("{:o} ", mode.0).as_bytes());
            exceptions.extend_from_slice(&entry.name);
            exceptions.push(0);
        }
        tree.push(TreeLine::new(kind, &entry.name, id));
    }
    let tree = put_tree(tree, sink)?;
    let modes = write_modes(&exceptions, modes_below, sink)?;
    let ids = DirectoryIds { tree: TreeId(bytes_of(&tree)), modes: modes.map(|id| ModesId(bytes_of(&id))) };
    directory.ids = Some(ids);
    Ok(ids)
}

fn write_modes(
    exceptions: &[u8],
    below: Vec<TreeLine<'_>>,
    sink: &dyn TreeSink,
) -> io::Result<Option<gix_hash::ObjectId>> {
    let mut lines = Vec::new();
    if !below.is_empty() {
        lines.push(TreeLine::new(EntryKind::Tree, b"d", put_tree(below, sink)?));
    }
    if !exceptions.is_empty() {
        lines.push(TreeLine::new(EntryKind::Blob, b"m", sink.put(ObjectKind::Blob, exceptions)?));
    }
    if lines.is_empty() { Ok(None) } else { put_tree(lines, sink).map(Some) }
}

pub(super) struct TreeLine<'a> {
    kind: EntryKind,
    name: &'a [u8],
    id: gix_hash::ObjectId,
}

impl<'a> TreeLine<'a> {
    pub(super) fn new(kind: EntryKind, name: &'a [u8], id: gix_hash::ObjectId) -> Self {
        Self { kind, name, id }
    }

    /// Git sorts a directory as if its name ended in a slash.
    fn sort_key(&self) -> impl Iterator<Item = u8> + '_ {
        let slash = (self.kind == EntryKind::Tree).then_some(b'/');
        self.name.iter().copied().chain(slash)
    }
}

pub(super) fn put_tree(mut lines: Vec<TreeLine<'_>>, sink: &dyn TreeSink) -> io::Result<gix_hash::ObjectId> {
    lines.sort_unstable_by(|a, b| a.sort_key().cmp(b.sort_key()));
    let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.name.len() + 28).sum());
    for line in &lines {
        bytes.extend_from_slice(line.kind.as_octal_str());
        bytes.push(b' ');
        bytes.extend_from_slice(line.name);
        bytes.push(0);
        bytes.extend_from_slice(line.id.as_slice());
    }
    sink.put(ObjectKind::Tree, &bytes)
}

/// Lists a stored directory, names in the order of their bytes. Names that no restore may write are damage.
pub(super) fn list(reader: &ObjectReader, snapshot: &Snapshot) -> Result<Vec<StoredEntry>, ObjectProblem> {
    let tree_id = object_id(snapshot.ids.tree.as_bytes());
    let damaged = |why: String| ObjectProblem::Damaged(tree_id, why);
    let bytes = reader.read(&tree_id, ObjectKind::Tree)?;
    let modes = Modes::read(reader, snapshot.ids.modes)?;
    let mut entries = Vec::new();
    for entry in gix_object::TreeRefIter::from_bytes(&bytes, gix_hash::Kind::Sha1) {
        let entry = entry.map_err(|error| damaged(error.to_string()))?;
        if !is_safe_name(entry.filename) {
            return Err(damaged(format!("it has an entry {:?}", entry.filename)));
        }
        let content = ContentId(bytes_of(entry.oid));
        let mode = |usual: Mode| modes.of(entry.filename).unwrap_or(usual);
        let node = match entry.mode.kind() {
            EntryKind::Blob => StoredNode::File { content, mode: mode(snapshot.defaults.file) },
            EntryKind::BlobExecutable => StoredNode::File { content, mode: mode(snapshot.defaults.executable) },
            EntryKind::Link => StoredNode::Symlink { target: content },
            EntryKind::Tree => StoredNode::Directory {
                snapshot: Snapshot {
                    ids: DirectoryIds { tree: TreeId(bytes_of(entry.oid)), modes: modes.below(entry.filename) },
                    defaults: snapshot.defaults,
                },
                mode: mode(snapshot.defaults.directory),
            },
            EntryKind::Commit => return Err(damaged(format!("its entry {:?} is no file", entry.filename))),
        };
        entries.push(StoredEntry { name: entry.filename.into(), node });
    }
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    if let Some(twice) = entries.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(damaged(format!("it has two entries {:?}", twice[0].name)));
    }
    Ok(entries)
}

/// The exceptional permission bits of one directory.
#[derive(Default)]
struct Modes {
    exceptions: Vec<(BString, Mode)>,
    below: Vec<(BString, ModesId)>,
}

impl Modes {
    fn read(reader: &ObjectReader, id: Option<ModesId>) -> Result<Self, ObjectProblem> {
        let mut modes = Self::default();
        let Some(id) = id.map(|id| object_id(id.as_bytes())) else { return Ok(modes) };
        let damaged = |why: String| ObjectProblem::Damaged(id, why);
        let bytes = reader.read(&id, ObjectKind::Tree)?;
        for entry in gix_object::TreeRefIter::from_bytes(&bytes, gix_hash::Kind::Sha1) {
            let entry = entry.map_err(|error| damaged(error.to_string()))?;
            match entry.filename.as_bytes() {
                b"m" => {
                    let list = reader.read(entry.oid, ObjectKind::Blob)?;
                    modes.exceptions = parse_exceptions(&list).ok_or_else(|| damaged("its modes".into()))?;
                }
                b"d" => {
                    let list = reader.read(entry.oid, ObjectKind::Tree)?;
                    for below in gix_object::TreeRefIter::from_bytes(&list, gix_hash::Kind::Sha1) {
                        let below = below.map_err(|error| damaged(error.to_string()))?;
                        modes.below.push((below.filename.into(), ModesId(bytes_of(below.oid))));
                    }
                }
                _ => {}
            }
        }
        modes.exceptions.sort();
        modes.below.sort();
        Ok(modes)
    }

    fn of(&self, name: &[u8]) -> Option<Mode> {
        let position = self.exceptions.binary_search_by(|(other, _)| other.as_slice().cmp(name)).ok()?;
        Some(self.exceptions[position].1)
    }

    fn below(&self, name: &[u8]) -> Option<ModesId> {
        let position = self.below.binary_search_by(|(other, _)| other.as_slice().cmp(name)).ok()?;
        Some(self.below[position].1)
    }
}

fn parse_exceptions(bytes: &[u8]) -> Option<Vec<(BString, Mode)>> {
    let lines = bytes.split(|byte| *byte == 0).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (mode, name) = line.split_once_str(" ")?;
            let mode = u16::from_str_radix(mode.to_str().ok()?, 8).ok()?;
            (mode <= 0o7777).then(|| (name.into(), Mode(mode)))
        })
        .collect()
}
