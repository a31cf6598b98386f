//! Contents: the bytes of files and the targets of symlinks that checkpoints hold, whatever their path.
//!
//! There are two ways to find out whether a checkpoint has contents of its own. [`HeldContents`] walks everything and
//! is exact. [`is_held_nearby`] compares paths with a few other checkpoints and takes the same time however many there
//! are.

use std::{
    collections::{HashMap, HashSet},
    rc::Rc,
};

use bstr::BString;
use gix_hash::ObjectId;
use gix_object::tree::EntryKind;

use super::{
    Store,
    objects::{ObjectKind, ObjectProblem, ObjectReader, object_id},
};
use crate::model::{CheckpointId, WorkspacePath};

/// The name under which files of the user's repository that a `restore --git` kept are compared.
const GIT: &[u8] = b".git";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HeldNode {
    Tree(ObjectId),
    Blob(ObjectId),
}

type Names = HashMap<BString, HeldNode>;

/// Reads directories, each only once.
struct Trees {
    reader: ObjectReader,
    read: HashMap<ObjectId, Rc<Names>>,
}

impl Trees {
    fn of(store: &Store) -> Self {
        Self { reader: store.reader(), read: HashMap::new() }
    }

    fn names(&mut self, tree: ObjectId) -> Result<Rc<Names>, ObjectProblem> {
        if let Some(names) = self.read.get(&tree) {
            return Ok(Rc::clone(names));
        }
        let names = Rc::new(read_names(&self.reader, tree)?);
        self.read.insert(tree, Rc::clone(&names));
        Ok(names)
    }

    /// Returns the node at a path below `top`, or `None` if there is none.
    fn find(&mut self, top: &Rc<Names>, path: &WorkspacePath) -> Result<Option<HeldNode>, ObjectProblem> {
        let mut names = Rc::clone(top);
        let mut parts = path.parts().peekable();
        while let Some(part) = parts.next() {
            match names.get(part).copied() {
                found if parts.peek().is_none() => return Ok(found),
                Some(HeldNode::Tree(tree)) => names = self.names(tree)?,
                _ => break,
            }
        }
        Ok(None)
    }
}

fn read_names(reader: &ObjectReader, tree: ObjectId) -> Result<Names, ObjectProblem> {
    let bytes = reader.read(&tree, ObjectKind::Tree)?;
    let mut names = Names::new();
    for entry in gix_object::TreeRefIter::from_bytes(&bytes, gix_hash::Kind::Sha1) {
        let entry = entry.map_err(|error| ObjectProblem::Damaged(tree, error.to_string()))?;
        let id = entry.oid.to_owned();
        let node = if entry.mode.kind() == EntryKind::Tree { HeldNode::Tree(id) } else { HeldNode::Blob(id) };
        names.insert(entry.filename.into(), node);
    }
    Ok(names)
}

/// Returns the entries of a directory with their paths.
fn below(directory: &WorkspacePath, names: &Names) -> Vec<(WorkspacePath, HeldNode)> {
    names.iter().map(|(name, node)| (directory.join(name), *node)).collect()
}

/// Returns the root entries of a checkpoint: its files, and the files of the user's repository that it keeps.
fn top(store: &Store, id: &CheckpointId) -> Result<Names, ObjectProblem> {
    let reader = store.reader();
    let (tree, state) = super::store::read_commit(&reader, &object_id(id.as_bytes()))?;
    let mut names = read_names(&reader, tree)?;
    if let Some(state) = state {
        let (state, _) = super::store::read_commit(&reader, &state)?;
        let git = reader.entry(&state, "git")?;
        names.extend(git.map(|(_, git)| (BString::from(GIT), HeldNode::Tree(git))));
    }
    Ok(names)
}

/// The contents that some checkpoints hold.
pub(crate) struct HeldContents<'s> {
    store: &'s Store,
    reader: ObjectReader,
    /// Blobs, and trees in which everything is held.
    held: HashSet<ObjectId>,
}

impl<'s> HeldContents<'s> {
    /// Returns an empty set.
    pub(crate) fn none(store: &'s Store) -> Self {
        Self { store, reader: store.reader(), held: HashSet::new() }
    }

    /// Adds the contents of a checkpoint. Contents that can't be reached because of damage are not added.
    pub(crate) fn add(&mut self, id: &CheckpointId) {
        let Ok(top) = top(self.store, id) else { return };
        let mut left: Vec<HeldNode> = top.into_values().collect();
        let mut met = HashSet::new();
        let mut is_whole = true;
        while let Some(node) = left.pop() {
            match node {
                HeldNode::Blob(blob) => drop(self.held.insert(blob)),
                HeldNode::Tree(tree) if self.held.contains(&tree) || !met.insert(tree) => {}
                HeldNode::Tree(tree) => match read_names(&self.reader, tree) {
                    Ok(names) => left.extend(names.into_values()),
                    Err(_) => is_whole = false,
                },
            }
        }
        // Not everything in a tree above a damaged one is held.
        if is_whole {
            self.held.extend(met);
        }
    }

    /// Returns the paths of a checkpoint whose contents are not in this set, each content once. The result is
    /// incomplete if the checkpoint is damaged.
    pub(crate) fn lacking(&self, id: &CheckpointId) -> Vec<WorkspacePath> {
        let mut found = Vec::new();
        drop(self.visit_lacking(id, |path| {
            found.push(path);
            true
        }));
        found.sort();
        found
    }

    /// Returns whether all contents of a checkpoint are in this set. Returns `false` if the checkpoint can't be read,
    /// because it may have others.
    pub(crate) fn hold_all_of(&self, id: &CheckpointId) -> bool {
        let mut is_lacking = false;
        let visited = self.visit_lacking(id, |_| {
            is_lacking = true;
            false
        });
        visited.is_ok() && !is_lacking
    }

    /// Calls `visit` with the path of each content that is not held, until `visit` returns `false`.
    fn visit_lacking(
        &self,
        id: &CheckpointId,
        mut visit: impl FnMut(WorkspacePath) -> bool,
    ) -> Result<(), ObjectProblem> {
        let mut left = below(&WorkspacePath::default(), &top(self.store, id)?);
        let mut met = HashSet::new();
        while let Some((path, node)) = left.pop() {
            let (HeldNode::Tree(object) | HeldNode::Blob(object)) = node;
            if self.held.contains(&object) || !met.insert(object) {
                continue;
            }
            match node {
                HeldNode::Tree(tree) => left.extend(below(&path, &read_names(&self.reader, tree)?)),
                HeldNode::Blob(_) if !visit(path) => return Ok(()),
                HeldNode::Blob(_) => {}
            }
        }
        Ok(())
    }
}

/// Returns whether each of a checkpoint's contents is at the same path in one of `others`. `false` is inconclusive: the
/// contents may be at other paths, or in further checkpoints.
pub(crate) fn is_held_nearby(store: &Store, id: &CheckpointId, others: &[CheckpointId]) -> bool {
    let held = || -> Result<bool, ObjectProblem> {
        let mut trees = Trees::of(store);
        let mut left = below(&WorkspacePath::default(), &top(store, id)?);
        for other in others {
            if left.is_empty() {
                break;
            }
            // Nothing in a damaged checkpoint can be relied on.
            if let Ok(names) = top(store, other) {
                left = lacking_in(&mut trees, left, &Rc::new(names))?;
            }
        }
        Ok(!has_contents(&mut trees, left)?)
    };
    held().unwrap_or(false)
}

/// Returns the entries that another checkpoint does not have at the same path. Directories that differ are compared
/// entry by entry.
fn lacking_in(
    trees: &mut Trees,
    mut left: Vec<(WorkspacePath, HeldNode)>,
    other: &Rc<Names>,
) -> Result<Vec<(WorkspacePath, HeldNode)>, ObjectProblem> {
    let mut lacking = Vec::new();
    while let Some((path, node)) = left.pop() {
        match (node, trees.find(other, &path).unwrap_or_default()) {
            (node, Some(found)) if node == found => {}
            (HeldNode::Tree(tree), Some(HeldNode::Tree(_))) => {
                left.extend(below(&path, &*trees.names(tree)?));
            }
            _ => lacking.push((path, node)),
        }
    }
    Ok(lacking)
}

/// Returns whether there is a file or a symlink at these paths or below. Empty directories are not contents.
fn has_contents(trees: &mut Trees, left: Vec<(WorkspacePath, HeldNode)>) -> Result<bool, ObjectProblem> {
    let mut left: Vec<HeldNode> = left.into_iter().map(|(_, node)| node).collect();
    while let Some(node) = left.pop() {
        match node {
            HeldNode::Blob(_) => return Ok(true),
            HeldNode::Tree(tree) => left.extend(trees.names(tree)?.values()),
        }
    }
    Ok(false)
}
