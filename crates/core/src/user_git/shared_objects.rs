//! Object directories in the workspace that a repository borrows from: through a symlink, or as an alternate. If a
//! restore changed them, that repository would lose commits.

use std::{collections::HashSet, path::Path, sync::OnceLock};

use bstr::ByteSlice;

use super::UserRepository;
use crate::{
    disk::{self, Dir, FileType},
    model::Stamp,
    scan::{MAX_DEPTH, is_repository},
};

/// The object directories that repositories in and around a workspace borrow from. They are searched for on first use.
pub(crate) struct SharedObjects<'a> {
    root: &'a Path,
    /// Directories by device and inode.
    found: OnceLock<HashSet<(u64, u64)>>,
}

impl<'a> SharedObjects<'a> {
    pub(crate) fn below(root: &'a Path) -> Self {
        Self { root, found: OnceLock::new() }
    }

    /// Returns whether a repository borrows from this directory.
    pub(crate) fn contain(&self, directory: &Stamp) -> bool {
        self.found.get_or_init(|| self.find()).contains(&(directory.device, directory.inode))
    }

    fn find(&self) -> HashSet<(u64, u64)> {
        let mut search = SharedObjectsSearch::default();
        if let Some(around) = UserRepository::around(self.root) {
            search.repository(&around.common_dir);
        }
        if let Ok(root) = Dir::open_resolved(self.root) {
            search.directory(&root, self.root, 0);
        }
        search.shared
    }
}

#[derive(Default)]
struct SharedObjectsSearch {
    shared: HashSet<(u64, u64)>,
}

impl SharedObjectsSearch {
    /// Searches a directory for repositories. Directories that can't be read are skipped.
    fn directory(&mut self, directory: &Dir, path: &Path, depth: usize) {
        let Ok(listed) = directory.list() else { return };
        let is_repository = is_repository(directory);
        if is_repository {
            self.repository(path);
        }
        for listed in listed {
            if listed.name == ".git" {
                if let Ok(Some(found)) = UserRepository::at(path) {
                    self.repository(&found.common_dir);
                }
            } else if matches!(listed.file_type, Some(FileType::Directory) | None)
                && !(is_repository && listed.name == "objects")
                && depth < MAX_DEPTH
                && let Ok(below) = directory.open_dir(&listed.name)
            {
                self.directory(&below, &path.join(listed.name.to_path_lossy()), depth + 1);
            }
        }
    }

    fn repository(&mut self, git_directory: &Path) {
        let own = git_directory.join("objects");
        let is_link = |directory: Dir| directory.stamp_at(b"objects").map(|stamp| FileType::of(&stamp));
        if Dir::open(git_directory).and_then(is_link).is_ok_and(|found| found == FileType::Symlink) {
            self.borrowed_from(&own);
        }
        self.alternates(&own);
    }

    fn borrowed_from(&mut self, objects: &Path) {
        let Ok(Some(stamp)) = disk::stamp_following(objects) else { return };
        // Two repositories may borrow from each other.
        if self.shared.insert((stamp.device, stamp.inode)) {
            self.alternates(objects);
        }
    }

    fn alternates(&mut self, objects: &Path) {
        let Ok(Some(lines)) = disk::read_following(&objects.join("info/alternates")) else { return };
        for line in lines.lines().filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
            self.borrowed_from(&objects.join(line.to_path_lossy()));
        }
    }
}
