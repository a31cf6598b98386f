//! Compares two trees, stored or scanned. Descends only where they differ.

use bstr::{BStr, ByteSlice};
use itertools::Itertools;

use crate::{
    error::Result,
    model::{Change, Directory, Mode, ModeDefaults, Node, Scope, Side, WorkspacePath},
    store::{ObjectReader, Snapshot, Store, StoredEntry, StoredNode},
    threads,
};

/// One side of a comparison.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Tree<'a> {
    /// Nothing at all.
    Empty,
    /// A snapshot in the store.
    Stored(Snapshot),
    /// The tree that a scan read. The defaults are the permission bits that its ids do not state.
    Scanned(&'a Directory, ModeDefaults),
}

/// The result of a comparison.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    /// The changes, sorted by path. Lines are not counted yet.
    pub(crate) changes: Vec<Change>,
    /// Paths that the older side holds, and that the newer side has but skipped.
    pub(crate) left_out: Vec<WorkspacePath>,
}

/// Compares two trees.
pub(crate) fn compare(store: Option<&Store>, old: Tree<'_>, new: Tree<'_>) -> Result<Comparison> {
    compare_within(&Scope::Whole, store, old, new)
}

/// Compares two trees within a scope. The rest is not even read.
pub(crate) fn compare_within(scope: &Scope, store: Option<&Store>, old: Tree<'_>, new: Tree<'_>) -> Result<Comparison> {
    let mut walk = TreeWalk { scope, store, reader: store.map(Store::reader), found: Comparison::default() };
    walk.directories(&WorkspacePath::root(), old, new)?;
    walk.found.changes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(walk.found)
}

/// A name on one side.
#[derive(Clone, Copy)]
enum Item<'a> {
    Leaf(Side),
    Directory(Tree<'a>, Mode),
    LeftOut,
}

struct TreeWalk<'s> {
    scope: &'s Scope,
    store: Option<&'s Store>,
    reader: Option<ObjectReader>,
    found: Comparison,
}

impl TreeWalk<'_> {
    fn directories(&mut self, path: &WorkspacePath, old: Tree<'_>, new: Tree<'_>) -> Result<()> {
        if is_same(&old, &new) {
            return Ok(());
        }
        threads::with_room(depth(&old).max(depth(&new)), || self.differing_directories(path, old, new))
    }

    fn differing_directories(&mut self, path: &WorkspacePath, old: Tree<'_>, new: Tree<'_>) -> Result<()> {
        let old_entries = self.stored_entries(&old)?;
        let new_entries = self.stored_entries(&new)?;
        let (old, new) = (items(&old, &old_entries), items(&new, &new_entries));
        for pair in old.into_iter().merge_join_by(new, |(old, _), (new, _)| old.cmp(new)) {
            let name = pair.as_ref().map_any(|(old, _)| *old, |(new, _)| *new).reduce(|name, _| name);
            let (from, to) = pair.left_and_right();
            let (from, to) = (from.map(|(_, item)| item), to.map(|(_, item)| item));
            if !is_same_item(from.as_ref(), to.as_ref()) {
                self.names(&path.join(name), from, to)?;
            }
        }
        Ok(())
    }

    fn stored_entries(&self, tree: &Tree<'_>) -> Result<Vec<StoredEntry>> {
        match (tree, self.store, &self.reader) {
            (Tree::Stored(snapshot), Some(store), Some(reader)) => store.list(reader, snapshot),
            _ => Ok(Vec::new()),
        }
    }

    fn names(&mut self, path: &WorkspacePath, old: Option<Item<'_>>, new: Option<Item<'_>>) -> Result<()> {
        if !self.scope.touches(path) {
            return Ok(());
        }
        match (old, new) {
            (Some(Item::LeftOut), Some(Item::LeftOut) | None) | (None, Some(Item::LeftOut)) | (None, None) => Ok(()),
            (Some(_), Some(Item::LeftOut)) => {
                self.found.left_out.push(path.clone());
                Ok(())
            }
            (Some(Item::LeftOut) | None, Some(new)) => self.appears(path, new),
            (Some(old), None) => self.vanishes(path, old),
            (Some(Item::Leaf(old)), Some(Item::Leaf(new))) => {
                if old != new {
                    self.push(path, Some(old), Some(new));
                }
                Ok(())
            }
            (Some(Item::Directory(old, old_mode)), Some(Item::Directory(new, new_mode))) => {
                // A directory in which every name is skipped is not part of the newer snapshot.
                if old_mode != new_mode && !is_hollow(&new) && !is_hollow(&old) {
                    let side = |mode| Some(Side::Directory { mode });
                    self.push(path, side(old_mode), side(new_mode));
                }
                self.directories(path, old, new)
            }
            (Some(old), Some(new)) => {
                self.vanishes(path, old)?;
                self.appears(path, new)
            }
        }
    }

    fn appears(&mut self, path: &WorkspacePath, item: Item<'_>) -> Result<()> {
        match item {
            Item::Leaf(side) => self.push(path, None, Some(side)),
            Item::Directory(tree, _) if is_hollow(&tree) => {}
            Item::Directory(tree, mode) => {
                if self.is_empty(&tree)? {
                    self.push(path, None, Some(Side::Directory { mode }));
                } else {
                    self.directories(path, Tree::Empty, tree)?;
                }
            }
            Item::LeftOut => {}
        }
        Ok(())
    }

    fn vanishes(&mut self, path: &WorkspacePath, item: Item<'_>) -> Result<()> {
        match item {
            Item::Leaf(side) => self.push(path, Some(side), None),
            Item::Directory(tree, _) if is_hollow(&tree) => {}
            Item::Directory(tree, mode) => {
                if self.is_empty(&tree)? {
                    self.push(path, Some(Side::Directory { mode }), None);
                } else {
                    self.directories(path, tree, Tree::Empty)?;
                }
            }
            Item::LeftOut => {}
        }
        Ok(())
    }

    fn is_empty(&self, tree: &Tree<'_>) -> Result<bool> {
        Ok(match tree {
            Tree::Empty => true,
            Tree::Stored(_) => self.stored_entries(tree)?.is_empty(),
            Tree::Scanned(directory, _) => directory.entries().is_empty(),
        })
    }

    fn push(&mut self, path: &WorkspacePath, old: Option<Side>, new: Option<Side>) {
        // A file that became a symlink is one change. A file that became a directory is two.
        self.found.changes.push(Change::between(path.clone(), old, new));
    }
}

/// Returns the number of directories above a stored tree. A scanned tree is never deeper than any stack has room for.
fn depth(tree: &Tree<'_>) -> usize {
    match tree {
        Tree::Stored(snapshot) => usize::from(snapshot.depth),
        Tree::Empty | Tree::Scanned(..) => 0,
    }
}

fn is_hollow(tree: &Tree<'_>) -> bool {
    matches!(tree, Tree::Scanned(directory, _) if !directory.is_captured())
}

/// Returns whether both are certainly the same, with everything below.
fn is_same(old: &Tree<'_>, new: &Tree<'_>) -> bool {
    let ids = |tree: &Tree<'_>| match tree {
        Tree::Empty => None,
        Tree::Stored(snapshot) => Some((snapshot.ids, snapshot.defaults)),
        Tree::Scanned(directory, defaults) => directory.ids.map(|ids| (ids, *defaults)),
    };
    matches!((ids(old), ids(new)), (Some(old), Some(new)) if old == new)
}

/// Like [`is_same`], for a name. Most names are the same, and then not even the path is built.
fn is_same_item(old: Option<&Item<'_>>, new: Option<&Item<'_>>) -> bool {
    match (old, new) {
        (Some(Item::Leaf(old)), Some(Item::Leaf(new))) => old == new,
        (Some(Item::Directory(old, old_mode)), Some(Item::Directory(new, new_mode))) => {
            old_mode == new_mode && is_same(old, new)
        }
        _ => false,
    }
}

fn items<'a>(tree: &Tree<'a>, stored: &'a [StoredEntry]) -> Vec<(&'a BStr, Item<'a>)> {
    match tree {
        Tree::Empty => Vec::new(),
        Tree::Stored(_) => stored.iter().map(|entry| (entry.name.as_bstr(), stored_item(&entry.node))).collect(),
        Tree::Scanned(directory, defaults) => {
            let entries = directory.entries().iter();
            entries.map(|entry| (entry.name.as_bstr(), scanned_item(&entry.node, defaults))).collect()
        }
    }
}

fn stored_item<'a>(node: &StoredNode) -> Item<'a> {
    match *node {
        StoredNode::File { content, mode } => Item::Leaf(Side::File { content, mode }),
        StoredNode::Symlink { target } => Item::Leaf(Side::Symlink { target }),
        StoredNode::Directory { snapshot, mode } => Item::Directory(Tree::Stored(snapshot), mode),
    }
}

fn scanned_item<'a>(node: &'a Node, defaults: &ModeDefaults) -> Item<'a> {
    match node {
        Node::Directory(directory) => Item::Directory(Tree::Scanned(directory, *defaults), directory.mode()),
        Node::Skipped(..) => Item::LeftOut,
        leaf => leaf.side().map_or(Item::LeftOut, Item::Leaf),
    }
}
