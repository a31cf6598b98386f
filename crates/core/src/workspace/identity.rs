//! Ensures that a store belongs to one directory, and refuses any other.

use super::{
    Workspace,
    bindings::{found_at_path_of, is_heir, moved_beside},
    locate::is_folder_of_projects,
};
use crate::{
    disk::{self, private},
    error::{Error, Result, While},
    store::{FoundDirectory, IdentityFile, Layout, Likeness, Writer},
};

impl Workspace {
    /// Returns the directory under protection, as it is now.
    pub(crate) fn found(&self) -> Result<FoundDirectory> {
        let found = FoundDirectory::of(self.root()).or_fail("read", self.root())?;
        found.ok_or_else(|| Error::NotADirectory { path: self.root().to_owned() })
    }

    /// Creates the directory of the workspace if it was deleted, so that files can be restored. Returns whether it was.
    pub fn make_root_again(&self) -> Result<bool> {
        let known = IdentityFile::read(&Layout::new(self.store_directory()));
        let is_deleted = |known: &IdentityFile| {
            known.path.to_path().is_some_and(|path| path == self.root()) && moved_beside(known).is_none()
        };
        if private::exists(self.root()) || !known.as_ref().is_some_and(is_deleted) {
            return Ok(false);
        }
        disk::make_directories(self.root()).or_fail("create", self.root())?;
        Ok(true)
    }

    /// Returns whether another directory has taken the path of the one that the store was last used for.
    pub(crate) fn is_another_directory(&self, writer: &Writer) -> Result<bool> {
        let own = self.found()?;
        Ok(IdentityFile::read(writer.store().layout()).is_some_and(|known| known.likeness(&own) == Likeness::Another))
    }

    /// Returns the attribute by which the directory is recognised, if the numbers of its file system are not all
    /// stable.
    pub fn known_by(&self) -> Result<Option<&'static str>> {
        Ok(self.found()?.known_by())
    }

    /// Returns an error for a folder of projects that has no store: only its owner can mean it as one workspace.
    pub fn refuse_folder_of_projects(&self) -> Result<()> {
        if !self.has_store()? && is_folder_of_projects(self.root()) {
            return Err(Error::FolderOfProjects { path: self.root().to_owned() });
        }
        Ok(())
    }

    /// Returns an error if the store belongs to another workspace. Two workspaces can't share a store: each would see
    /// the other's files as its own changes.
    pub(crate) fn refuse_other_owner(&self, known: &IdentityFile, own: &FoundDirectory) -> Result<()> {
        let store = self.store_directory().to_owned();
        if known.is_released() {
            return Err(Error::StoreSetAside { store, path: self.root().to_owned() });
        }
        let Some(owner) = known.path.to_path() else { return Ok(()) };
        let likeness = known.likeness(own);
        let there = found_at_path_of(known);
        let is_own = match &there {
            _ if owner == self.root() => likeness != Likeness::Another || is_heir(known, own),
            Some(there) if there.is_also(own) => true,
            Some(there) => likeness == Likeness::Same && known.likeness(there) != Likeness::Same,
            None => likeness != Likeness::Another,
        };
        if is_own {
            return Ok(());
        }
        // If a symlink has taken the workspace's place, the error says so: the link has no store of its own.
        disk::Dir::open_resolved(self.root()).or_fail("open", self.root())?;
        match moved_beside(known).filter(|_| there.is_none() || owner == self.root()) {
            Some(owner) => Err(Error::StoreOfAnother { store, owner }),
            None if owner == self.root() => Err(Error::AnotherDirectory { store, path: owner }),
            None => Err(Error::StoreOfAnother { store, owner }),
        }
    }
}
