//! Paths of the workspace that checkpoints skip: linked or copied into a fork.

use std::{io, path::Path};

use super::{
    LeftOut,
    files::{Files, OriginDirectory},
};
use crate::{
    disk::{self, Dir, FileType, set_mode},
    error::{Result, While},
    model::{Directory, Entry, Mode, Node, Reason, Skipped, Stamp, WorkspacePath, is_shortage},
    scan::MAX_DEPTH,
    store::{ExactText, ForkLink},
    threads,
};

impl<'a> Files<'a> {
    /// Links or copies the skipped paths of one directory. Directories that hold nothing but skipped paths are made as
    /// well, if something is linked or copied into them.
    pub(super) fn left_out_in(&mut self, to: &Dir, origin: &OriginDirectory<'a>, path: &WorkspacePath) -> Result<()> {
        for entry in origin.scanned.entries() {
            let here = path.join(&entry.name);
            let full = self.full(&here);
            if !self.is_wanted(entry, &here) || to.try_stamp_at(&entry.name).or_fail("read", &full)?.is_some() {
                continue;
            }
            match &entry.node {
                Node::Directory(scanned) => {
                    let Some(below) = origin.below(&entry.name) else { continue };
                    to.make_dir(&entry.name, Mode(0o700)).or_fail("create", &full)?;
                    let made = to.open_dir(&entry.name).or_fail("open", &full)?;
                    threads::with_room(here.parts().count(), || self.left_out_in(&made, &below, &here))?;
                    made.set_own_mode(scanned.mode()).or_fail("set the mode of", &full)?;
                }
                _ => self.left_out_at(to, origin, &entry.name, here)?,
            }
        }
        Ok(())
    }

    fn is_wanted(&self, entry: &Entry, path: &WorkspacePath) -> bool {
        match &entry.node {
            Node::Skipped(Reason::Ignored | Reason::Rebuildable | Reason::TooLarge, _) => true,
            Node::Skipped(Reason::Own, _) => self.inherited.iter().any(|link| link.path == *path),
            Node::Directory(directory) => !directory.is_captured() && self.has_wanted_below(directory, path),
            _ => false,
        }
    }

    fn has_wanted_below(&self, directory: &Directory, path: &WorkspacePath) -> bool {
        directory.entries().iter().any(|entry| self.is_wanted(entry, &path.join(&entry.name)))
    }

    fn left_out_at(&mut self, to: &Dir, origin: &OriginDirectory<'a>, name: &[u8], path: WorkspacePath) -> Result<()> {
        let full = self.full(&path);
        let inherited = self.inherited.iter().find(|link| link.path == path).cloned();
        if let Some(target) = inherited.and_then(|link| link.target.to_path()) {
            return self.inherit(to, &target, name, path);
        }
        let source = self.original.root().join(path.to_text().as_ref());
        let Some(stamp) = origin.at.try_stamp_at(name).or_fail("read", &source)? else { return Ok(()) };
        match self.left_out {
            LeftOut::Linked if FileType::of(&stamp) == FileType::Directory => self.link(to, &source, name, path),
            LeftOut::Linked => Ok(()),
            LeftOut::Copied => {
                let copied = self.copy(&origin.at, to, name, &path, &stamp);
                copied.or_fail("copy", full)
            }
        }
    }

    /// Passes on a link of the workspace, which is itself a fork. A copy is made of the directory that it leads to.
    fn inherit(&mut self, to: &Dir, target: &Path, name: &[u8], path: WorkspacePath) -> Result<()> {
        let (Some(above), Some(last)) = (target.parent(), target.file_name()) else { return Ok(()) };
        let last = last.as_encoded_bytes();
        let above = match (self.left_out, Dir::open(above)) {
            (LeftOut::Copied, Ok(above)) => above,
            _ => return self.link(to, target, name, path),
        };
        let full = self.full(&path);
        match above.try_stamp_at(last).or_fail("read", target)? {
            Some(stamp) if FileType::of(&stamp) == FileType::Directory => {
                let from = above.open_dir(last).or_fail("open", target)?;
                self.copy_directory(&from, to, name, &path, &stamp).or_fail("copy", full)
            }
            _ => Ok(()),
        }
    }

    fn link(&mut self, to: &Dir, target: &Path, name: &[u8], path: WorkspacePath) -> Result<()> {
        let target = ExactText::of_path(target);
        let bytes = target.to_bytes().unwrap_or_default();
        to.create_symlink(&bytes, name).or_fail("create", self.full(&path))?;
        self.written.links.push(ForkLink { path, target });
        Ok(())
    }

    /// Copies a file, symlink or directory. What can't be read is noted, and the rest is copied.
    fn copy(&mut self, from: &Dir, to: &Dir, name: &[u8], path: &WorkspacePath, stamp: &Stamp) -> io::Result<()> {
        match FileType::of(stamp) {
            FileType::Special => self.not_copied(path, Reason::Special),
            FileType::Symlink => to.create_symlink(&from.read_link(name)?, name)?,
            FileType::File => match from.open_file(name) {
                Err(error) if !is_shortage(&error) => self.not_copied(path, Reason::Unreadable),
                opened => {
                    let made = to.create_file(name)?;
                    disk::clone_or_copy(&opened?, &made)?;
                    set_mode(&made, Mode::from_raw(stamp.mode))?;
                }
            },
            FileType::Directory if self.own.contains(&(stamp.device, stamp.inode)) => {}
            FileType::Directory => match from.open_dir(name) {
                Err(error) if !is_shortage(&error) => self.not_copied(path, Reason::Unreadable),
                opened => self.copy_directory(&opened?, to, name, path, stamp)?,
            },
        }
        Ok(())
    }

    fn copy_directory(
        &mut self,
        from: &Dir,
        to: &Dir,
        name: &[u8],
        path: &WorkspacePath,
        stamp: &Stamp,
    ) -> io::Result<()> {
        let depth = path.parts().count();
        if depth > MAX_DEPTH {
            self.not_copied(path, Reason::Deep);
            return Ok(());
        }
        to.make_dir(name, Mode(0o700))?;
        let made = to.open_dir(name)?;
        for listed in from.list()? {
            if let Some(stamp) = from.try_stamp_at(&listed.name)? {
                let below = path.join(&listed.name);
                threads::with_room(depth, || self.copy(from, &made, &listed.name, &below, &stamp))?;
            }
        }
        made.set_own_mode(Mode::from_raw(stamp.mode))
    }

    fn not_copied(&mut self, path: &WorkspacePath, reason: Reason) {
        self.written.not_copied.push(Skipped { path: path.clone(), reason });
    }
}
