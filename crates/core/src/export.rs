//! Writing a checkpoint's files into a directory elsewhere.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{
    disk::{self, Dir, private, set_mode},
    error::{Error, Result, While},
    model::{CheckpointId, Mode, WorkspacePath},
    store::{ObjectReader, Snapshot, Store, StoredNode},
    workspace::{Workspace, normalize},
};

impl Workspace {
    /// Writes a checkpoint's files into a new or empty directory; says how many, links included.
    pub fn export(&self, id: &CheckpointId, directory: &Path) -> Result<u64> {
        let store = self.existing_store()?;
        let snapshot = store.snapshot(id)?;
        self.refuse_own_places(directory)?;
        if private::exists(directory) {
            let is_empty =
                disk::is_directory(directory) && private::names(directory).or_fail("read", directory)?.is_empty();
            if !is_empty {
                return Err(Error::NotEmpty { path: directory.to_owned() });
            }
        } else {
            disk::make_directories(directory).or_fail("create", directory)?;
        }
        let target = Dir::open(directory).or_fail("open", directory)?;
        let mut export = Export { store: &store, reader: store.reader(), directory, files: 0 };
        export.directory(&target, &WorkspacePath::root(), &snapshot)?;
        disk::sync_filesystem(&target).or_fail("sync", directory)?;
        Ok(export.files)
    }

    /// In the workspace the files would be taken for new ones of its own, in the store for nothing at all.
    fn refuse_own_places(&self, directory: &Path) -> Result<()> {
        // As it is spelled, and as far as it is there without its links.
        let there = directory.ancestors().find_map(|ancestor| private::canonical(ancestor).ok());
        let places: Vec<PathBuf> = there.into_iter().chain(normalize(directory)).collect();
        for (part, root) in [("workspace", self.root()), ("store", self.store_directory())] {
            let own = private::canonical(root).or_fail("find", root)?;
            if places.iter().any(|place| place.starts_with(&own)) {
                return Err(Error::NotElsewhere { path: directory.to_owned(), part, root: root.to_owned() });
            }
        }
        Ok(())
    }
}

struct Export<'a> {
    store: &'a Store,
    reader: ObjectReader,
    directory: &'a Path,
    files: u64,
}

impl Export<'_> {
    fn directory(&mut self, at: &Dir, path: &WorkspacePath, snapshot: &Snapshot) -> Result<()> {
        for entry in self.store.list(&self.reader, snapshot)? {
            let path = path.join(&entry.name);
            let full = self.directory.join(path.to_text().as_ref());
            match entry.node {
                StoredNode::Directory { snapshot, mode } => {
                    at.make_dir(&entry.name, Mode(0o700)).or_fail("create", &full)?;
                    let below = at.open_dir(&entry.name).or_fail("open", &full)?;
                    self.directory(&below, &path, &snapshot)?;
                    below.set_own_mode(mode).or_fail("set the mode of", &full)?;
                }
                StoredNode::Symlink { target } => {
                    let target = self.store.content(&self.reader, &target)?;
                    at.create_symlink(&target, &entry.name).or_fail("create", &full)?;
                    self.files += 1;
                }
                StoredNode::File { content, mode } => {
                    let mut file = at.create_file(&entry.name).or_fail("create", &full)?;
                    let mut write = |piece: &[u8]| -> io::Result<()> { at.write_own(&mut file, piece) };
                    self.store.copy_content(&content, &mut write)?.or_fail("write", &full)?;
                    set_mode(&file, mode).or_fail("set the mode of", &full)?;
                    self.files += 1;
                }
            }
        }
        Ok(())
    }
}
