//! The files on disk with the merged paths laid over them.

use std::{
    collections::{BTreeMap, HashMap},
    io::Read,
    path::Path,
};

use super::path::ContentSource;
use crate::{
    disk::Dir,
    error::{Result, While},
    model::{ContentId, Node, Reason, Side, WorkspacePath},
    scan::Scan,
    store::{ObjectReader, Store, content_id},
    text::MAX_TEXT_BYTES,
};

/// The entry at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OnDiskEntry {
    Nothing,
    Side(Side),
    /// It is on disk, and not captured.
    Skipped(Reason),
}

impl OnDiskEntry {
    /// Returns the captured entry, if there is one.
    pub(super) fn side(self) -> Option<Side> {
        match self {
            Self::Side(side) => Some(side),
            Self::Nothing | Self::Skipped(_) => None,
        }
    }
}

/// The files on disk, with merged paths over them.
pub(super) struct Overlay<'a> {
    root: &'a Path,
    store: &'a Store,
    scan: &'a Scan,
    pub(super) changed: BTreeMap<WorkspacePath, Option<Side>>,
    /// Merged contents, which no checkpoint holds.
    pub(super) contents: HashMap<ContentId, Vec<u8>>,
}

impl<'a> Overlay<'a> {
    pub(super) fn of(root: &'a Path, store: &'a Store, scan: &'a Scan) -> Self {
        Self { root, store, scan, changed: BTreeMap::new(), contents: HashMap::new() }
    }

    pub(super) fn at(&self, path: &WorkspacePath) -> OnDiskEntry {
        match self.changed.get(path) {
            Some(side) => side.map_or(OnDiskEntry::Nothing, OnDiskEntry::Side),
            None => self.on_disk(path),
        }
    }

    fn on_disk(&self, path: &WorkspacePath) -> OnDiskEntry {
        match self.scan.root.find(path) {
            // A directory whose entries were all skipped is on disk, too.
            Some(Node::Directory(directory)) => OnDiskEntry::Side(Side::Directory { mode: directory.mode() }),
            Some(Node::Skipped(reason, _)) => OnDiskEntry::Skipped(*reason),
            Some(node) => node.side().map_or(OnDiskEntry::Nothing, OnDiskEntry::Side),
            None => self.scan.root.skipped_at(path).map_or(OnDiskEntry::Nothing, OnDiskEntry::Skipped),
        }
    }

    /// Sets the side of a path. A path that is as on disk again is not changed.
    pub(super) fn set(&mut self, path: WorkspacePath, side: Option<Side>) {
        if self.on_disk(&path) == side.map_or(OnDiskEntry::Nothing, OnDiskEntry::Side) {
            self.changed.remove(&path);
        } else {
            self.changed.insert(path, side);
        }
    }

    /// Returns whether a directory has entries, captured or not.
    pub(super) fn has_entries(&self, directory: &WorkspacePath) -> bool {
        let remains = |name: &[u8]| !matches!(self.changed.get(&directory.join(name)), Some(None));
        let on_disk = match self.scan.root.find(directory) {
            Some(Node::Directory(found)) => found.entries().iter().any(|entry| remains(&entry.name)),
            _ => false,
        };
        let below = self.changed.range(directory.clone()..).skip_while(|(path, _)| *path == directory);
        let mut below = below.take_while(|(path, _)| path.as_bytes().starts_with(directory.as_bytes()));
        on_disk || below.any(|(path, side)| side.is_some() && path.is_within(directory))
    }

    /// Returns the reader of contents for the file at `path`.
    pub(super) fn reader<'o>(&'o self, path: &'o WorkspacePath, reader: &'o ObjectReader) -> ReadContents<'o> {
        ReadContents { overlay: self, path, reader }
    }
}

/// Returns the bytes of a file on disk. Returns `None` if it is too large to merge, or has other bytes by now.
pub(super) fn read_disk(root: &Path, path: &WorkspacePath, content: &ContentId) -> Result<Option<Vec<u8>>> {
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = Dir::open_parent(root, path)?.open_file(path.name())?;
        file.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = match read() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        read => read.or_fail("read", root.join(path.to_text().as_ref()))?,
    };
    Ok((bytes.len() as u64 <= MAX_TEXT_BYTES && content_id(&bytes).as_ref() == Some(content)).then_some(bytes))
}

/// Reads the contents of the three sides of one path.
pub(super) struct ReadContents<'o> {
    overlay: &'o Overlay<'o>,
    path: &'o WorkspacePath,
    reader: &'o ObjectReader,
}

impl ContentSource for ReadContents<'_> {
    fn stored(&self, content: &ContentId) -> Result<Option<Vec<u8>>> {
        let store = self.overlay.store;
        if store.content_size(self.reader, content)? > MAX_TEXT_BYTES {
            return Ok(None);
        }
        store.content(self.reader, content).map(Some)
    }

    fn present(&self, content: &ContentId) -> Result<Option<Vec<u8>>> {
        if let Some(merged) = self.overlay.contents.get(content) {
            return Ok(Some(merged.clone()));
        }
        if self.overlay.changed.contains_key(self.path) {
            return self.stored(content);
        }
        read_disk(self.overlay.root, self.path, content)
    }
}
