//! What forbids a move of the user's repository: work that is under way, other processes and other work trees.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{
    position::{GitEdit, Position, refuse},
    repository::{UserRepository, read_text},
};
use crate::{disk, error::Result};

/// What is under way in a repository where one of these exists.
const UNDER_WAY: [(&str, &str); 7] = [
    ("MERGE_HEAD", "a merge is under way"),
    ("CHERRY_PICK_HEAD", "a cherry-pick is under way"),
    ("REVERT_HEAD", "a revert is under way"),
    ("rebase-merge", "a rebase is under way"),
    ("rebase-apply", "a rebase is under way"),
    ("sequencer", "a cherry-pick or revert of several commits is under way"),
    ("BISECT_LOG", "a bisection is under way"),
];

impl UserRepository {
    pub(super) fn refuse_what_is_under_way(&self) -> Result<()> {
        if !self.prefix.is_empty() {
            return refuse(format!("the workspace is only a part of the repository at {}", self.top.display()));
        }
        if self.object_hash() != gix_hash::Kind::Sha1 {
            return refuse("the repository's ids are not SHA-1");
        }
        let is_there = |path: PathBuf| disk::private::exists(&path);
        if is_there(self.common_dir.join("reftable")) {
            return refuse("the repository keeps its refs in a reftable");
        }
        for (name, what) in UNDER_WAY {
            if is_there(self.git_dir.join(name)) {
                return refuse(format!("{what}; finish or abort it first"));
            }
        }
        refuse_lock(&self.git_dir.join("index"))?;
        refuse_lock(&self.git_dir.join("HEAD"))
    }

    /// Files that another git process is at: those that would change, the branch that would be left, and the packed refs
    /// where a branch has its commit from there.
    pub(super) fn refuse_locks(&self, before: &Position, edits: &[GitEdit]) -> Result<()> {
        let left = before.branch.iter().map(|name| self.common_dir.join(name));
        edits.iter().map(|edit| edit.path.clone()).chain(left).try_for_each(|path| refuse_lock(&path))?;
        let Some((name, Some(_))) = &before.moved else { return Ok(()) };
        let path = self.common_dir.join(name);
        let is_packed = edits.iter().any(|edit| edit.path == path && edit.old.is_none());
        if is_packed { refuse_lock(&self.common_dir.join("packed-refs")) } else { Ok(()) }
    }

    /// A branch that another work tree stands on is not moved under its feet.
    pub(super) fn refuse_branch_elsewhere(&self, name: &str) -> Result<()> {
        let others = disk::private::names(&self.common_dir.join("worktrees")).unwrap_or_default();
        let mut heads: Vec<PathBuf> = others.into_iter().map(|at| self.common_dir.join("worktrees").join(at)).collect();
        heads.push(self.common_dir.clone());
        for git_dir in heads.into_iter().filter(|git_dir| *git_dir != self.git_dir) {
            let head = read_text(&git_dir.join("HEAD"));
            if head.is_some_and(|text| text.trim().strip_prefix("ref: ") == Some(name)) {
                return refuse(format!("{name} is checked out in another work tree ({})", git_dir.display()));
            }
        }
        Ok(())
    }
}

fn refuse_lock(path: &Path) -> Result<()> {
    let mut lock = OsString::from(path);
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    if disk::private::exists(&lock) {
        return refuse(format!("another git process is at work: {} exists", lock.display()));
    }
    Ok(())
}
