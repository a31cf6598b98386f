//! Finds the changes that the system would refuse, while a restore is planned: in directories of other users, on mount
//! points, and on files whose attributes forbid it.

use std::collections::HashMap;

use super::retry_policy::refusal;
use crate::{
    disk::Dir,
    error::{Error, Result, While},
    model::WorkspacePath,
    workspace::Workspace,
};

const OWNED_BY_ANOTHER_USER: &str = "its directory belongs to another user and can't be written";
const READ_ONLY: &str = "it is on a read-only file system";
const FIXED: &str = "its attributes forbid changes (see chattr)";
const DIRECTORY_FIXED: &str = "the attributes of its directory forbid changes (see chattr)";
const MOUNTED: &str = "a file system is mounted there";
const STICKY: &str = "it belongs to another user, and only owners can remove files from its directory";
const NOT_OWN: &str = "its permissions can't be set, because it belongs to another user";

/// Answers for one plan, cached.
pub(super) struct Permitted<'a> {
    workspace: &'a Workspace,
    /// The reason why names in a directory can't change. `None` if they can, or if there is no such directory yet.
    directories: HashMap<WorkspacePath, Option<&'static str>>,
    /// The directory of the last question.
    last: Option<(WorkspacePath, Option<Dir>)>,
}

impl<'a> Permitted<'a> {
    pub(super) fn of(workspace: &'a Workspace) -> Self {
        Self { workspace, directories: HashMap::new(), last: None }
    }

    /// Returns why the entry at a path can't be removed, created or replaced. Returns `None` if it can.
    pub(super) fn refusal_of_name(&mut self, path: &WorkspacePath) -> Result<Option<&'static str>> {
        let parent = path.parent().unwrap_or_default();
        if let Some(why) = self.refusal_of_names_in(&parent)? {
            return Ok(Some(why));
        }
        let (full, full_parent) = (self.full(path), self.full(&parent));
        let Some(directory) = self.directory(&parent)? else { return Ok(None) };
        let Some(found) = directory.hindrances_at(path.name()).or_fail("read", full)? else { return Ok(None) };
        let is_sticky = || -> std::io::Result<bool> {
            let is_sticky = directory.stamp()?.mode & 0o1000 != 0;
            Ok(is_sticky && !found.owner.allows_changes() && !directory.owner()?.allows_changes())
        };
        Ok(if found.is_mount {
            Some(MOUNTED)
        } else if found.is_fixed {
            Some(FIXED)
        } else if is_sticky().or_fail("read", full_parent)? {
            Some(STICKY)
        } else {
            None
        })
    }

    /// Returns why the permission bits of the entry at a path can't be set. Returns `None` if they can.
    pub(super) fn refusal_of_mode(&mut self, path: &WorkspacePath) -> Result<Option<&'static str>> {
        let full = self.full(path);
        let Some(directory) = self.directory(&path.parent().unwrap_or_default())? else { return Ok(None) };
        let Some(found) = directory.hindrances_at(path.name()).or_fail("read", full)? else { return Ok(None) };
        Ok(if found.is_fixed {
            Some(FIXED)
        } else if !found.owner.allows_changes() {
            Some(NOT_OWN)
        } else {
            None
        })
    }

    fn refusal_of_names_in(&mut self, path: &WorkspacePath) -> Result<Option<&'static str>> {
        if let Some(known) = self.directories.get(path) {
            return Ok(*known);
        }
        let full = self.full(path);
        let why = match self.directory(path)? {
            None => None,
            Some(directory) => match (directory.openness(), directory.is_fixed()) {
                (_, Ok(true)) => Some(DIRECTORY_FIXED),
                (Err(error), _) if error.kind() == std::io::ErrorKind::ReadOnlyFilesystem => Some(READ_ONLY),
                (Err(error), _) if refusal(&error).is_some() => Some(OWNED_BY_ANOTHER_USER),
                (openness, _) => openness.or_fail("write into", full).map(|_| None)?,
            },
        };
        self.directories.insert(path.clone(), why);
        Ok(why)
    }

    /// Returns the directory at a path. Returns `None` if there is none, or if it can't be opened: that is reported
    /// elsewhere.
    fn directory(&mut self, path: &WorkspacePath) -> Result<Option<&Dir>> {
        if self.last.as_ref().is_none_or(|(last, _)| last != path) {
            let directory = match self.workspace.open_existing(path) {
                Err(Error::Io { source, .. }) if refusal(&source).is_some() => None,
                found => found?,
            };
            self.last = Some((path.clone(), directory));
        }
        Ok(self.last.as_ref().and_then(|(_, directory)| directory.as_ref()))
    }

    fn full(&self, path: &WorkspacePath) -> std::path::PathBuf {
        self.workspace.root().join(path.to_text().as_ref())
    }
}
