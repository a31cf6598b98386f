//! Checks whether the repository that `.git` leads to is the workspace's own.
//!
//! Any program that writes into the workspace can write a `.git` file or a symlink that leads into another repository.
//! Such a repository may be read, but it is not moved unless it names the workspace as its own work tree.

use std::{
    io,
    path::{Component, Path, PathBuf},
};

use bstr::ByteSlice;

use super::{
    position::refuse,
    repository::{UserRepository, read_text},
};
use crate::{
    disk,
    error::{Result, While},
};

impl UserRepository {
    /// Refuses a repository that does not name this directory as its work tree.
    pub(super) fn refuse_others_repository(&self) -> Result<()> {
        if self.is_own()? {
            return Ok(());
        }
        let (git_dir, top) = (self.git_dir.display(), self.top.display());
        refuse(format!(
            "{top}/.git points to {git_dir}, but that repository does not name this directory as its work tree; \
             if it is, set it with: git --git-dir={git_dir} config core.worktree {top}"
        ))
    }

    /// Refuses a file that is outside the repository or behind a symlink.
    pub(super) fn refuse_linked(&self, path: &Path) -> Result<()> {
        match self.link_on_the_way(path) {
            None => Ok(()),
            Some(link) => refuse(format!("{} is a symbolic link, or it is outside the repository", link.display())),
        }
    }

    /// Returns `true` if the repository names this directory as its work tree. Returns `false` if it is gone. Any other
    /// failure to read it is an error: it must not count as an answer in the middle of a move.
    pub(crate) fn is_own(&self) -> Result<bool> {
        match self.names_back() {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
            answer => answer.or_fail("read", &self.git_dir),
        }
    }

    /// Returns `true` if the file belongs to the workspace's own repository and may be changed.
    pub(crate) fn may_change(&self, path: &Path) -> Result<bool> {
        Ok(self.is_own()? && self.link_on_the_way(path).is_none())
    }

    /// Returns the first part of a path that is a symlink, or the path itself if it is not in the repository. Returns
    /// `None` if the path is in the repository and no part is a symlink.
    fn link_on_the_way(&self, path: &Path) -> Option<PathBuf> {
        let bases = [&self.git_dir, &self.common_dir];
        let Some((base, below)) = bases.into_iter().find_map(|base| Some((base, path.strip_prefix(base).ok()?))) else {
            return Some(path.to_owned());
        };
        let mut here = base.clone();
        for part in below.components() {
            here.push(part);
            if !matches!(part, Component::Normal(_)) || disk::is_symlink(&here) {
                return Some(here);
            }
        }
        None
    }

    fn names_back(&self) -> io::Result<bool> {
        let (own, common) = (disk::private::canonical(&self.git_dir)?, disk::private::canonical(&self.common_dir)?);
        if own != common {
            return Ok(own.parent() == Some(&common.join("worktrees")) && self.is_linked_work_tree_of(&own)?);
        }
        let entry = self.top.join(".git");
        let is_here = self.git_dir == entry && !disk::is_symlink(&entry);
        Ok(is_here || self.is_configured_work_tree(&own)?)
    }

    /// Returns whether this is a linked work tree. The git directory that its repository keeps for it then has a file
    /// with the path of its `.git`.
    fn is_linked_work_tree_of(&self, git_dir: &Path) -> io::Result<bool> {
        let Some(text) = read_text(&git_dir.join("gitdir")) else { return Ok(false) };
        let named = git_dir.join(text.trim_end_matches(['\n', '\r']));
        let is_entry = named.file_name().is_some_and(|name| name == ".git");
        Ok(is_entry && named.parent().map(disk::private::canonical).transpose()? == Some(self.canonical_top()?))
    }

    /// Returns whether the configuration names this directory as the work tree, as it does for a submodule or a
    /// repository that is kept elsewhere.
    fn is_configured_work_tree(&self, git_dir: &Path) -> io::Result<bool> {
        let files = ["config.worktree", "config"].map(|name| git_dir.join(name));
        let Some(named) = files.iter().find_map(|file| configured_work_tree(file)) else { return Ok(false) };
        Ok(disk::private::canonical(&git_dir.join(named))? == self.canonical_top()?)
    }

    fn canonical_top(&self) -> io::Result<PathBuf> {
        disk::private::canonical(&self.top)
    }
}

fn configured_work_tree(file: &Path) -> Option<PathBuf> {
    let bytes = disk::read_following(file).ok()??;
    let metadata = gix_config::file::Metadata::from(gix_config::Source::Local);
    let config = gix_config::File::from_bytes_no_includes(&bytes, metadata, Default::default()).ok()?;
    Some(config.string("core.worktree")?.to_path().ok()?.to_owned())
}
