//! Files with the same bytes as others: shared on disk where the file system can, copied otherwise.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use rustix::io::Errno;

use super::{crash_points, private};

/// Fills an empty file with the bytes of another one. The two share them if the file system can clone. Returns the
/// number of bytes.
pub(crate) fn clone_or_copy(mut from: &File, mut to: &File) -> io::Result<u64> {
    crash_points::pass("clone file")?;
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(to.metadata()?.len());
    }
    io::copy(&mut from, &mut to)
}

/// Gives a file of a store a second name in another store. If the file system can't, creates a clone or a copy. Does
/// nothing if the name exists.
pub(crate) fn link_store_file(from: &Path, to: &Path) -> io::Result<()> {
    crash_points::pass("link store file")?;
    match rustix::fs::link(from, to) {
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(Errno::NOENT) => Err(Errno::NOENT.into()),
        Err(_) => copy_store_file(from, to),
    }
}

fn copy_store_file(from: &Path, to: &Path) -> io::Result<()> {
    let directory: PathBuf = to.parent().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
    let (file, temporary) = private::create_temporary(&directory, "shared")?;
    let copy = || {
        let length = clone_or_copy(&File::open(from)?, &file)?;
        private::check_length(&file, length)?;
        private::sync_file(&file)?;
        private::rename(&temporary, to)
    };
    let copied = copy();
    if copied.is_err() {
        private::remove_leftover(&temporary);
    }
    copied
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_store_file_gets_a_second_name() {
        let place = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| place.path().join(name));
        std::fs::write(&from, "pack").unwrap();
        link_store_file(&from, &to).unwrap();
        link_store_file(&from, &to).unwrap();
        assert_eq!(std::fs::metadata(&to).unwrap().ino(), std::fs::metadata(&from).unwrap().ino());
    }

    #[test]
    fn a_store_file_is_copied_to_another_file_system() {
        let (here, memory) = (tempfile::tempdir().unwrap(), Path::new("/dev/shm"));
        if !memory.is_dir() {
            return;
        }
        let there = tempfile::tempdir_in(memory).unwrap();
        let (from, to) = (here.path().join("from"), there.path().join("to"));
        let bytes = vec![7; 100_000];
        std::fs::write(&from, &bytes).unwrap();
        link_store_file(&from, &to).unwrap();
        assert_eq!(std::fs::read(&to).unwrap(), bytes);
        assert_eq!(std::fs::read_dir(there.path()).unwrap().count(), 1, "no temporary file stays");
    }
}
