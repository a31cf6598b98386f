//! The store's own files: readable by their owner alone, whatever the umask, and durable where it says so.

use std::{
    fs::{File, OpenOptions, Permissions},
    io::{self, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::points;

/// How a temporary file's name starts: what is found under such a name while the lock is held, a dead process left.
pub(crate) const TEMPORARY_PREFIX: &str = ".backtrail-tmp-";

/// Must a step survive a power cut before the next one?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// It reaches the disk before the call returns.
    Synced,
    /// It can be rebuilt; the system writes it when it likes.
    Unsynced,
}

/// Makes a directory with all its parents.
pub(crate) fn make_directories(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    points::pass("make store directory")?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The bytes of a file; none where there is none.
pub(crate) fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The names in a directory; empty where there is none.
pub(crate) fn names(path: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if is_absence(&error) => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    entries.map(|entry| entry.map(|entry| entry.file_name())).collect()
}

/// How many bytes a file has; none where there is none.
pub(crate) fn size(path: &Path) -> io::Result<Option<u64>> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata.len())),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Is something there?
pub(crate) fn exists(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok()
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A new file under a temporary name in this directory.
pub(crate) fn create_temporary(directory: &Path, purpose: &str) -> io::Result<(File, PathBuf)> {
    points::pass("create temporary file")?;
    let process = std::process::id();
    for attempt in 0u32.. {
        let path = directory.join(format!("{TEMPORARY_PREFIX}{process}-{attempt}-{purpose}"));
        match OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Writes all of it at the file's current position.
pub(crate) fn write_all(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    points::pass("write store file")?;
    file.write_all(bytes)
}

/// Writes all of it at this place, which has bytes already, and looks whether it is there.
pub(crate) fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    points::pass("write into store file")?;
    file.write_all_at(bytes, offset)?;
    let mut written = vec![0; bytes.len()];
    file.read_exact_at(&mut written, offset)?;
    if written == bytes { Ok(()) } else { Err(io::Error::other("the system did not write what it said it had")) }
}

/// Is a file as long as what was written to it? A system may say that it took bytes which it did not take.
pub(crate) fn check_length(file: &File, expected: u64) -> io::Result<()> {
    let length = file.metadata()?.len();
    if length == expected {
        return Ok(());
    }
    Err(io::Error::other(format!("the file has {length} bytes where the system wrote {expected}")))
}

/// Opens one of the store's files to read it from a place on.
pub(crate) fn open_from(path: &Path, offset: u64) -> io::Result<File> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset))?;
    Ok(file)
}

/// Opens one of the store's files to change it in place; none where there is none.
pub(crate) fn open_to_change(path: &Path) -> io::Result<Option<File>> {
    match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The bytes at this place, as far as there are any.
pub(crate) fn read_at(file: &File, length: usize, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    match std::os::unix::fs::FileExt::read_exact_at(file, &mut bytes, offset) {
        Ok(()) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Makes a file's bytes durable.
pub(crate) fn sync_file(file: &File) -> io::Result<()> {
    points::pass("sync file")?;
    file.sync_all()
}

/// Makes the names in a directory durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    points::pass("sync store directory")?;
    File::open(path)?.sync_all()
}

/// Gives a finished file its name, in place of what was there.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    points::pass("rename store file")?;
    std::fs::rename(from, to)
}

/// Puts these bytes under this name in one step: whoever looks sees the old file or the new one.
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

/// Adds bytes at the end of a file, which is made where it is missing.
pub(crate) fn append(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    points::pass("append to store file")?;
    let is_new = !exists(path);
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let before = file.metadata()?.len();
    let written = file.write_all(bytes).and_then(|()| check_length(&file, before + bytes.len() as u64));
    if let Err(error) = written {
        // Half a line would look like damage. Where it can't be taken back either, it is told all the same.
        drop(file.set_len(before));
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

/// Adds a line to a file of the store that others may add to at the same time. Where that fails half-way, half a line
/// stays behind: cutting it off could cut off another's.
pub(crate) fn append_beside_others(path: &Path, line: &[u8]) -> io::Result<()> {
    points::pass("append to store file")?;
    let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
    let expected = file.metadata()?.len() + line.len() as u64;
    file.write_all(line)?;
    if file.metadata()?.len() < expected { check_length(&file, expected) } else { Ok(()) }
}

/// Removes one of the store's files; nothing there is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    points::pass("remove store file")?;
    match std::fs::remove_file(path) {
        Err(error) if !is_absence(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Removes a temporary file after a failure. What can't be removed now is swept by the next writer.
pub(crate) fn remove_leftover(path: &Path) {
    drop(std::fs::remove_file(path));
}

/// How long ago a file was last written.
pub(crate) fn age(path: &Path) -> io::Result<std::time::Duration> {
    let written = std::fs::symlink_metadata(path)?.modified()?;
    Ok(written.elapsed().unwrap_or_default())
}

/// How much room everything below a directory takes.
pub(crate) fn bytes_below(path: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut total = 0;
    for name in names(path)? {
        let child = path.join(name);
        match std::fs::symlink_metadata(&child) {
            Ok(metadata) if metadata.is_dir() => total += bytes_below(&child)?,
            Ok(metadata) => total += metadata.blocks() * 512,
            // Somebody else tidied up in between.
            Err(error) if is_absence(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(total)
}

/// Removes a store, file by file, through no link. Called for a directory that was known to be one.
pub(crate) fn remove_store(path: &Path) -> io::Result<()> {
    for name in names(path)? {
        let child = path.join(name);
        if std::fs::symlink_metadata(&child)?.is_dir() {
            remove_store(&child)?;
        } else {
            remove(&child)?;
        }
    }
    points::pass("remove store directory")?;
    std::fs::remove_dir(path)
}

/// Makes a file private again, should somebody have opened it up.
pub(crate) fn make_private(path: &Path, mode: u32) -> io::Result<()> {
    let present = std::fs::symlink_metadata(path)?.permissions();
    if present.mode() & 0o7777 != mode {
        points::pass("make private")?;
        std::fs::set_permissions(path, Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// The one true spelling of a directory that exists.
pub(crate) fn canonical(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Another process that told of its failure at the same moment let a save fail that was done.
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
