//! Finds the staged paths: those in which the index differs from the commit that is checked out.
//!
//! The index caches the ids of directories that git wrote as trees before. If a cached id is that of the commit's own
//! tree, nothing below the directory is compared. So the cost depends on how much is staged.

use std::collections::BTreeMap;

use bstr::ByteSlice;
use gix_hash::ObjectId;
use gix_index::{
    entry::{Flags, Stage},
    extension::Tree,
};
use gix_object::tree::EntryKind;

use super::{UserRepository, objects::UserObjects};
use crate::{model::WorkspacePath, scan::MAX_DEPTH};

/// The kind and the id of an entry in a tree of the commit.
type CommittedEntry = (EntryKind, ObjectId);

impl UserRepository {
    /// Returns the first `limit` paths of the workspace that differ between the index and the commit.
    pub(super) fn staged_files(&self, commit: Option<&str>, limit: usize) -> Vec<WorkspacePath> {
        let Some(index) = self.parsed_index().filter(|index| !index.is_sparse()) else { return Vec::new() };
        let (Ok(objects), true) = (self.objects(), self.object_hash() == gix_hash::Kind::Sha1) else {
            return Vec::new();
        };
        let tree = commit.map(|commit| self.tree_of(&objects, commit)).transpose();
        // If the commit can't be read, nothing is known to be staged.
        let Ok(tree) = tree else { return Vec::new() };
        let mut search = StagedSearch { index: &index, objects, prefix: &self.prefix, limit, found: Vec::new() };
        search.directory(Vec::new(), tree, index.tree());
        search.found
    }
}

struct StagedSearch<'a> {
    index: &'a gix_index::State,
    objects: UserObjects,
    prefix: &'a [u8],
    limit: usize,
    found: Vec<WorkspacePath>,
}

impl StagedSearch<'_> {
    /// Compares one directory. `at` is its path with a trailing slash.
    fn directory(&mut self, at: Vec<u8>, tree: Option<ObjectId>, noted: Option<&Tree>) {
        let is_as_noted = noted.is_some_and(|noted| noted.num_entries.is_some() && Some(noted.id) == tree);
        // Only directories in the workspace, or above it, are relevant.
        let concerns = at.starts_with(self.prefix) || self.prefix.starts_with(&at);
        // A scan captures nothing this deep either. The index is not written by this program and may contain any path.
        let is_deep = at.find_iter("/").count() > MAX_DEPTH;
        if is_as_noted || !concerns || is_deep || self.found.len() >= self.limit {
            return;
        }
        let mut held = self.names_in(tree);
        let range = self.index.prefixed_entries_range(at.as_bstr()).unwrap_or(0..0);
        let mut position = range.start;
        while position < range.end && self.found.len() < self.limit {
            let entry = &self.index.entries()[position];
            let path = entry.path(self.index);
            let below = &path[at.len()..];
            match below.find_byte(b'/') {
                Some(end) => {
                    let name = below[..end].to_vec();
                    let inside = [at.as_slice(), &name, b"/"].concat();
                    let after = self.index.prefixed_entries_range(inside.as_bstr()).map(|range| range.end);
                    position = after.unwrap_or(position + 1).max(position + 1);
                    let tree = match held.get(&name) {
                        Some((EntryKind::Tree, id)) => Some(*id),
                        _ => None,
                    };
                    if tree.is_some() {
                        held.remove(&name);
                    }
                    let children = noted.map(|noted| noted.children.as_slice()).unwrap_or_default();
                    self.directory(inside, tree, children.iter().find(|child| child.name.as_slice() == name));
                }
                None => {
                    position += 1;
                    let is_same = match held.remove(below.as_bytes()) {
                        Some((kind, id)) => {
                            id == entry.id && entry.mode.to_tree_entry_mode().map(|m| m.kind()) == Some(kind)
                        }
                        None => false,
                    };
                    let is_intended = entry.flags.contains(Flags::INTENT_TO_ADD);
                    if !is_same && !is_intended && entry.stage() == Stage::Unconflicted {
                        self.add(path.to_vec());
                    }
                }
            }
        }
        for (name, (kind, id)) in held {
            let path = [at.as_slice(), &name].concat();
            match kind {
                EntryKind::Tree => self.directory([path.as_slice(), b"/"].concat(), Some(id), None),
                _ => self.add(path),
            }
        }
    }

    fn add(&mut self, path: Vec<u8>) {
        let below = path.strip_prefix(self.prefix).and_then(|below| WorkspacePath::new(below).ok());
        if let Some(path) = below.filter(|path| !path.is_root() && self.found.len() < self.limit) {
            self.found.push(path);
        }
    }

    fn names_in(&self, tree: Option<ObjectId>) -> BTreeMap<Vec<u8>, CommittedEntry> {
        let mut bytes = Vec::new();
        let read = |id: ObjectId| -> Option<BTreeMap<Vec<u8>, CommittedEntry>> {
            let found = gix_object::Find::try_find(&self.objects, &id, &mut bytes).ok()??;
            let entries = gix_object::TreeRefIter::from_bytes(found.data, gix_hash::Kind::Sha1);
            entries
                .map(|entry| {
                    entry.ok().map(|entry| (entry.filename.to_vec(), (entry.mode.kind(), entry.oid.to_owned())))
                })
                .collect()
        };
        tree.and_then(read).unwrap_or_default()
    }
}
