//! Reads one file, or one attachment, of a checkpoint.

use std::io;

use crate::{
    error::{Error, Result},
    model::{CheckpointId, ContentId, WorkspacePath},
    spans::{operation, read_span},
    store::{Store, StoredEntry, StoredNode},
    workspace::Workspace,
};

/// A name in a directory of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredName {
    /// The bytes of the name.
    pub name: Vec<u8>,
    /// Set if it is a directory.
    pub is_directory: bool,
}

impl Workspace {
    /// Passes the bytes of a file at a checkpoint to `take`. For a symlink, these are its target.
    ///
    /// A large file comes in pieces. Only the result tells whether they were intact.
    pub fn cat(
        &self,
        id: &CheckpointId,
        path: &WorkspacePath,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<io::Result<()>> {
        let cat = || {
            let store = self.existing_store()?;
            let content = self.content_at(&store, id, path)?;
            store.copy_content(&content, take)
        };
        operation(&read_span!(self.store_directory(), "cat"), cat)
    }

    /// Returns the bytes of an attachment.
    pub fn attachment(&self, id: &CheckpointId, name: &str) -> Result<Vec<u8>> {
        let store = self.existing_store()?;
        let found = store.state(id)?.attachment(&store.reader(), name).map_err(|problem| store.damaged(problem))?;
        found.ok_or_else(|| Error::UnknownAttachment { checkpoint: *id, name: name.to_owned() })
    }

    /// Returns whether a checkpoint holds something at this path.
    pub fn holds(&self, id: &CheckpointId, path: &WorkspacePath) -> Result<bool> {
        let store = self.existing_store()?;
        Ok(store.find(store.snapshot(id)?, path)?.is_some())
    }

    /// Returns the names that a directory holds at a checkpoint, in byte order.
    pub fn names_at(&self, id: &CheckpointId, directory: &WorkspacePath) -> Result<Vec<StoredName>> {
        let store = self.existing_store()?;
        let found = store.find(store.snapshot(id)?, directory)?;
        let Some(StoredNode::Directory { snapshot, .. }) = found else { return Ok(Vec::new()) };
        let name = |entry: StoredEntry| StoredName {
            is_directory: matches!(entry.node, StoredNode::Directory { .. }),
            name: entry.name.into(),
        };
        Ok(store.list(&store.reader(), &snapshot)?.into_iter().map(name).collect())
    }

    fn content_at(&self, store: &Store, id: &CheckpointId, path: &WorkspacePath) -> Result<ContentId> {
        let unknown = || Error::UnknownPath { path: path.clone(), place: format!("checkpoint {}", id.short()) };
        // Outside of its scope, a checkpoint of some paths repeats the one before it.
        if !store.timeline()?.require(id)?.scope().contains(path) {
            return Err(unknown());
        }
        match store.find(store.snapshot(id)?, path)? {
            Some(StoredNode::File { content, .. }) => Ok(content),
            Some(StoredNode::Symlink { target }) => Ok(target),
            Some(StoredNode::Directory { .. }) => Err(Error::Usage(format!("{path} is a directory"))),
            None => Err(unknown()),
        }
    }
}
