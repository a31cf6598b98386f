//! Obstacles to a move of the user repository: unfinished operations, other processes and other work trees.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use super::{
    position::{GitEdit, Position, refuse},
    repository::{UserRepository, read_text},
};
use crate::{disk, error::Result};

/// Files that exist in a git directory during an operation, each with a description of it.
const UNDER_WAY: [(&str, &str); 7] = [
    ("MERGE_HEAD", "a merge is in progress"),
    ("CHERRY_PICK_HEAD", "a cherry-pick is in progress"),
    ("REVERT_HEAD", "a revert is in progress"),
    ("rebase-merge", "a rebase is in progress"),
    ("rebase-apply", "a rebase is in progress"),
    ("sequencer", "a cherry-pick or revert of several commits is in progress"),
    ("BISECT_LOG", "a bisection is in progress"),
];

impl UserRepository {
    pub(super) fn refuse_what_is_under_way(&self) -> Result<()> {
        if !self.prefix.is_empty() {
            return refuse(format!("the workspace is only a part of the repository {}", self.top.display()));
        }
        if self.object_hash() != gix_hash::Kind::Sha1 {
            return refuse("the repository does not use SHA-1 ids, and others are not supported");
        }
        let is_there = |path: PathBuf| disk::private::exists(&path);
        if is_there(self.common_dir.join("reftable")) {
            return refuse("the repository keeps its refs in a reftable, which is not supported");
        }
        for (name, what) in UNDER_WAY {
            if is_there(self.git_dir.join(name)) {
                return refuse(format!("{what}; finish or abort it first"));
            }
        }
        refuse_lock(&self.git_dir.join("index"))?;
        refuse_lock(&self.git_dir.join("HEAD"))
    }

    /// Refuses files that another git process has locked: the files that would change, the branch that would be left,
    /// and the packed refs if the commit of the branch is stored there.
    pub(super) fn refuse_locks(&self, before: &Position, edits: &[GitEdit]) -> Result<()> {
        let left = before.branch.iter().map(|name| self.common_dir.join(name));
        edits.iter().map(|edit| edit.path.clone()).chain(left).try_for_each(|path| refuse_lock(&path))?;
        let Some((name, Some(_))) = &before.moved else { return Ok(()) };
        let path = self.common_dir.join(name);
        let is_packed = edits.iter().any(|edit| edit.path == path && edit.old.is_none());
        if is_packed { refuse_lock(&self.common_dir.join("packed-refs")) } else { Ok(()) }
    }

    /// Refuses to move a branch that is checked out in another work tree, since that would move its HEAD as well.
    pub(super) fn refuse_branch_elsewhere(&self, name: &str) -> Result<()> {
        let linked = self.common_dir.join("worktrees");
        let mut others: Vec<PathBuf> =
            disk::private::names(&linked).unwrap_or_default().into_iter().map(|at| linked.join(at)).collect();
        // In a bare repository nothing is checked out, whatever its HEAD names.
        if !self.is_bare() {
            others.push(self.common_dir.clone());
        }
        let resolved = |path: &Path| disk::private::canonical(path).unwrap_or_else(|_| path.to_owned());
        let own = resolved(&self.git_dir);
        for git_dir in others.into_iter().filter(|git_dir| resolved(git_dir) != own) {
            let head = read_text(&git_dir.join("HEAD"));
            if head.is_some_and(|text| text.trim().strip_prefix("ref: ") == Some(name)) {
                return refuse(format!("{name} is checked out in another work tree ({})", git_dir.display()));
            }
        }
        Ok(())
    }

    /// Refuses a ref that conflicts with another one. Refs are files in directories: `x/y` and `x` can't both exist.
    pub(super) fn refuse_name_in_the_way(&self, name: &str) -> Result<()> {
        let is_ref = |name: &str| disk::is_regular(&self.common_dir.join(name)) || self.resolve_packed(name).is_some();
        let mut above = name.match_indices('/').map(|(at, _)| &name[..at]);
        let below = format!("{name}/");
        let found = above
            .find(|name| is_ref(name))
            .map(str::to_owned)
            .or_else(|| self.packed_names().into_iter().find(|packed| packed.starts_with(&below)))
            .or_else(|| self.loose_below(name));
        match found {
            Some(other) => refuse(format!("{other} is in the way of {name}; rename or delete it first")),
            None => Ok(()),
        }
    }

    fn loose_below(&self, name: &str) -> Option<String> {
        let path = self.common_dir.join(name);
        let names = disk::is_directory(&path).then(|| disk::private::names(&path).unwrap_or_default());
        names.into_iter().flatten().find_map(|below| {
            let below = format!("{name}/{}", below.to_string_lossy());
            if disk::is_directory(&self.common_dir.join(&below)) { self.loose_below(&below) } else { Some(below) }
        })
    }
}

fn refuse_lock(path: &Path) -> Result<()> {
    let mut lock = OsString::from(path);
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    if disk::private::exists(&lock) {
        return refuse(format!("another git process is running; if not, delete {}", lock.display()));
    }
    Ok(())
}
