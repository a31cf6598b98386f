//! Binds a store to a directory on request.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use crate::{
    disk::private,
    error::{Error, Result, While},
    spans::{operation, write_span},
    store::{FoundDirectory, FoundJournal, IdentityFile, Layout, Likeness, Store},
    workspace::{
        Workspace,
        bindings::{found_at_path_of, is_store, moved_beside},
        locate::Location,
    },
};

/// The stores of a workspace after it adopted one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopted {
    /// The store that it has now.
    pub store: PathBuf,
    /// The store that it had before, which is kept.
    pub kept: Option<PathBuf>,
}

impl Workspace {
    /// Binds a store to this directory. The store that the directory had before is kept, and belongs to no directory
    /// then.
    ///
    /// Returns an error while the directory that the store belongs to still exists.
    pub fn adopt(&self, store: &Path, now: Timestamp) -> Result<Adopted> {
        operation(&write_span!(store, "adopt"), || self.adopt_now(store, now))
    }

    fn adopt_now(&self, store: &Path, now: Timestamp) -> Result<Adopted> {
        self.refuse_own_directory()?;
        let store = private::canonical(store).or_fail("find", store)?;
        if !is_store(&store) {
            return Err(Error::NotAStore { path: store });
        }
        let present = self.store()?.map(|_| self.store_directory().to_owned());
        let replaced = present.filter(|present| private::canonical(present).ok().as_ref() != Some(&store));
        if replaced.is_some() && self.has_interrupted_restore()? {
            return Err(Error::HalfRestored { path: self.root().to_owned() });
        }
        let location = Location::with_store(self.root().to_owned(), store.clone());
        Self::new(location, self.options().clone()).take_over(now)?;
        if replaced.is_some() {
            self.release()?;
        }
        Ok(Adopted { store, kept: replaced })
    }

    /// Binds the store to this directory. An interrupted restore of the directory that had the store is not carried out
    /// here.
    fn take_over(&self, now: Timestamp) -> Result<()> {
        let own = self.found()?;
        let lock = Store::lock(self.store_directory(), self.root(), self.patience())?;
        let (writer, _) = lock.open_or_create(&own.identity, None)?;
        if let Some(owner) = IdentityFile::read(writer.store().layout()).and_then(|known| living_owner(&known, &own)) {
            return Err(Error::OwnerIsThere { store: self.store_directory().to_owned(), owner });
        }
        if let FoundJournal::Journal(journal) = writer.store().journal()?
            && self.is_another_directory(&writer)?
        {
            self.set_aside(&writer, journal.journal(), now)?;
        }
        // The stat cache describes the files of another directory.
        private::remove(&writer.store().layout().stat_cache())
            .or_fail("remove", writer.store().layout().stat_cache())?;
        own.identity.write(writer.store().layout())
    }

    /// Keeps the store without a directory.
    fn release(&self) -> Result<()> {
        let _lock = Store::lock(self.store_directory(), self.root(), self.patience())?;
        self.found()?.identity.released().write(&Layout::new(self.store_directory()))
    }
}

/// Returns the path of the directory that a store belongs to, if that directory is a different one and still exists.
fn living_owner(known: &IdentityFile, own: &FoundDirectory) -> Option<PathBuf> {
    let path = known.path.to_path()?;
    let is_there = |there: &FoundDirectory| known.likeness(there) != Likeness::Another && !there.is_also(own);
    if known.path != own.identity.path && found_at_path_of(known).is_some_and(|there| is_there(&there)) {
        return Some(path);
    }
    let own_path = own.identity.path.to_path();
    moved_beside(known).filter(|moved| Some(moved) != own_path.as_ref() && known.likeness(own) != Likeness::Same)
}
