//! Writes a checkpoint's files into a directory elsewhere.

use std::{io, path::Path};

use crate::{
    disk::{self, Dir, FileType, private, set_mode},
    error::{Result, While},
    model::{CheckpointId, ContentId, Mode, Scope, Stamp, WorkspacePath},
    operations::new_directory::{free_name, not_empty},
    spans::{Outcome, operation, write_span},
    store::{ObjectReader, Snapshot, Store, StoredNode},
    threads,
    workspace::Workspace,
};

/// The name of a file that marks an unfinished export. It is removed as the last step. If the checkpoint holds a file
/// of this name, a number is appended.
const MARK: &str = ".backtrail-export";

impl Workspace {
    /// Writes a checkpoint's files into a new or empty directory. Returns the number of files, symlinks included.
    ///
    /// An interrupted export is finished by running it again.
    pub fn export(&self, id: &CheckpointId, directory: &Path) -> Result<u64> {
        let span = write_span!(self.store_directory(), "export", checkpoint, files);
        let files = operation(&span, || self.export_now(id, directory))?;
        Outcome::on(&span).id("checkpoint", Some(id)).number("files", files);
        Ok(files)
    }

    fn export_now(&self, id: &CheckpointId, directory: &Path) -> Result<u64> {
        let store = self.existing_store()?;
        let snapshot = store.snapshot(id)?;
        self.refuse_own_places(directory)?;
        if !private::exists(directory) {
            disk::make_directories(directory).or_fail("create", directory)?;
        }
        if !disk::is_directory(directory) {
            return Err(not_empty(directory));
        }
        let target = Dir::open(directory).or_fail("open", directory)?;
        let is_empty = private::names(directory).or_fail("read", directory)?.is_empty();
        let scope = store.timeline()?.require(id)?.scope();
        let mut export = Export { store: &store, reader: store.reader(), scope, directory, files: 0 };
        let held = store.list(&export.reader, &snapshot)?;
        let mark = free_name(MARK, |name| held.iter().any(|entry| entry.name == name));
        if !begin(&target, &mark, id, is_empty).or_fail("write", directory)? {
            return Err(not_empty(directory));
        }
        export.directory(&target, &WorkspacePath::root(), &snapshot)?;
        disk::sync_filesystem(&target).or_fail("sync", directory)?;
        target.remove_own_file(&mark).or_fail("write", directory)?;
        target.sync().or_fail("sync", directory)?;
        Ok(export.files)
    }
}

/// Writes the mark, or recognises the mark of an interrupted export of the same checkpoint. Returns `false` if
/// something else is there.
fn begin(target: &Dir, mark: &[u8], id: &CheckpointId, is_empty: bool) -> io::Result<bool> {
    let wanted = format!("{id}\n").into_bytes();
    if !is_empty {
        let Some(stamp) = target.try_stamp_at(mark)? else { return Ok(false) };
        if FileType::of(&stamp) != FileType::File || !is_start_of(target, mark, &wanted)? {
            return Ok(false);
        }
        target.remove_own_file(mark)?;
    }
    let mut file = target.create_own_file(mark)?;
    target.write_own(&mut file, &wanted)?;
    Ok(true)
}

/// Returns whether a file holds nothing but a prefix of these bytes. That is so if writing them was interrupted.
fn is_start_of(directory: &Dir, name: &[u8], wanted: &[u8]) -> io::Result<bool> {
    let mut present = Vec::new();
    let file = directory.open_file(name)?;
    io::Read::read_to_end(&mut io::Read::take(file, wanted.len() as u64 + 1), &mut present)?;
    Ok(wanted.starts_with(&present))
}

struct Export<'a> {
    store: &'a Store,
    reader: ObjectReader,
    scope: Scope,
    directory: &'a Path,
    files: u64,
}

impl Export<'_> {
    fn directory(&mut self, at: &Dir, path: &WorkspacePath, snapshot: &Snapshot) -> Result<()> {
        for entry in self.store.list(&self.reader, snapshot)? {
            let path = path.join(&entry.name);
            // Outside of its scope, a checkpoint of some paths repeats the one before it.
            if !self.scope.touches(&path) {
                continue;
            }
            let full = self.directory.join(path.to_text().as_ref());
            let there = at.try_stamp_at(&entry.name).or_fail("read", &full)?;
            match entry.node {
                StoredNode::Directory { snapshot, mode } => {
                    if there.is_none() {
                        at.make_dir(&entry.name, Mode(0o700)).or_fail("create", &full)?;
                    }
                    let below = at.open_dir(&entry.name).or_fail("open", &full)?;
                    if there.is_some() {
                        below.set_own_mode(Mode(0o700)).or_fail("set the permissions of", &full)?;
                    }
                    threads::with_room(usize::from(snapshot.depth), || self.directory(&below, &path, &snapshot))?;
                    below.set_own_mode(mode).or_fail("set the permissions of", &full)?;
                }
                StoredNode::Symlink { target } => {
                    let target = self.store.content(&self.reader, &target)?;
                    if there.is_none() {
                        at.create_symlink(&target, &entry.name).or_fail("create", &full)?;
                    } else if at.read_link(&entry.name).ok().as_ref() != Some(&target) {
                        return Err(not_empty(&full));
                    }
                    self.files += 1;
                }
                StoredNode::File { content, mode } => {
                    if let Some(there) = there {
                        self.take_away_part(at, &entry.name, &there, &content, &full)?;
                    }
                    self.file(at, &entry.name, &content, mode, &full)?;
                    self.files += 1;
                }
            }
        }
        Ok(())
    }

    fn file(&self, at: &Dir, name: &[u8], content: &ContentId, mode: Mode, full: &Path) -> Result<()> {
        let mut file = at.create_file(name).or_fail("create", full)?;
        let mut length = 0;
        let mut write = |piece: &[u8]| -> io::Result<()> {
            length += piece.len() as u64;
            at.write_own(&mut file, piece)
        };
        let copied = self.store.copy_content(content, &mut write).and_then(|copied| copied.or_fail("write", full));
        let copied = copied.and_then(|()| private::check_length(&file, length).or_fail("write", full));
        if copied.is_err() {
            // A partial file that can't be removed now is recognised when the export is run again.
            drop(at.remove_own_file(name));
        }
        copied?;
        set_mode(&file, mode).or_fail("set the permissions of", full)
    }

    /// Removes the part of a file that an interrupted export wrote. Returns an error if the file holds anything else:
    /// it belongs to the user.
    fn take_away_part(&self, at: &Dir, name: &[u8], there: &Stamp, content: &ContentId, full: &Path) -> Result<()> {
        let wanted = self.store.content(&self.reader, content)?;
        let is_part = FileType::of(there) == FileType::File && is_start_of(at, name, &wanted).or_fail("read", full)?;
        if !is_part {
            return Err(not_empty(full));
        }
        at.remove_own_file(name).or_fail("write", full)
    }
}
