//! A directory that holds one state of the files after another. Only differences are written, so that the results of a
//! build stay usable.

use std::{
    collections::HashMap,
    io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{Candidate, Links, source::Source};
use crate::{
    disk::{Dir, FileType, private, set_mode},
    error::{Error, Result, While},
    model::{Mode, Side, Stamp, WorkspacePath},
    workspace::Workspace,
};

/// A directory outside the workspace that holds the files of one state at a time.
///
/// Files that a command creates in it stay. Files of the state that a command changes are written again with the next
/// state.
#[derive(Debug)]
pub struct Scratch {
    directory: PathBuf,
    links: Vec<WorkspacePath>,
    written: HashMap<WorkspacePath, ScratchEntry>,
}

/// A path that was written, and how it was right afterwards.
#[derive(Debug)]
struct ScratchEntry {
    side: Side,
    stamp: Stamp,
}

impl Scratch {
    /// Uses an empty directory outside the workspace.
    pub fn new(workspace: &Workspace, directory: &Path, links: &Links) -> Result<Self> {
        let directory = private::canonical(directory).or_fail("find", directory)?;
        let root = workspace.root();
        if directory.starts_with(root) {
            return Err(Error::NotElsewhere { path: directory, part: "workspace", root: root.to_owned() });
        }
        Ok(Self { directory, links: workspace.linked_directories(links)?, written: HashMap::new() })
    }

    /// Returns the directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Makes the files those of a state.
    pub fn write(&mut self, workspace: &Workspace, candidate: Candidate) -> Result<()> {
        let source = Source::new(workspace, candidate)?;
        let wanted = source.paths()?;
        let mut gone: Vec<WorkspacePath> =
            self.written.keys().filter(|path| !wanted.contains_key(*path)).cloned().collect();
        // A directory comes after everything in it.
        gone.sort_by(|one, other| other.cmp(one));
        for path in gone {
            self.remove(&path).or_fail("remove", self.full(&path))?;
            self.written.remove(&path);
        }
        for (path, side) in wanted {
            self.put(&path, side, &source)?;
        }
        for path in &self.links {
            self.link(workspace, path).or_fail("create", self.full(path))?;
        }
        Ok(())
    }

    fn full(&self, path: &WorkspacePath) -> PathBuf {
        self.directory.join(path.to_text().as_ref())
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

    fn put(&mut self, path: &WorkspacePath, side: Side, source: &Source<'_>) -> Result<()> {
        let full = self.full(path);
        let parent = self.parent_of(path).or_fail("create", &full)?;
        let there = parent.try_stamp_at(path.name()).or_fail("read", &full)?;
        if let Some(there) = &there {
            let is_directory = matches!(side, Side::Directory { .. }) && FileType::of(there) == FileType::Directory;
            let is_as_written = |known: &ScratchEntry| known.side == side && known.stamp == *there;
            if is_directory || self.written.get(path).is_some_and(is_as_written) {
                return Ok(());
            }
            remove_tree(&parent, path.name(), there).or_fail("remove", &full)?;
        }
        self.create(&parent, path, side, source)?;
        let stamp = parent.stamp_at(path.name()).or_fail("read", &full)?;
        self.written.insert(path.clone(), ScratchEntry { side, stamp });
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

    fn create(&self, at: &Dir, path: &WorkspacePath, side: Side, source: &Source<'_>) -> Result<()> {
        let full = self.full(path);
        match side {
            Side::Directory { mode } => at.make_dir(path.name(), mode).or_fail("create", &full),
            Side::Symlink { target } => {
                at.create_symlink(&source.target(path, &target)?, path.name()).or_fail("create", &full)
            }
            Side::File { content, mode } => {
                let mut file = at.create_file(path.name()).or_fail("create", &full)?;
                source.copy(path, &content, &mut |piece| at.write_own(&mut file, piece))?.or_fail("write", &full)?;
                set_mode(&file, mode).or_fail("set the mode of", &full)
            }
        }
    }

    /// Links to a directory of the workspace, if the directory around it exists and nothing is in the way.
    fn link(&self, workspace: &Workspace, path: &WorkspacePath) -> io::Result<()> {
        let Ok(parent) = Dir::open_resolved(&self.directory)?.open_below(path.parent_bytes()) else { return Ok(()) };
        if parent.try_stamp_at(path.name())?.is_some() {
            return Ok(());
        }
        let target = [workspace.root().as_os_str().as_bytes(), path.as_bytes()].join(&b'/');
        parent.create_symlink(&target, path.name())
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
