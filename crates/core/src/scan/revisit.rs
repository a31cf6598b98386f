//! The directories that a scan looks at although no event names them: what a watcher sees does not decide about them
//! alone.

use std::sync::Arc;

use super::{
    Scan, StatCache,
    stat_cache::{CachedDirectory, CachedEntry, CachedNode},
};
use crate::model::{Directory, Entry, Exception, Node, Reason, WorkspacePath};

/// More directories than this are not worth remembering: a full scan costs as much.
const MANY: usize = 4_000;

/// Directories that are looked at in every scan, or in some.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Revisits {
    /// Directories with names that something outside of them can change: a hard link, a skipped path that may become
    /// readable, a repository with an index of its own.
    pub(crate) always: Vec<WorkspacePath>,
    /// Directories with names that something other than the rules decided about. They are looked at if the index of the
    /// user repository changed, or the workspace stands on another checkpoint.
    pub(crate) for_verdicts: Vec<WorkspacePath>,
}

/// The facts about one name that matter here.
struct Fact<'a> {
    name: &'a [u8],
    links: u32,
    is_directory: bool,
    skipped: Option<Reason>,
    exception: Option<Exception>,
}

impl Revisits {
    /// Finds them in the result of a scan. `known` are those of the cache that the scan used. `is_partial` says that
    /// the scan looked only at what changed. Returns `None` if there are too many.
    pub(crate) fn of(scan: &Scan, known: Option<&Self>, is_partial: bool) -> Option<Self> {
        let mut search = Search { cache: scan.cache.as_ref(), known, found: Self::default() };
        search.directory(&WorkspacePath::root(), &scan.root, false)?;
        if let (true, Some(known)) = (is_partial, known) {
            // A program may still have a file open by a name that is gone, and write to it in another directory.
            search.found.always.extend(known.always.iter().cloned());
            search.limit()?;
        }
        search.found.always.sort();
        search.found.always.dedup();
        search.found.for_verdicts.sort();
        search.found.for_verdicts.dedup();
        Some(search.found)
    }
}

struct Search<'s> {
    cache: Option<&'s Arc<StatCache>>,
    known: Option<&'s Revisits>,
    found: Revisits,
}

impl Search<'_> {
    fn directory(&mut self, path: &WorkspacePath, directory: &Directory, is_nested: bool) -> Option<()> {
        if let (Some(place), Some(cache)) = (directory.cache_offset(), self.cache) {
            return match self.known {
                Some(known) => {
                    let within = |paths: &[WorkspacePath]| -> Vec<WorkspacePath> {
                        paths.iter().filter(|found| found.is_within(path)).cloned().collect()
                    };
                    self.found.always.extend(within(&known.always));
                    self.found.for_verdicts.extend(within(&known.for_verdicts));
                    self.limit()
                }
                None => self.record(path, cache.record(place)?, is_nested),
            };
        }
        let entries = directory.entries();
        let is_nested = self.names(path, is_nested, entries.iter().map(Fact::of_entry))?;
        for entry in entries {
            if let Node::Directory(below) = &entry.node {
                self.directory(&path.join(&entry.name), below, is_nested)?;
            }
        }
        Some(())
    }

    fn record(&mut self, path: &WorkspacePath, record: CachedDirectory<'_>, is_nested: bool) -> Option<()> {
        let is_nested = self.names(path, is_nested, record.entries().map(Fact::of_cached))?;
        for entry in record.entries() {
            if let CachedNode::Directory(place) = entry.node {
                let below = self.cache?.record(place)?;
                self.record(&path.join(entry.name.to_bytes()), below, is_nested)?;
            }
        }
        Some(())
    }

    /// Decides about one directory. Returns whether it is in a repository inside the workspace.
    fn names<'a>(
        &mut self,
        path: &WorkspacePath,
        is_nested: bool,
        facts: impl Iterator<Item = Fact<'a>>,
    ) -> Option<bool> {
        let (mut has_verdicts, mut is_open, mut has_git) = (false, false, false);
        for fact in facts {
            has_git |= fact.name == b".git";
            has_verdicts |=
                fact.exception.is_some() || matches!(fact.skipped, Some(Reason::Ignored | Reason::Rebuildable));
            is_open |= fact.is_open();
        }
        let is_nested = is_nested || has_git && !path.is_root();
        // The index of a repository inside the workspace decides, and the cache does not know it.
        if is_open || has_git && !path.is_root() || is_nested && has_verdicts {
            self.found.always.push(path.clone());
        } else if has_verdicts {
            self.found.for_verdicts.push(path.clone());
        }
        self.limit().map(|()| is_nested)
    }

    fn limit(&self) -> Option<()> {
        (self.found.always.len() + self.found.for_verdicts.len() <= MANY).then_some(())
    }
}

impl<'a> Fact<'a> {
    fn of_entry(entry: &'a Entry) -> Self {
        let (links, is_directory, skipped) = match &entry.node {
            Node::File(file) | Node::Symlink(file) => (file.stamp.links, false, None),
            Node::Directory(_) => (1, true, None),
            Node::Skipped(reason, _) => (1, false, Some(*reason)),
        };
        Self { name: &entry.name, links, is_directory, skipped, exception: entry.exception }
    }

    fn of_cached(entry: CachedEntry<'a>) -> Self {
        let (links, is_directory, skipped) = match entry.node {
            CachedNode::File(file, _) | CachedNode::Symlink(file, _) => (file.stamp.links, false, None),
            CachedNode::Directory(_) => (1, true, None),
            CachedNode::Skipped(reason, _) => (1, false, Some(reason)),
        };
        Self { name: entry.name.to_bytes(), links, is_directory, skipped, exception: entry.exception }
    }

    /// Returns whether the name may change without an event in its directory.
    fn is_open(&self) -> bool {
        match self.skipped {
            // These follow from the name alone.
            Some(Reason::Ignored | Reason::Name) => false,
            Some(Reason::Git) => self.name != b".git",
            Some(_) => true,
            // A repository may begin to borrow from a directory of this name.
            None if self.is_directory => self.exception.is_some() || self.name == b"objects",
            None => self.links > 1,
        }
    }
}

/// Returns whether a scan found a hard link that the stat cache does not have: the other name of the file may be in a
/// directory that was not looked at.
pub(crate) fn has_new_link(scan: &Scan) -> bool {
    let Some(cache) = &scan.cache else { return false };
    has_new_link_in(cache, cache.root(), &scan.root)
}

fn has_new_link_in(cache: &StatCache, old: Option<CachedDirectory<'_>>, new: &Directory) -> bool {
    if new.cache_offset().is_some() {
        return false;
    }
    let known: Vec<CachedEntry<'_>> = old.map(|old| old.entries().collect()).unwrap_or_default();
    new.entries().iter().any(|entry| {
        let position = known.binary_search_by(|known| known.name.to_bytes().cmp(entry.name.as_slice()));
        let known = position.ok().map(|position| known[position].node);
        match (&entry.node, known) {
            // A link that was made while the last scan ran may have been seen at one of its names alone. The stamp of
            // such a file is not settled.
            (Node::File(file), Some(CachedNode::File(old, true)))
            | (Node::Symlink(file), Some(CachedNode::Symlink(old, true))) => {
                file.stamp.links > 1
                    && (old.stamp.links, old.stamp.inode, old.stamp.device)
                        != (file.stamp.links, file.stamp.inode, file.stamp.device)
            }
            (Node::File(file) | Node::Symlink(file), _) => file.stamp.links > 1,
            (Node::Directory(below), Some(CachedNode::Directory(place))) => {
                has_new_link_in(cache, cache.record(place), below)
            }
            (Node::Directory(below), _) => has_new_link_in(cache, None, below),
            (Node::Skipped(..), _) => false,
        }
    })
}
