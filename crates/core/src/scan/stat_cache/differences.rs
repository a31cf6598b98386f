//! Lists the paths that differ between a scan and the stat cache.

use std::cmp::Ordering;

use super::{CachedDirectory, CachedEntry, CachedNode, StatCache};
use crate::model::{Directory, Entry, Node, WorkspacePath};

impl StatCache {
    /// Returns the files and symlinks that were changed, added or removed since the cache was written, in order.
    /// Returns `None` if there are more than `most`.
    pub(crate) fn differences(&self, scanned: &Directory, most: usize) -> Option<Vec<WorkspacePath>> {
        let mut search = DifferenceSearch { cache: self, most, found: Vec::new() };
        search.directories(&WorkspacePath::root(), self.root(), Some(scanned))?;
        search.found.sort();
        search.found.dedup();
        Some(search.found)
    }
}

struct DifferenceSearch<'c> {
    cache: &'c StatCache,
    most: usize,
    found: Vec<WorkspacePath>,
}

impl<'c> DifferenceSearch<'c> {
    fn directories(
        &mut self,
        path: &WorkspacePath,
        old: Option<CachedDirectory<'c>>,
        new: Option<&Directory>,
    ) -> Option<()> {
        if let (Some(old), Some(new)) = (&old, new)
            && new.cache_offset() == Some(old.place)
        {
            return Some(());
        }
        let mut old = old.into_iter().flat_map(|old| old.entries()).peekable();
        let mut new = new.map(Directory::entries).unwrap_or_default().iter().peekable();
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return Some(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => old.name.to_bytes().cmp(new.name.as_slice()),
            };
            let old = if order.is_le() { old.next() } else { None };
            let new = if order.is_ge() { new.next() } else { None };
            self.names(path, old, new)?;
        }
    }

    fn names(&mut self, above: &WorkspacePath, old: Option<CachedEntry<'c>>, new: Option<&Entry>) -> Option<()> {
        let name = old.map(|old| old.name.to_bytes()).or(new.map(|new| new.name.as_slice())).unwrap_or_default();
        let is_same = match (old.map(|old| old.node), new.map(|new| &new.node)) {
            (Some(CachedNode::File(old, _)), Some(Node::File(new)))
            | (Some(CachedNode::Symlink(old, _)), Some(Node::Symlink(new))) => old == *new,
            (Some(CachedNode::Skipped(..)), Some(Node::Skipped(..))) => true,
            _ => false,
        };
        if is_same {
            return Some(());
        }
        let path = above.join(name);
        let record = old.and_then(|old| match old.node {
            CachedNode::Directory(place) => self.cache.record(place),
            _ => None,
        });
        let directory = new.and_then(|new| match &new.node {
            Node::Directory(directory) => Some(&**directory),
            _ => None,
        });
        if record.is_some() || directory.is_some() {
            self.directories(&path, record, directory)?;
        }
        // If the name was or is something other than a directory, its own path differs, too.
        if record.is_none() || directory.is_none() {
            self.found.push(path);
        }
        (self.found.len() <= self.most).then_some(())
    }
}
