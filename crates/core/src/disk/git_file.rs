//! Writes one file of the user repository the way git does: under its `.lock`, in one step.
//!
//! Git's lock is a file, which a killed process leaves behind. Ours is a hard link to a file with a name of our own. If
//! both names exist after a crash, the next command knows that the lock is stale and ours.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    crash_points,
    ownership::{self, Giving},
};

/// The number of attempts to take a lock that another process holds, and the pause between them.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// A file of the user repository that is about to change.
pub(crate) struct GitFile<'a> {
    /// The path of the file.
    pub(crate) path: &'a Path,
    /// A temporary name of our own, in a directory where it does not disturb git.
    pub(crate) own: &'a Path,
}

/// The result of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// The file has its new content, from this call or an earlier one.
    Done,
    /// Another process wrote something else. The file was left as it is.
    Changed,
    /// Another process held the lock for too long.
    Locked,
}

impl GitFile<'_> {
    /// Writes the new bytes, or removes the file for `None`, if the file still has the old bytes.
    pub(crate) fn replace(&self, old: Option<&[u8]>, new: Option<&[u8]>) -> io::Result<Replaced> {
        if new.is_some() {
            remove_empty_directories(self.path)?;
        }
        if super::is_special(self.path)? {
            return Ok(Replaced::Changed);
        }
        if self.read()?.as_deref() == new {
            self.clear()?;
            return Ok(Replaced::Done);
        }
        let directory = self.path.parent().ok_or(io::ErrorKind::InvalidInput)?;
        crash_points::pass("make git directory")?;
        ownership::make_directories(directory, 0o777, Giving::ToNeighbours)?;
        self.clear()?;
        self.write_own(new.unwrap_or_default())?;
        if !self.take_lock()? {
            self.clear()?;
            return Ok(Replaced::Locked);
        }
        let present = self.read()?;
        if present.as_deref() != old {
            self.clear()?;
            return Ok(Replaced::Changed);
        }
        match new {
            Some(_) => {
                crash_points::pass("rename git file")?;
                std::fs::rename(self.lock(), self.path)?;
            }
            None => {
                crash_points::pass("remove git file")?;
                std::fs::remove_file(self.path)?;
            }
        }
        File::open(directory)?.sync_all()?;
        self.clear()?;
        Ok(Replaced::Done)
    }

    fn read(&self) -> io::Result<Option<Vec<u8>>> {
        super::read_regular(self.path)
    }

    fn lock(&self) -> PathBuf {
        let mut name = OsString::from(self.path);
        name.push(".lock");
        name.into()
    }

    fn write_own(&self, bytes: &[u8]) -> io::Result<()> {
        crash_points::pass("write git file")?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o666).open(self.own)?;
        ownership::settle_file(&file, 0o600, || match rustix::fs::stat(self.path) {
            Err(rustix::io::Errno::NOENT) => Ok(rustix::fs::stat(self.path.parent().unwrap_or(Path::new(".")))?),
            found => Ok(found?),
        })?;
        if let Ok(present) = std::fs::metadata(self.path) {
            file.set_permissions(std::fs::Permissions::from_mode(present.mode() & 0o777))?;
        }
        file.write_all(bytes)?;
        super::private::check_length(&file, bytes.len() as u64)?;
        crash_points::pass("sync git file")?;
        file.sync_all()
    }

    fn take_lock(&self) -> io::Result<bool> {
        for _ in 0..TRIES {
            crash_points::pass("lock git file")?;
            match std::fs::hard_link(self.own, self.lock()) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => std::thread::sleep(PAUSE),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Removes the file under our own name, and the lock if it is the same file.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let own = match std::fs::symlink_metadata(self.own) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let is_ours = |found: std::fs::Metadata| (found.dev(), found.ino()) == (own.dev(), own.ino());
        if std::fs::symlink_metadata(self.lock()).is_ok_and(is_ours) {
            crash_points::pass("unlock git file")?;
            std::fs::remove_file(self.lock())?;
        }
        crash_points::pass("remove own git file")?;
        std::fs::remove_file(self.own)
    }
}

/// Removes a directory that contains only empty directories. Git leaves such directories behind when it deletes refs.
fn remove_empty_directories(path: &Path) -> io::Result<()> {
    if !std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    for below in std::fs::read_dir(path)? {
        remove_empty_directories(&below?.path())?;
    }
    crash_points::pass("remove git directory")?;
    match std::fs::remove_dir(path) {
        // There is a ref in the directory. The caller will find that the directory is in the way.
        Err(error) if matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) => Ok(()),
        removed => removed,
    }
}

/// Appends a line to a file of the repository. Does nothing if the file does not exist or is not a regular file.
pub(crate) fn append_line(path: &Path, line: &str) -> io::Result<()> {
    crash_points::pass("append to git file")?;
    // Does not wait if the path is a FIFO.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut file = match OpenOptions::new().append(true).custom_flags(flags).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
    if !file.metadata()?.is_file() {
        return Ok(());
    }
    file.write_all(line.as_bytes())
}
