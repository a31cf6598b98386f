//! Changes in the user repository: between tracked files and the index, and between the index and the commit.

use std::ops::Range;

use bstr::ByteSlice;

use super::{
    UserRepository,
    index::{EXECUTABLE, FILE, Index, IndexEntry, SUBMODULE, SYMLINK},
};
use crate::model::{Directory, GitChanges, Mode, Node, Scope, WorkspacePath};

/// The maximum number of dirty files that a checkpoint lists.
pub(super) const MAX_DIRTY_FILES: usize = 1_000;

impl UserRepository {
    /// Returns the changes in the repository. `scanned` has the current files. For a scope of paths, only their
    /// differences from the index are found, so that the cost depends on the number of paths.
    pub(crate) fn changes(&self, scanned: &Directory, scope: &Scope) -> GitChanges {
        let commit = self.commit();
        let (staged, unstaged) = match scope {
            Scope::Whole => (self.staged_files(commit.as_deref(), MAX_DIRTY_FILES), self.unstaged_files(scanned)),
            Scope::Paths(paths) => (Vec::new(), self.unstaged_among(paths, scanned)),
        };
        GitChanges { commit, staged, unstaged }
    }

    /// Updates the changes of the whole workspace. `known` was found with the same index, and `since` lists every path
    /// that changed after that.
    pub(crate) fn changes_since(&self, known: &GitChanges, since: &[WorkspacePath], scanned: &Directory) -> GitChanges {
        let commit = self.commit();
        let staged = if known.commit == commit {
            known.staged.clone()
        } else {
            self.staged_files(commit.as_deref(), MAX_DIRTY_FILES)
        };
        GitChanges { commit, staged, unstaged: self.unstaged_since(&known.unstaged, since, scanned) }
    }

    fn commit(&self) -> Option<String> {
        self.head().and_then(|(_, commit)| commit)
    }

    /// Returns the tracked files that differ from the index.
    fn unstaged_files(&self, scanned: &Directory) -> Vec<WorkspacePath> {
        let Some(index) = self.index() else { return Vec::new() };
        let mut search = DirtySearch { index, skip: self.prefix.len(), dirty: Vec::new() };
        search.directory(scanned, index.with_prefix(0..index.len(), &self.prefix), self.prefix.len());
        search.dirty
    }

    /// Returns the tracked files at or below these paths that differ from the index.
    fn unstaged_among(&self, paths: &[WorkspacePath], scanned: &Directory) -> Vec<WorkspacePath> {
        let Some(index) = self.index() else { return Vec::new() };
        let mut search = DirtySearch { index, skip: self.prefix.len(), dirty: Vec::new() };
        for path in paths {
            let whole = [self.prefix.as_slice(), path.as_bytes()].concat();
            let below = index.with_prefix(0..index.len(), &[whole.as_slice(), b"/"].concat());
            for position in index.of_path(&whole).chain(below) {
                let entry = index.entry(position);
                let Ok(path) = WorkspacePath::new(entry.path[self.prefix.len()..].as_bytes()) else { continue };
                search.file(&entry, scanned.find(&path));
            }
        }
        search.dirty.sort();
        search.dirty
    }

    /// Updates the known tracked files that differ from the index. The index is read only if something changed.
    fn unstaged_since(
        &self,
        known: &[WorkspacePath],
        since: &[WorkspacePath],
        scanned: &Directory,
    ) -> Vec<WorkspacePath> {
        // A list that reached the limit may lack further files.
        if known.len() >= MAX_DIRTY_FILES {
            return self.unstaged_files(scanned);
        }
        let is_as_it_was = |path: &&WorkspacePath| since.binary_search(path).is_err();
        let mut dirty: Vec<WorkspacePath> = known.iter().filter(is_as_it_was).cloned().collect();
        if !since.is_empty()
            && let Some(index) = self.index()
        {
            dirty.extend(since.iter().filter(|path| self.is_changed_dirty(index, path, scanned)).cloned());
            dirty.sort();
        }
        dirty.truncate(MAX_DIRTY_FILES);
        dirty
    }

    fn is_changed_dirty(&self, index: &Index, path: &WorkspacePath, scanned: &Directory) -> bool {
        let mut entries = index.of_path(&[self.prefix.as_slice(), path.as_bytes()].concat());
        entries.any(|position| is_dirty(&index.entry(position), scanned.find(path)))
    }
}

/// Compares the index with a scan, walking both in the same order.
struct DirtySearch<'a> {
    index: &'a Index,
    /// The length of the part of an index path that is above the workspace.
    skip: usize,
    dirty: Vec<WorkspacePath>,
}

impl DirtySearch<'_> {
    /// Compares one directory. `range` has its entries in the index, and `above` is the length of its path.
    fn directory(&mut self, scanned: &Directory, range: Range<usize>, above: usize) {
        let mut position = range.start;
        while position < range.end && self.dirty.len() < MAX_DIRTY_FILES {
            let entry = self.index.entry(position);
            let below = &entry.path[above.min(entry.path.len())..];
            let Some(slash) = below.find_byte(b'/') else {
                self.file(&entry, scanned.get(below));
                position += 1;
                continue;
            };
            let inside = self.index.with_prefix(position..range.end, &entry.path[..above + slash + 1]);
            match scanned.get(&below[..slash]) {
                Some(Node::Directory(child)) => self.directory(child, inside.clone(), above + slash + 1),
                _ => inside.clone().for_each(|position| self.file(&self.index.entry(position), None)),
            }
            position = inside.end.max(position + 1);
        }
    }

    fn file(&mut self, entry: &IndexEntry<'_>, node: Option<&Node>) {
        if self.dirty.len() == MAX_DIRTY_FILES || !is_dirty(entry, node) {
            return;
        }
        let Ok(path) = WorkspacePath::new(entry.path[self.skip..].as_bytes()) else { return };
        if self.dirty.last() != Some(&path) {
            self.dirty.push(path);
        }
    }
}

fn is_dirty(entry: &IndexEntry<'_>, node: Option<&Node>) -> bool {
    if entry.mode == SUBMODULE || entry.is_exempt {
        return false;
    }
    if entry.is_conflicted {
        return true;
    }
    let Some(node) = node else { return true };
    let (found, mode) = match node {
        Node::File(file) if Mode::from_raw(file.stamp.mode).is_executable() => (file, EXECUTABLE),
        Node::File(file) => (file, FILE),
        Node::Symlink(link) => (link, SYMLINK),
        // The content of a skipped file is not known.
        Node::Skipped(..) => return false,
        Node::Directory(_) => return true,
    };
    if entry.mode != mode {
        return true;
    }
    // If git's recorded stat data still matches, the file is clean, even if filters changed its bytes when it was
    // added.
    let seconds = found.stamp.mtime.div_euclid(1_000_000_000);
    let nanoseconds = found.stamp.mtime.rem_euclid(1_000_000_000);
    let is_as_noted = i64::from(entry.mtime.0) == seconds
        && (entry.mtime.1 == 0 || i64::from(entry.mtime.1) == nanoseconds)
        && u64::from(entry.size) == found.stamp.size & 0xffff_ffff;
    !is_as_noted && entry.id != found.content.as_bytes()
}
