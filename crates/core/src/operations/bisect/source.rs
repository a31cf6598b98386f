//! The files of a state that is written into a scratch directory.

use std::{
    collections::BTreeMap,
    io::{self, Read},
};

use super::Candidate;
use crate::{
    disk::Dir,
    error::{Result, While},
    model::{ContentId, Scope, Side, WorkspacePath},
    operations::diff::{Tree, compare},
    store::{ObjectReader, Store},
    workspace::Workspace,
};

/// The files of one state, in the store or on disk.
pub(super) struct Source<'w> {
    workspace: &'w Workspace,
    store: Store,
    reader: ObjectReader,
    candidate: Candidate,
}

impl<'w> Source<'w> {
    pub(super) fn new(workspace: &'w Workspace, candidate: Candidate) -> Result<Self> {
        let store = workspace.existing_store()?;
        Ok(Self { workspace, reader: store.reader(), store, candidate })
    }

    /// Returns every file, symlink and empty directory.
    pub(super) fn paths(&self) -> Result<BTreeMap<WorkspacePath, Side>> {
        let store = Some(&self.store);
        let found = match self.candidate {
            Candidate::Checkpoint(id) => compare(store, Tree::Empty, Tree::Stored(self.store.snapshot(&id)?))?,
            Candidate::OnDisk => {
                let present = self.workspace.scan_for_reading(store, &Scope::Whole)?;
                let defaults = present.id_defaults().unwrap_or_default();
                compare(store, Tree::Empty, Tree::Scanned(&present.root, defaults))?
            }
        };
        Ok(found.changes.into_iter().filter_map(|change| Some((change.path, change.new?))).collect())
    }

    /// Returns the target of a symlink.
    pub(super) fn target(&self, path: &WorkspacePath, content: &ContentId) -> Result<Vec<u8>> {
        match self.candidate {
            Candidate::Checkpoint(_) => self.store.content(&self.reader, content),
            Candidate::OnDisk => self.on_disk(path, |parent| parent.read_link(path.name())),
        }
    }

    /// Passes the bytes of a file to `write`. The inner result is that of `write`.
    pub(super) fn copy(
        &self,
        path: &WorkspacePath,
        content: &ContentId,
        write: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<io::Result<()>> {
        match self.candidate {
            Candidate::Checkpoint(_) => self.store.copy_content(content, write),
            Candidate::OnDisk => Ok(pass_on(self.on_disk(path, |parent| parent.open_file(path.name()))?, write)),
        }
    }

    /// Reads something in the workspace, never through a symlink.
    fn on_disk<T>(&self, path: &WorkspacePath, read: impl FnOnce(&Dir) -> io::Result<T>) -> Result<T> {
        let found = Dir::open_parent(self.workspace.root(), path).and_then(|parent| read(&parent));
        found.or_fail("read", self.workspace.root().join(path.to_text().as_ref()))
    }
}

fn pass_on(mut source: impl Read, write: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        match source.read(&mut piece)? {
            0 => return Ok(()),
            count => write(&piece[..count])?,
        }
    }
}
