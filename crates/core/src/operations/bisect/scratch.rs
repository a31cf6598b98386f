//! A directory that holds one state of the files after another. Only differences are written, so that the results of a
//! build stay usable.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Read},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{Candidate, Links};
use crate::{
    disk::{Dir, FileType, set_mode},
    error::{Error, Result, While},
    model::{Mode, Scope, Side, Stamp, WorkspacePath},
    operations::diff::{Tree, compare},
    store::{ObjectReader, Store},
    workspace::Workspace,
};

/// A directory outside the workspace that holds the files of one state at a time.
///
/// Files that a command creates in it stay. Files of the state that a command changes are written again with the next
/// state.
pub struct Scratch<'w> {
    workspace: &'w Workspace,
    store: Store,
    reader: ObjectReader,
    directory: PathBuf,
    links: Vec<WorkspacePath>,
    written: HashMap<WorkspacePath, Written>,
}

/// A path that was written, and how it was right afterwards.
struct Written {
    side: Side,
    stamp: Stamp,
}

impl<'w> Scratch<'w> {
    /// Uses an empty directory outside the workspace.
    pub fn new(workspace: &'w Workspace, directory: &Path, links: &Links) -> Result<Self> {
        let directory = crate::disk::private::canonical(directory).or_fail("find", directory)?;
        let root = workspace.root();
        if directory.starts_with(root) {
            return Err(Error::NotElsewhere { path: directory, part: "workspace", root: root.to_owned() });
        }
        let store = workspace.existing_store()?;
        let links = workspace.linked_directories(links)?;
        Ok(Self { workspace, reader: store.reader(), store, directory, links, written: HashMap::new() })
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the files those of a state.
    pub fn write(&mut self, candidate: Candidate) -> Result<()> {
        let wanted = self.files_of(candidate)?;
        let mut gone: Vec<WorkspacePath> =
            self.written.keys().filter(|path| !wanted.contains_key(*path)).cloned().collect();
        // A directory comes after everything in it.
        gone.sort_by(|one, other| other.cmp(one));
        for path in gone {
            self.remove(&path).or_fail("remove", self.full(&path))?;
            self.written.remove(&path);
        }
        for (path, side) in wanted {
            self.put(&path, side, candidate)?;
        }
        for path in &self.links {
            self.link(path).or_fail("create", self.full(path))?;
        }
        Ok(())
    }

    fn full(&self, path: &WorkspacePath) -> PathBuf {
        self.directory.join(path.to_text().as_ref())
    }

    /// Returns every file, symlink and empty directory of a state.
    fn files_of(&self, candidate: Candidate) -> Result<BTreeMap<WorkspacePath, Side>> {
        let store = Some(&self.store);
        let found = match candidate {
            Candidate::Checkpoint(id) => compare(store, Tree::Empty, Tree::Stored(self.store.snapshot(&id)?))?,
            Candidate::OnDisk => {
                let present = self.workspace.scan_for_reading(store, &Scope::Whole)?;
                let defaults = present.id_defaults().unwrap_or_default();
                compare(store, Tree::Empty, Tree::Scanned(&present.root, defaults))?
            }
        };
        Ok(found.changes.into_iter().filter_map(|change| Some((change.path, change.new?))).collect())
    }

    /// Removes a path that the state before had, and the directories that became empty.
    fn remove(&self, path: &WorkspacePath) -> io::Result<()> {
        let root = || Dir::open_resolved(&self.directory);
        // A command may have removed it, or put something else in its place.
        let Ok(parent) = root()?.open_below(path.parent_bytes()) else { return Ok(()) };
        match parent.try_stamp_at(path.name())?.map(|stamp| FileType::of(&stamp)) {
            None => {}
            Some(FileType::Directory) => drop(parent.remove_dir(path.name())),
            Some(_) => parent.remove_own_file(path.name())?,
        }
        for above in path.ancestors().filter(|above| above != path && !above.is_root()) {
            let Ok(parent) = root()?.open_below(above.parent_bytes()) else { break };
            // It still has files, of the state or of a command.
            if parent.remove_dir(above.name()).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn put(&mut self, path: &WorkspacePath, side: Side, candidate: Candidate) -> Result<()> {
        let full = self.full(path);
        let parent = self.parent_of(path).or_fail("create", &full)?;
        let there = parent.try_stamp_at(path.name()).or_fail("read", &full)?;
        if let Some(there) = &there {
            let is_directory = matches!(side, Side::Directory { .. }) && FileType::of(there) == FileType::Directory;
            let is_as_written = |known: &Written| known.side == side && known.stamp == *there;
            if is_directory || self.written.get(path).is_some_and(is_as_written) {
                return Ok(());
            }
            remove_tree(&parent, path.name(), there).or_fail("remove", &full)?;
        }
        self.create(&parent, path, side, candidate)?;
        let stamp = parent.stamp_at(path.name()).or_fail("read", &full)?;
        self.written.insert(path.clone(), Written { side, stamp });
        Ok(())
    }

    /// Opens the directory of a path. Creates it, in place of what a command may have put there.
    fn parent_of(&self, path: &WorkspacePath) -> io::Result<Dir> {
        let root = Dir::open_resolved(&self.directory)?;
        if let Ok(found) = Dir::open_resolved(&self.directory)?.open_below(path.parent_bytes()) {
            return Ok(found);
        }
        let mut directory = root;
        let parts: Vec<_> = path.parts().collect();
        for name in &parts[..parts.len().saturating_sub(1)] {
            let there = directory.try_stamp_at(name)?;
            if let Some(stamp) = there.as_ref().filter(|stamp| FileType::of(stamp) != FileType::Directory) {
                remove_tree(&directory, name, stamp)?;
            }
            if there.is_none_or(|stamp| FileType::of(&stamp) != FileType::Directory) {
                directory.make_dir(name, Mode(0o755))?;
            }
            directory = directory.open_dir(name)?;
        }
        Ok(directory)
    }

    fn create(&self, at: &Dir, path: &WorkspacePath, side: Side, candidate: Candidate) -> Result<()> {
        let full = self.full(path);
        let name = path.name();
        match side {
            Side::Directory { mode } => at.make_dir(name, mode).or_fail("create", &full),
            Side::Symlink { target } => {
                let target = match candidate {
                    Candidate::Checkpoint(_) => self.store.content(&self.reader, &target)?,
                    Candidate::OnDisk => self.on_disk(path, |parent| parent.read_link(name))?,
                };
                at.create_symlink(&target, name).or_fail("create", &full)
            }
            Side::File { content, mode } => {
                let mut file = at.create_file(name).or_fail("create", &full)?;
                let mut write = |piece: &[u8]| at.write_own(&mut file, piece);
                match candidate {
                    Candidate::Checkpoint(_) => {
                        self.store.copy_content(&content, &mut write)?.or_fail("write", &full)?
                    }
                    Candidate::OnDisk => {
                        let source = self.on_disk(path, |parent| parent.open_file(name))?;
                        copy(source, &mut write).or_fail("write", &full)?;
                    }
                }
                set_mode(&file, mode).or_fail("set the mode of", &full)
            }
        }
    }

    /// Reads something in the workspace, never through a symlink.
    fn on_disk<T>(&self, path: &WorkspacePath, read: impl FnOnce(&Dir) -> io::Result<T>) -> Result<T> {
        let found = Dir::open_parent(self.workspace.root(), path).and_then(|parent| read(&parent));
        found.or_fail("read", self.workspace.root().join(path.to_text().as_ref()))
    }

    /// Links to a directory of the workspace, if the directory around it exists and nothing is in the way.
    fn link(&self, path: &WorkspacePath) -> io::Result<()> {
        let Ok(parent) = Dir::open_resolved(&self.directory)?.open_below(path.parent_bytes()) else { return Ok(()) };
        if parent.try_stamp_at(path.name())?.is_some() {
            return Ok(());
        }
        let target = [self.workspace.root().as_os_str().as_bytes(), path.as_bytes()].join(&b'/');
        parent.create_symlink(&target, path.name())
    }
}

fn copy(mut source: impl Read, write: &mut dyn FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        match source.read(&mut piece)? {
            0 => return Ok(()),
            count => write(&piece[..count])?,
        }
    }
}

/// Removes a name of the scratch directory, with everything below it. Symlinks are not followed.
fn remove_tree(at: &Dir, name: &[u8], stamp: &Stamp) -> io::Result<()> {
    if FileType::of(stamp) != FileType::Directory {
        return at.remove_own_file(name);
    }
    let directory = at.open_dir(name)?;
    for listed in directory.list()? {
        let stamp = directory.stamp_at(&listed.name)?;
        remove_tree(&directory, &listed.name, &stamp)?;
    }
    at.remove_dir(name)
}
