//! Writes the files of the fork point into the directory of a fork.

use std::{io, path::PathBuf};

use super::{LeftOut, begun::Begun, point::Point};
use crate::{
    disk::{self, Dir, private, set_mode},
    error::{Result, While},
    model::{ContentId, Directory, FileEntry, Mode, Node, Skipped, WorkspacePath},
    store::{ForkLink, ObjectReader, Snapshot, Store, StoredEntry, StoredNode},
    threads,
    workspace::Workspace,
};

/// The outcome of writing the files.
#[derive(Default)]
pub(super) struct ForkedFiles {
    /// The number of files and symlinks of the fork point.
    pub(super) files: u64,
    /// The links to skipped directories of the workspace.
    pub(super) links: Vec<ForkLink>,
    /// Skipped paths that could not be copied.
    pub(super) not_copied: Vec<Skipped>,
}

/// The files of a fork while they are written.
pub(super) struct Files<'a> {
    pub(super) original: &'a Workspace,
    begun: &'a Begun,
    point: &'a Point,
    store: Store,
    reader: ObjectReader,
    pub(super) left_out: LeftOut,
    /// The links of the workspace itself, if it is a fork.
    pub(super) inherited: Vec<ForkLink>,
    /// Directories of the program, by device and inode.
    pub(super) own: Vec<(u64, u64)>,
    pub(super) written: ForkedFiles,
}

/// A directory of the workspace, opened, and as the scan read it.
pub(super) struct OriginDirectory<'a> {
    pub(super) at: Dir,
    pub(super) scanned: &'a Directory,
}

impl<'a> Files<'a> {
    pub(super) fn of(original: &'a Workspace, begun: &'a Begun, point: &'a Point, left_out: LeftOut) -> Result<Self> {
        let store = super::point::reopened(&begun.writer)?;
        let inherited = original.store()?.map(|store| store.fork_links()).transpose()?.unwrap_or_default();
        Ok(Self {
            original,
            begun,
            point,
            reader: store.reader(),
            store,
            left_out,
            inherited,
            own: original.own_directories(),
            written: ForkedFiles::default(),
        })
    }

    /// Writes everything.
    pub(super) fn write(mut self) -> Result<ForkedFiles> {
        let root = self.original.root();
        let at = Dir::open_resolved(root).or_fail("open", root)?;
        let origin = OriginDirectory { at, scanned: &self.point.scan.root };
        let (begun, snapshot) = (self.begun, self.point.snapshot);
        self.directory(&begun.target, Some(origin), &WorkspacePath::root(), &snapshot)?;
        Ok(self.written)
    }

    /// Returns the path in the fork, for messages.
    pub(super) fn full(&self, path: &WorkspacePath) -> PathBuf {
        self.begun.workspace.root().join(path.to_text().as_ref())
    }

    fn directory(
        &mut self,
        to: &Dir,
        origin: Option<OriginDirectory<'a>>,
        path: &WorkspacePath,
        snapshot: &Snapshot,
    ) -> Result<()> {
        let entries = self.store.list(&self.reader, snapshot)?;
        for entry in &entries {
            self.entry(to, origin.as_ref(), &path.join(&entry.name), entry)?;
        }
        match origin {
            Some(origin) => self.left_out_in(to, &origin, path),
            None => Ok(()),
        }
    }

    fn entry(
        &mut self,
        to: &Dir,
        origin: Option<&OriginDirectory<'a>>,
        path: &WorkspacePath,
        entry: &StoredEntry,
    ) -> Result<()> {
        self.original.refuse_if_stopped()?;
        let full = self.full(path);
        match entry.node {
            StoredNode::Directory { snapshot, mode } => {
                to.make_dir(&entry.name, Mode(0o700)).or_fail("create", &full)?;
                let below = to.open_dir(&entry.name).or_fail("open", &full)?;
                let origin = origin.and_then(|origin| origin.below(&entry.name));
                threads::with_room(usize::from(snapshot.depth), || self.directory(&below, origin, path, &snapshot))?;
                below.set_own_mode(mode).or_fail("set the mode of", &full)?;
            }
            StoredNode::Symlink { target } => {
                let target = self.store.content(&self.reader, &target)?;
                to.create_symlink(&target, &entry.name).or_fail("create", &full)?;
                self.written.files += 1;
            }
            StoredNode::File { content, mode } => {
                let file = to.create_file(&entry.name).or_fail("create", &full)?;
                let is_shared = match origin {
                    Some(origin) => self.share(origin, &entry.name, &content, &file).or_fail("write", &full)?,
                    None => false,
                };
                if !is_shared {
                    self.write_content(to, &content, file.try_clone().or_fail("write", &full)?, &full)?;
                }
                set_mode(&file, mode).or_fail("set the mode of", &full)?;
                self.written.files += 1;
            }
        }
        Ok(())
    }

    /// Gives the file the bytes of the same file in the workspace. Returns `false`, with an empty file, if that file
    /// has other bytes or may have changed since the scan.
    fn share(
        &self,
        origin: &OriginDirectory<'_>,
        name: &[u8],
        content: &ContentId,
        to: &std::fs::File,
    ) -> io::Result<bool> {
        let known: FileEntry = match origin.scanned.get(name) {
            Some(Node::File(file)) if file.content == *content && self.point.scan.is_settled(&file.stamp) => *file,
            _ => return Ok(false),
        };
        let Ok(from) = origin.at.open_file(name) else { return Ok(false) };
        let length = disk::clone_or_copy(&from, to)?;
        if length == known.stamp.size && origin.at.try_stamp_at(name)? == Some(known.stamp) {
            return Ok(true);
        }
        to.set_len(0)?;
        Ok(false)
    }

    fn write_content(
        &self,
        to: &Dir,
        content: &ContentId,
        mut file: std::fs::File,
        full: &std::path::Path,
    ) -> Result<()> {
        io::Seek::rewind(&mut file).or_fail("write", full)?;
        let mut length = 0;
        let mut write = |piece: &[u8]| -> io::Result<()> {
            length += piece.len() as u64;
            to.write_own(&mut file, piece)
        };
        self.store.copy_content(content, &mut write)?.or_fail("write", full)?;
        private::check_length(&file, length).or_fail("write", full)
    }
}

impl<'a> OriginDirectory<'a> {
    /// Returns the directory of this name. Returns `None` if the scan found none, or if it can't be opened any more.
    pub(super) fn below(&self, name: &[u8]) -> Option<Self> {
        match self.scanned.get(name) {
            Some(Node::Directory(scanned)) => Some(Self { at: self.at.open_dir(name).ok()?, scanned }),
            _ => None,
        }
    }
}
