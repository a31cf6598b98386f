//! Snapshots as git trees: writing a scanned directory, and listing a stored one.
//!
//! A directory is a git tree. Permission bits that git has no place for are in a second tree of the same shape: `m`
//! names the exceptions among a directory's entries, `d` holds the same for its subdirectories. If nothing is
//! exceptional, there is no such tree. An unchanged subtree shares both trees with the previous checkpoint.

use std::io;

use bstr::{BString, ByteSlice};
use gix_object::tree::EntryKind;
use rayon::prelude::*;

use super::{
    objects::{ObjectKind, ObjectProblem, ObjectReader, bytes_of, hash_object, object_id},
    packs::pack::PackWriter,
};
use crate::model::{
    ContentId, Directory, DirectoryIds, Mode, ModeDefaults, ModesId, Node, Scope, TreeId, WorkspacePath, is_safe_name,
};

/// The maximum depth of a stored tree. Scans stop at a much smaller depth, so a deeper tree was made to do harm.
pub(super) const MAX_DEPTH: u16 = 4_096;

/// A stored snapshot, or a directory in one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Snapshot {
    pub(crate) ids: DirectoryIds,
    pub(crate) defaults: ModeDefaults,
    /// The number of directories above it.
    pub(crate) depth: u16,
}

/// Equal snapshots have equal files, whatever their depth.
impl PartialEq for Snapshot {
    fn eq(&self, other: &Self) -> bool {
        (self.ids, self.defaults) == (other.ids, other.defaults)
    }
}

impl Eq for Snapshot {}

impl Snapshot {
    /// Creates the snapshot of a whole tree.
    pub(crate) fn whole(ids: DirectoryIds, defaults: ModeDefaults) -> Self {
        Self { ids, defaults, depth: 0 }
    }

    /// Returns the snapshot of a directory in this one. Fails if it is too deep.
    fn below(&self, ids: DirectoryIds) -> Result<Self, ObjectProblem> {
        if self.depth == MAX_DEPTH {
            return Err(too_deep(object_id(ids.tree.as_bytes())));
        }
        Ok(Self { ids, defaults: self.defaults, depth: self.depth + 1 })
    }
}

/// Returns the problem for a tree that is too deep.
pub(super) fn too_deep(tree: gix_hash::ObjectId) -> ObjectProblem {
    ObjectProblem::Damaged(tree, format!("it is nested deeper than {MAX_DEPTH} directories"))
}

/// One entry of a stored directory.
#[derive(Debug, Clone)]
pub(crate) struct StoredEntry {
    pub(crate) name: BString,
    pub(crate) node: StoredNode,
}

/// The file, symlink or directory that an entry names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoredNode {
    File { content: ContentId, mode: Mode },
    Symlink { target: ContentId },
    Directory { snapshot: Snapshot, mode: Mode },
}

/// A destination for tree objects.
pub(super) trait TreeSink: Sync {
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

/// The threads that write trees.
#[derive(Debug, Clone, Copy)]
pub(super) enum Hands {
    One,
    /// All workers of the thread pool that this runs in.
    Many,
}

/// Computes the ids of a directory and of everything below it, and puts the trees into the sink. Known ids are reused.
pub(super) fn write(
    directory: &mut Directory,
    defaults: &ModeDefaults,
    sink: &dyn TreeSink,
    hands: Hands,
) -> io::Result<DirectoryIds> {
    if let Some(ids) = directory.ids {
        return Ok(ids);
    }
    let mut nameless: Vec<&mut Directory> = Vec::new();
    for entry in directory.entries_mut().iter_mut().filter(|entry| entry.node.is_captured()) {
        if let Node::Directory(child) = &mut entry.node {
            nameless.push(child);
        }
    }
    let write_one = |child: &mut Directory| write(child, defaults, sink, hands).map(drop);
    match hands {
        Hands::One => nameless.into_iter().try_for_each(write_one)?,
        Hands::Many => nameless.into_par_iter().try_for_each(write_one)?,
    }
    write_named(directory, defaults, sink)
}

/// Writes one directory whose subdirectories have their ids.
fn write_named(directory: &mut Directory, defaults: &ModeDefaults, sink: &dyn TreeSink) -> io::Result<DirectoryIds> {
    let mut lines = DirectoryLines::default();
    for entry in directory.entries().iter().filter(|entry| entry.node.is_captured()) {
        match &entry.node {
            Node::File(file) => lines.file(&entry.name, &file.content, Mode::from_raw(file.stamp.mode), defaults),
            Node::Symlink(link) => lines.symlink(&entry.name, &link.content),
            Node::Directory(child) => {
                let ids = child.ids.ok_or_else(|| io::Error::other("a directory without an id"))?;
                lines.directory(&entry.name, &ids, child.mode(), defaults);
            }
            Node::Skipped(..) => {}
        }
    }
    let ids = lines.put(sink)?;
    directory.ids = Some(ids);
    Ok(ids)
}

/// Returns whether there are at least `at_least` directories without an id.
pub(super) fn lacks_ids(directory: &Directory, at_least: usize) -> bool {
    fn count(directory: &Directory, left: &mut usize) {
        if directory.ids.is_some() || *left == 0 {
            return;
        }
        *left -= 1;
        for entry in directory.entries() {
            if let Node::Directory(child) = &entry.node {
                count(child, left);
            }
        }
    }
    let mut left = at_least;
    count(directory, &mut left);
    left == 0
}

/// The entries of one directory for its tree, and its exceptional permission bits for the modes tree.
#[derive(Default)]
struct DirectoryLines<'a> {
    tree: Vec<TreeLine<'a>>,
    exceptions: Vec<u8>,
    modes_below: Vec<TreeLine<'a>>,
}

impl<'a> DirectoryLines<'a> {
    fn file(&mut self, name: &'a [u8], content: &ContentId, mode: Mode, defaults: &ModeDefaults) {
        let is_executable = mode.is_executable();
        let kind = if is_executable { EntryKind::BlobExecutable } else { EntryKind::Blob };
        self.tree.push(TreeLine::new(kind, name, object_id(content.as_bytes())));
        self.except(name, mode, defaults.of_file(is_executable));
    }

    fn symlink(&mut self, name: &'a [u8], target: &ContentId) {
        self.tree.push(TreeLine::new(EntryKind::Link, name, object_id(target.as_bytes())));
    }

    fn directory(&mut self, name: &'a [u8], ids: &DirectoryIds, mode: Mode, defaults: &ModeDefaults) {
        self.tree.push(TreeLine::new(EntryKind::Tree, name, object_id(ids.tree.as_bytes())));
        if let Some(modes) = ids.modes {
            self.modes_below.push(TreeLine::new(EntryKind::Tree, name, object_id(modes.as_bytes())));
        }
        self.except(name, mode, defaults.directory);
    }

    fn except(&mut self, name: &[u8], mode: Mode, usual: Mode) {
        if mode != usual {
            self.exceptions.extend_from_slice(format!("{:o} ", mode.0).as_bytes());
            self.exceptions.extend_from_slice(name);
            self.exceptions.push(0);
        }
    }

    fn put(self, sink: &dyn TreeSink) -> io::Result<DirectoryIds> {
        let tree = put_tree(self.tree, sink)?;
        let modes = write_modes(&self.exceptions, self.modes_below, sink)?;
        Ok(DirectoryIds { tree: TreeId(bytes_of(&tree)), modes: modes.map(|id| ModesId(bytes_of(&id))) })
    }
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

    /// Returns the key that entries are sorted by. Git sorts a directory as if its name ended in a slash.
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

/// The reason why a graft failed.
pub(super) enum GraftProblem {
    Object(ObjectProblem),
    Io(io::Error),
}

impl From<ObjectProblem> for GraftProblem {
    fn from(problem: ObjectProblem) -> Self {
        Self::Object(problem)
    }
}

impl From<io::Error> for GraftProblem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Writes a stored directory in which the paths of the scope are as `partial` has them. Returns its ids.
pub(super) fn graft(
    reader: &ObjectReader,
    base: Option<&Snapshot>,
    partial: &mut Directory,
    scope: &Scope,
    defaults: &ModeDefaults,
    sink: &dyn TreeSink,
) -> Result<DirectoryIds, GraftProblem> {
    let mut grafted = Graft { reader, scope, defaults, sink };
    grafted.directory(&WorkspacePath::root(), base, partial)
}

struct Graft<'a> {
    reader: &'a ObjectReader,
    scope: &'a Scope,
    defaults: &'a ModeDefaults,
    sink: &'a dyn TreeSink,
}

impl Graft<'_> {
    fn directory(
        &mut self,
        path: &WorkspacePath,
        base: Option<&Snapshot>,
        partial: &mut Directory,
    ) -> Result<DirectoryIds, GraftProblem> {
        let stored = match base {
            Some(base) => list(self.reader, base)?,
            None => Vec::new(),
        };
        let mut nodes: Vec<(BString, StoredNode)> = Vec::new();
        for entry in &stored {
            if !self.scope.touches(&path.join(&entry.name)) {
                nodes.push((entry.name.clone(), entry.node));
            }
        }
        let mut names: Vec<BString> = stored.iter().map(|entry| entry.name.clone()).collect();
        names.extend(partial.entries().iter().map(|entry| entry.name.clone()));
        names.sort();
        names.dedup();
        for name in names.iter().filter(|name| self.scope.touches(&path.join(name))) {
            let below = stored.iter().find(|entry| entry.name == *name).map(|entry| entry.node);
            let found = partial.entries_mut().iter_mut().find(|entry| entry.name == *name).map(|entry| &mut entry.node);
            if let Some(node) = self.name(&path.join(name), below, found)? {
                nodes.push((name.clone(), node));
            }
        }
        Ok(write_nodes(&nodes, self.defaults, self.sink)?)
    }

    fn name(
        &mut self,
        path: &WorkspacePath,
        stored: Option<StoredNode>,
        found: Option<&mut Node>,
    ) -> Result<Option<StoredNode>, GraftProblem> {
        if !self.scope.contains(path) {
            return self.above_scope(path, stored, found);
        }
        let Some(node) = found.filter(|node| node.is_captured()) else { return Ok(None) };
        Ok(match node {
            Node::File(file) => Some(StoredNode::File { content: file.content, mode: Mode::from_raw(file.stamp.mode) }),
            Node::Symlink(link) => Some(StoredNode::Symlink { target: link.content }),
            Node::Directory(directory) => {
                let mode = directory.mode();
                // Ids that the scan knows may be based on other usual permission bits.
                forget_ids(directory);
                let ids = write(directory, self.defaults, self.sink, Hands::One)?;
                Some(StoredNode::Directory { snapshot: Snapshot::whole(ids, *self.defaults), mode })
            }
            Node::Skipped(..) => None,
        })
    }

    /// Grafts a directory above the scope. Its other entries stay. Its permission bits are those that the scan found,
    /// if it found the directory.
    fn above_scope(
        &mut self,
        path: &WorkspacePath,
        stored: Option<StoredNode>,
        found: Option<&mut Node>,
    ) -> Result<Option<StoredNode>, GraftProblem> {
        let mut nothing = Directory::default();
        let base = match stored {
            Some(StoredNode::Directory { snapshot, .. }) => Some(snapshot),
            _ => None,
        };
        let (partial, mode) = match (found, stored) {
            (Some(Node::Directory(found)), _) => {
                let mode = found.mode();
                (found.as_mut(), mode)
            }
            (_, Some(StoredNode::Directory { mode, .. })) => (&mut nothing, mode),
            (_, other) => return Ok(other),
        };
        let ids = self.directory(path, base.as_ref(), partial)?;
        let snapshot = Snapshot::whole(ids, *self.defaults);
        Ok(Some(StoredNode::Directory { snapshot, mode }))
    }
}

fn forget_ids(directory: &mut Directory) {
    directory.ids = None;
    for entry in directory.entries_mut() {
        if let Node::Directory(below) = &mut entry.node {
            forget_ids(below);
        }
    }
}

/// Writes one directory whose entries are all stored.
pub(super) fn write_nodes(
    nodes: &[(BString, StoredNode)],
    defaults: &ModeDefaults,
    sink: &dyn TreeSink,
) -> io::Result<DirectoryIds> {
    let mut lines = DirectoryLines::default();
    for (name, node) in nodes {
        match *node {
            StoredNode::File { content, mode } => lines.file(name, &content, mode, defaults),
            StoredNode::Symlink { target } => lines.symlink(name, &target),
            StoredNode::Directory { snapshot, mode } => lines.directory(name, &snapshot.ids, mode, defaults),
        }
    }
    lines.put(sink)
}

/// Lists a stored directory, sorted by the bytes of the names. Fails if a name is one that no restore may write: that
/// is damage.
pub(super) fn list(reader: &ObjectReader, snapshot: &Snapshot) -> Result<Vec<StoredEntry>, ObjectProblem> {
    let bytes = reader.read(&object_id(snapshot.ids.tree.as_bytes()), ObjectKind::Tree)?;
    let modes = Modes::read(reader, snapshot.ids.modes)?;
    parse(snapshot, &bytes, &modes)
}

/// Parses the entries of a tree from its bytes.
pub(super) fn parse(snapshot: &Snapshot, bytes: &[u8], modes: &Modes) -> Result<Vec<StoredEntry>, ObjectProblem> {
    let damaged = |why: String| ObjectProblem::Damaged(object_id(snapshot.ids.tree.as_bytes()), why);
    let mut entries = Vec::new();
    for entry in gix_object::TreeRefIter::from_bytes(bytes, gix_hash::Kind::Sha1) {
        let entry = entry.map_err(|error| damaged(error.to_string()))?;
        if !is_safe_name(entry.filename) {
            return Err(damaged(format!("it has an invalid entry {:?}", entry.filename)));
        }
        let content = ContentId(bytes_of(entry.oid));
        let mode = |usual: Mode| modes.of(entry.filename).unwrap_or(usual);
        let node = match entry.mode.kind() {
            EntryKind::Blob => StoredNode::File { content, mode: mode(snapshot.defaults.file) },
            EntryKind::BlobExecutable => StoredNode::File { content, mode: mode(snapshot.defaults.executable) },
            EntryKind::Link => StoredNode::Symlink { target: content },
            EntryKind::Tree => StoredNode::Directory {
                snapshot: snapshot
                    .below(DirectoryIds { tree: TreeId(bytes_of(entry.oid)), modes: modes.below(entry.filename) })?,
                mode: mode(snapshot.defaults.directory),
            },
            EntryKind::Commit => return Err(damaged(format!("its entry {:?} is not a file", entry.filename))),
        };
        entries.push(StoredEntry { name: entry.filename.into(), node });
    }
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    if let Some(twice) = entries.windows(2).find(|pair| pair[0].name == pair[1].name) {
        return Err(damaged(format!("it has two entries named {:?}", twice[0].name)));
    }
    Ok(entries)
}

/// The exceptional permission bits of one directory.
#[derive(Default)]
pub(super) struct Modes {
    exceptions: Vec<(BString, Mode)>,
    below: Vec<(BString, ModesId)>,
}

impl Modes {
    /// Parses the list that a store keeps for a directory, which has no modes trees below it here. Returns `None` if
    /// the list is damaged.
    #[cfg(feature = "fuzzing")]
    pub(super) fn of_list(list: &[u8]) -> Option<Self> {
        let mut exceptions = parse_exceptions(list)?;
        exceptions.sort();
        Some(Self { exceptions, below: Vec::new() })
    }

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
                    modes.exceptions = parse_exceptions(&list)
                        .ok_or_else(|| damaged("its list of permissions can't be parsed".into()))?;
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
