//! The store's own files. Only their owner can read them, whatever the umask, and they are durable if the caller asks
//! for it.

use std::{
    fs::{File, OpenOptions, Permissions},
    io::{self, Seek, SeekFrom, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::{
    crash_points,
    ownership::{self, Giving},
    read_counts,
};

/// The prefix of temporary file names. While the lock is held, a file with this prefix was left behind by a dead
/// process.
pub(crate) const TEMPORARY_PREFIX: &str = ".backtrail-tmp-";

/// Whether a write must be durable before the next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The data reaches the disk before the call returns.
    Synced,
    /// The data can be rebuilt. The kernel writes it to disk at some later time.
    Unsynced,
}

/// Creates a directory of the store with all its parents. If it exists and this user owns it, missing owner permissions
/// are added.
pub(crate) fn make_directories(path: &Path) -> io::Result<()> {
    match rustix::fs::stat(path) {
        Ok(found) if ownership::is_directory(&found) => ownership::open_up(path, &found, 0o700).map(drop),
        _ => ownership::make_directories(path, 0o700, Giving::ToNeighbours),
    }
}

/// Creates the directory of a store with all its parents. If root creates it, it gets the owner of the workspace: files
/// that only root may read must not become readable to another user because the store is in that user's home directory.
pub(crate) fn make_store(path: &Path, workspace: &Path) -> io::Result<()> {
    if exists(path) {
        return make_directories(path);
    }
    path.parent().map_or(Ok(()), make_directories)?;
    crash_points::pass("make store directory")?;
    match ownership::make_directory(rustix::fs::CWD, path, 0o700, Giving::ToOwnerOf(workspace)) {
        // Another process created it first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => make_directories(path),
        made => made,
    }
}

/// Adds missing owner permissions to everything in a store that this user owns. Returns whether anything had to be
/// repaired. Earlier versions of the program created files with the permissions that the umask left.
pub(crate) fn open_up_store(root: &Path) -> io::Result<bool> {
    open_up_below(root, 0o600)
}

fn open_up_below(directory: &Path, file_bits: u32) -> io::Result<bool> {
    let found = match rustix::fs::lstat(directory) {
        Err(rustix::io::Errno::NOENT) => return Ok(false),
        found => found?,
    };
    // Root was killed before it changed the owner. An empty directory can be removed; it is created again when needed.
    if !ownership::is_ours(&found) && rustix::fs::rmdir(directory).is_ok() {
        return Ok(true);
    }
    let mut was_closed = ownership::open_up(directory, &found, 0o700)?;
    for name in names(directory)? {
        let child = directory.join(&name);
        // Git itself makes object files read-only.
        let file_bits = if name == "objects" { 0o400 } else { file_bits };
        match rustix::fs::lstat(&child) {
            Ok(found) if ownership::is_directory(&found) => was_closed |= open_up_below(&child, file_bits)?,
            // The lock file is always empty, but another process may hold the lock.
            Ok(found) if is_plain(&found) && found.st_size == 0 && !ownership::is_ours(&found) && name != "lock" => {
                was_closed |= rustix::fs::unlink(&child).is_ok();
            }
            Ok(found) if is_plain(&found) => was_closed |= ownership::open_up(&child, &found, file_bits)?,
            Ok(_) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(was_closed)
}

fn is_plain(found: &rustix::fs::Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(found.st_mode) == rustix::fs::FileType::RegularFile
}

/// Creates a file with these permission bits. The umask reduces only those of group and others. Fails if the path
/// exists.
pub(crate) fn create_new_as_neighbours(path: &Path, mode: u32) -> io::Result<File> {
    crash_points::pass("create file")?;
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    settle_in(&file, path.parent())?;
    Ok(file)
}

/// Creates a private file. Fails if the path exists.
fn create_new(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.create_new(true).mode(0o600).open(path)?;
    settle_in(&file, path.parent())?;
    Ok(file)
}

/// Sets up a new file in this directory. The directory's owner is looked up only if this process is root.
pub(super) fn settle_in(file: &File, directory: Option<&Path>) -> io::Result<()> {
    let directory = directory.filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    ownership::settle_file(file, 0o600, || Ok(rustix::fs::stat(directory)?))
}

/// Returns the bytes of a file. Returns `None` if it does not exist.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => {
            read_counts::note(path, bytes.len());
            Ok(Some(bytes))
        }
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the names in a directory. Returns an empty list if it does not exist.
pub(crate) fn names(path: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if is_absence(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    entries.map(|entry| entry.map(|entry| entry.file_name())).collect()
}

/// Returns the names in a directory of this user, even if its permission bits forbid it. The bits are restored
/// afterwards.
pub(crate) fn names_of_closed(path: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    match names(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let found = rustix::fs::lstat(path)?;
            if !ownership::open_up(path, &found, 0o700)? {
                return Err(error);
            }
            let names = names(path);
            crash_points::pass("set mode")?;
            std::fs::set_permissions(path, Permissions::from_mode(found.st_mode & 0o7777))?;
            names
        }
        names => names,
    }
}

/// Returns the directory itself, or the first file in it, that this process may not read. Returns `None` if it may read
/// all of them.
pub(crate) fn refused_in(directory: &Path) -> Option<PathBuf> {
    let is_refused = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
    match names(directory) {
        Err(error) if is_refused(&error) => Some(directory.to_owned()),
        found => found.ok()?.into_iter().map(|name| directory.join(name)).find(|path| {
            let opened = File::open(path);
            opened.is_err_and(|error| is_refused(&error))
        }),
    }
}

/// Returns the size of a file in bytes. Returns `None` if it does not exist.
pub(crate) fn size(path: &Path) -> io::Result<Option<u64>> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether something is at this path.
pub(crate) fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

/// Returns an error if this process could not change names in this directory, nor create it. Changes nothing. Missing
/// permission bits on a directory of this user are not an error: a write adds them.
pub(crate) fn check_writable(directory: &Path) -> io::Result<()> {
    use rustix::{
        fs::{Access, AtFlags, CWD, accessat},
        io::Errno,
    };
    let nearest = directory.ancestors().find(|path| exists(path)).unwrap_or(Path::new("."));
    match accessat(CWD, nearest, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        Err(Errno::ACCESS) if nearest == directory && ownership::is_ours(&rustix::fs::stat(nearest)?) => Ok(()),
        looked => Ok(looked?),
    }
}

/// Returns whether something is at this path. Returns an error if its owner may not read it.
pub(crate) fn is_readable_by_owner(path: &Path) -> io::Result<bool> {
    match rustix::fs::lstat(path) {
        Ok(found) if found.st_mode & 0o400 == 0 => Err(io::ErrorKind::PermissionDenied.into()),
        Ok(_) => Ok(true),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

pub(super) fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Creates a file with a temporary name in this directory.
pub(crate) fn create_temporary(directory: &Path, purpose: &str) -> io::Result<(File, PathBuf)> {
    crash_points::pass("create temporary file")?;
    let process = std::process::id();
    for attempt in 0u32.. {
        let path = directory.join(format!("{TEMPORARY_PREFIX}{process}-{attempt}-{purpose}"));
        match create_new(OpenOptions::new().read(true).write(true), &path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Writes all bytes at the current position of the file.
pub(crate) fn write_all(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    crash_points::pass("write store file")?;
    file.write_all(bytes)
}

/// Writes all bytes at this offset of an existing file, and reads them back to verify them.
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    crash_points::pass("write into store file")?;
    file.write_all_at(bytes, offset)?;
    let mut written = vec![0; bytes.len()];
    file.read_exact_at(&mut written, offset)?;
    if written == bytes {
        Ok(())
    } else {
        Err(io::Error::other("the file does not contain the bytes that were written"))
    }
}

/// Returns an error if a file is not as long as it should be after a write. A system may report bytes as written that
/// were not.
pub(crate) fn check_length(file: &File, expected: u64) -> io::Result<()> {
    let length = file.metadata()?.len();
    if length == expected {
        return Ok(());
    }
    Err(io::Error::other(format!("the file has {length} bytes, but {expected} bytes were written")))
}

/// Opens one of the store's files for reading, at this offset.
pub(crate) fn open_from(path: &Path, offset: u64) -> io::Result<File> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(file)
}

/// Opens one of the store's files to change it in place. Returns `None` if it does not exist.
pub(crate) fn open_to_change(path: &Path) -> io::Result<Option<File>> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns `length` bytes at this offset. Returns no bytes if the file ends earlier.
pub(crate) fn read_at(file: &File, length: usize, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    match std::os::unix::fs::FileExt::read_exact_at(file, &mut bytes, offset) {
        Ok(()) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Makes the bytes of a file durable.
pub(crate) fn sync_file(file: &File) -> io::Result<()> {
    crash_points::pass("sync file")?;
    file.sync_all()
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    crash_points::pass("sync store directory")?;
    File::open(path)?.sync_all()
}

/// Renames a finished file. Replaces the file that had the new name.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    crash_points::pass("rename store file")?;
    std::fs::rename(from, to)
}

/// Replaces a file in one step: readers see either the old bytes or the new ones.
pub(crate) fn replace(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let directory = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let (mut file, temporary) = create_temporary(directory, "file")?;
    let result = (|| {
        write_all(&mut file, bytes)?;
        check_length(&file, bytes.len() as u64)?;
        if durability == Durability::Synced {
            sync_file(&file)?;
        }
        rename(&temporary, path)
    })();
    if let Err(error) = result {
        remove_leftover(&temporary);
        return Err(error);
    }
    match durability {
        Durability::Synced => sync_directory(directory),
        Durability::Unsynced => Ok(()),
    }
}

/// Appends bytes to a file. Creates the file if it is missing.
pub(crate) fn append(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    crash_points::pass("append to store file")?;
    let is_new = !exists(path);
    let mut file = open_to_append(path, is_new)?;
    let before = file.metadata()?.len();
    let written = file.write_all(bytes).and_then(|()| check_length(&file, before + bytes.len() as u64));
    if let Err(error) = written {
        // Half a line would look like damage. If it can't be removed either, the write error is still reported.
        drop(file.set_len(before));
        if is_new {
            // The next attempt then creates the file, and makes its name durable.
            remove_leftover(path);
        }
        return Err(error);
    }
    if durability == Durability::Synced {
        sync_file(&file)?;
        if is_new && let Some(directory) = path.parent() {
            sync_directory(directory)?;
        }
    }
    Ok(())
}

/// Opens a file for appending. Creates it if it is missing.
fn open_to_append(path: &Path, seems_new: bool) -> io::Result<File> {
    let mut is_new = seems_new;
    loop {
        let opened = match is_new {
            true => create_new(OpenOptions::new().append(true), path),
            false => OpenOptions::new().append(true).open(path),
        };
        // Another process may create or remove the file at the same time.
        match opened {
            Err(error) if is_new && error.kind() == io::ErrorKind::AlreadyExists => is_new = false,
            Err(error) if !is_new && error.kind() == io::ErrorKind::NotFound && exists_directory(path) => is_new = true,
            opened => return opened,
        }
    }
}

fn exists_directory(path: &Path) -> bool {
    path.parent().is_some_and(Path::is_dir)
}

/// Appends a line to a file of the store that other processes may append to at the same time. A failure may leave half
/// a line: truncating the file could remove a line of another process.
pub(crate) fn append_beside_others(path: &Path, line: &[u8]) -> io::Result<()> {
    crash_points::pass("append to store file")?;
    let mut file = open_to_append(path, false)?;
    let expected = file.metadata()?.len() + line.len() as u64;
    file.write_all(line)?;
    if file.metadata()?.len() < expected { check_length(&file, expected) } else { Ok(()) }
}

/// Removes one of the store's files. Succeeds if it does not exist.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    crash_points::pass("remove store file")?;
    match std::fs::remove_file(path) {
        Err(error) if !is_absence(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Removes a temporary file after a failure. If that fails, the next writer removes it.
pub(crate) fn remove_leftover(path: &Path) {
    drop(std::fs::remove_file(path));
}

/// Returns the time since a file was last written.
pub(crate) fn age(path: &Path) -> io::Result<std::time::Duration> {
    let written = std::fs::symlink_metadata(path)?.modified()?;
    Ok(written.elapsed().unwrap_or_default())
}

/// Returns the disk space of a file, or of everything below a directory. Returns zero if nothing is there.
pub(crate) fn room_of(path: &Path) -> io::Result<u64> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => bytes_below(path),
        Ok(metadata) => Ok(room_by(&metadata)),
        Err(error) if is_absence(&error) => Ok(0),
        Err(error) => Err(error),
    }
}

fn room_by(metadata: &std::fs::Metadata) -> u64 {
    use std::os::unix::fs::MetadataExt;
    metadata.blocks() * 512
}

/// Returns the disk space of everything below a directory.
pub(crate) fn bytes_below(path: &Path) -> io::Result<u64> {
    let mut total = 0;
    for name in names(path)? {
        let child = path.join(name);
        match std::fs::symlink_metadata(&child) {
            Ok(metadata) if metadata.is_dir() => total += bytes_below(&child)?,
            Ok(metadata) => total += room_by(&metadata),
            // Another process removed it in the meantime.
            Err(error) if is_absence(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}

/// Removes a store file by file, without following symlinks. The caller must know that the directory is a store.
pub(crate) fn remove_store(path: &Path) -> io::Result<()> {
    for name in names(path)? {
        let child = path.join(name);
        if std::fs::symlink_metadata(&child)?.is_dir() {
            remove_store(&child)?;
        } else {
            remove(&child)?;
        }
    }
    crash_points::pass("remove store directory")?;
    std::fs::remove_dir(path)
}

/// Makes a file private again if its permissions were changed.
pub(crate) fn make_private(path: &Path, mode: u32) -> io::Result<()> {
    let present = std::fs::symlink_metadata(path)?.permissions();
    if present.mode() & 0o7777 != mode {
        crash_points::pass("make private")?;
        std::fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Returns the canonical path of an existing directory.
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a save that had succeeded was reported as failed if another process logged its failure at the same
    /// moment.
    #[test]
    fn lines_of_several_writers_are_all_there() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("lines");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    for number in 0..4_000 {
                        append_beside_others(path, format!("{writer} {number}\n").as_bytes()).unwrap();
                    }
                });
            }
        });
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 16_000);
    }
}
