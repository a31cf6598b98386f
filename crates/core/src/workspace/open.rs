//! Opens and locks the store, and refuses directories that must not have one.

use std::path::PathBuf;

use jiff::Timestamp;
use tracing::info;

use super::Workspace;
use crate::{
    clock::Clock,
    disk::{self, private},
    error::{Error, Result, While},
    events::Event,
    store::{ForkOrigin, FoundJournal, IdentityFile, Layout, Store, Writer},
};

impl Workspace {
    /// Returns whether the store exists.
    pub fn has_store(&self) -> Result<bool> {
        Ok(self.store()?.is_some())
    }

    /// Checks whether the store would take a checkpoint. Only reads. The error is the one that a save would meet.
    pub fn check_store(&self) -> Result<()> {
        self.refuse_own_directory()?;
        self.refuse_foreign_directory()?;
        let Some(store) = self.store()? else {
            let directory = self.store_directory();
            return private::check_writable(directory).or_fail("write to", directory);
        };
        if let Some(known) = IdentityFile::read(store.layout()) {
            self.refuse_other_owner(&known, &self.found()?)?;
        }
        store.check_writable()
    }

    /// Opens the store for reading. Returns `None` if nothing was saved yet.
    pub(crate) fn store(&self) -> Result<Option<Store>> {
        Store::open(self.store_directory(), self.options.open_stores.as_deref())
    }

    /// Opens the store for an operation that needs one. Returns an error if there is none.
    pub(crate) fn existing_store(&self) -> Result<Store> {
        self.store()?.ok_or_else(|| Error::UnknownCheckpoint { word: "@".into(), nearest: None })
    }

    /// Locks the store, and creates it if it is missing. Returns whether it was missing, and the time at which the lock
    /// was taken. An interrupted restore is left as it is: see [`Workspace::writer`].
    pub(crate) fn lock_store(&self, clock: &impl Clock) -> Result<((Writer, bool), Timestamp)> {
        self.refuse_own_directory()?;
        self.refuse_foreign_directory()?;
        let lock = Store::lock(self.store_directory(), self.root(), self.options.patience)?;
        let now = clock.now();
        self.refuse_unfinished_fork()?;
        let own = self.found()?;
        let (writer, created) = lock.open_or_create(&own.identity, self.options.open_stores.as_deref())?;
        let known = IdentityFile::read(writer.store().layout()).filter(|_| !created);
        if known.as_ref() != Some(&own.identity) {
            known.as_ref().map_or(Ok(()), |known| self.refuse_other_owner(known, &own))?;
            let is_pending = matches!(writer.store().journal()?, FoundJournal::Journal(_));
            if !(is_pending && self.is_another_directory(&writer)?) {
                // The directory was moved, or created again at the same path: the history is the same.
                own.identity.write(writer.store().layout())?;
            }
        }
        if created {
            info!(name: "store_created", "a store was created");
            self.emit(&writer, Event::Initialized, now)?;
        }
        Ok(((writer, created), now))
    }

    /// Returns an error if the workspace is a fork that does not have all its files yet. A checkpoint of it would show
    /// the missing files as deleted.
    fn refuse_unfinished_fork(&self) -> Result<()> {
        match ForkOrigin::read(&Layout::new(self.store_directory()))? {
            Some(origin) if !origin.finished => Err(Error::UnfinishedFork { path: self.root().to_owned() }),
            _ => Ok(()),
        }
    }

    /// Returns an error if the workspace is a store, a directory of the program, or a git directory. Restoring stores
    /// would take checkpoints away from all other workspaces. Restoring a git directory would take commits away.
    pub(crate) fn refuse_own_directory(&self) -> Result<()> {
        let mut own = self.options.own_directories.iter().filter_map(|path| private::canonical(path).ok());
        let is_git = || {
            self.root().iter().any(|part| part == ".git")
                || disk::Dir::open(self.root()).is_ok_and(|root| crate::scan::is_repository(&root))
        };
        if own.any(|own| self.root().starts_with(own))
            || private::exists(&Layout::new(self.root()).format())
            || is_git()
        {
            return Err(Error::ProtectedDirectory { path: self.root().to_owned() });
        }
        Ok(())
    }

    /// Returns an error if the store's path is a file, or a directory that holds something else: that must not be
    /// filled with a store.
    pub fn refuse_foreign_directory(&self) -> Result<()> {
        let layout = Layout::new(self.store_directory());
        if private::exists(&layout.format()) || private::exists(&layout.own()) {
            return Ok(());
        }
        if private::exists(layout.root()) && !disk::is_directory(layout.root()) {
            return Err(Error::NotAStore { path: layout.root().to_owned() });
        }
        let names = private::names_of_closed(layout.root()).or_fail("read", layout.root())?;
        // Another process may have begun to create the store since the check above.
        let is_fresh = names.is_empty() || names.iter().any(|name| name == "backtrail");
        if is_fresh { Ok(()) } else { Err(Error::NotAStore { path: layout.root().to_owned() }) }
    }

    /// Returns an error if the workspace is one of these directories, which hold so much that no user means them as a
    /// workspace.
    pub fn refuse_protected(&self, protected: &[PathBuf]) -> Result<()> {
        let is_root = |path: &PathBuf| private::canonical(path).is_ok_and(|path| path == self.root());
        if protected.iter().any(is_root) {
            return Err(Error::ProtectedDirectory { path: self.root().to_owned() });
        }
        Ok(())
    }
}
