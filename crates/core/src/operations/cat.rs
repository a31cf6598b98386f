//! Reads one file, or one attachment, of a checkpoint.

use std::io::{self, Read};

use crate::{
    disk::{Dir, FileType},
    error::{Error, Result, While},
    model::{CheckpointId, ContentId, WorkspacePath},
    operations::history::OnDisk,
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

    /// Returns the first `max_bytes` bytes of a file on disk. Returns an error if it is not a regular file, or if a
    /// checkpoint would skip it.
    pub fn file_on_disk(&self, path: &WorkspacePath, max_bytes: u64) -> Result<Vec<u8>> {
        if self.path_on_disk(path, &[])? == OnDisk::LeftOut {
            return Err(Error::UnknownPath { path: path.clone(), place: "the captured files on disk".into() });
        }
        self.read_on_disk(path, max_bytes, |reason| Error::Usage(format!("{path} {reason}")))
    }

    /// Reads the first bytes of a file of the workspace, never through a symlink. `unfit` makes the error for
    /// anything but a regular file.
    pub(crate) fn read_on_disk(
        &self,
        path: &WorkspacePath,
        max_bytes: u64,
        unfit: impl Fn(&'static str) -> Error,
    ) -> Result<Vec<u8>> {
        let full = self.root().join(path.to_text().as_ref());
        let unknown = || Error::UnknownPath { path: path.clone(), place: "the workspace".into() };
        if path.is_root() {
            return Err(unfit("is a directory"));
        }
        let directory = match Dir::open_parent(self.root(), path) {
            Err(error) if is_elsewhere(&error) => return Err(unknown()),
            opened => opened.or_fail("open", &full)?,
        };
        let stamp = directory.try_stamp_at(path.name()).or_fail("read", &full)?.ok_or_else(unknown)?;
        match FileType::of(&stamp) {
            FileType::File => {}
            FileType::Directory => return Err(unfit("is a directory")),
            _ => return Err(unfit("is not a regular file")),
        }
        let mut content = Vec::new();
        let file = directory.open_file(path.name()).or_fail("open", &full)?;
        file.take(max_bytes).read_to_end(&mut content).or_fail("read", &full)?;
        Ok(content)
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

/// Returns whether the error means that a directory of the path does not exist, or is a symlink.
fn is_elsewhere(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}
