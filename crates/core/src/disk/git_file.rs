//! Writing one file of the user's own repository, as git itself does: under its `.lock`, in one step.
//!
//! Git's lock is a file that a killed process leaves behind. Ours is a second name of a file with a name of our own, so
//! that whoever finds both after a crash knows that the lock is nobody's.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    made::{self, Giving},
    points,
};

/// How often a lock that another process holds is tried again, and how long to wait in between.
const TRIES: u32 = 40;
const PAUSE: Duration = Duration::from_millis(50);

/// A file of the user's repository that is about to change.
pub(crate) struct GitFile<'a> {
    /// Where it is.
    pub(crate) path: &'a Path,
    /// The name of our own, in a directory where git does not mind it.
    pub(crate) own: &'a Path,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replaced {
    /// It is done, now or before.
    Done,
    /// Somebody else wrote something else: it is left as it is.
    Changed,
    /// Another process kept the lock.
    Locked,
}

impl GitFile<'_> {
    /// Gives the file its new bytes, or takes it away, where it still has the old ones.
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
        points::pass("make git directory")?;
        made::make_directories(directory, 0o777, Giving::ToNeighbours)?;
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
                points::pass("rename git file")?;
                std::fs::rename(self.lock(), self.path)?;
            }
            None => {
                points::pass("remove git file")?;
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
        points::pass("write git file")?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o666).open(self.own)?;
        made::settle_file(&file, 0o600, || match rustix::fs::stat(self.path) {
            Err(rustix::io::Errno::NOENT) => Ok(rustix::fs::stat(self.path.parent().unwrap_or(Path::new(".")))?),
            found => Ok(found?),
        })?;
        if let Ok(present) = std::fs::metadata(self.path) {
            file.set_permissions(std::fs::Permissions::from_mode(present.mode() & 0o777))?;
        }
        file.write_all(bytes)?;
        super::private::check_length(&file, bytes.len() as u64)?;
        points::pass("sync git file")?;
        file.sync_all()
    }

    fn take_lock(&self) -> io::Result<bool> {
        for _ in 0..TRIES {
            points::pass("lock git file")?;
            match std::fs::hard_link(self.own, self.lock()) {
                Ok(()) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => std::thread::sleep(PAUSE),
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// Takes away the file under our own name, and a lock that is the same file.
    pub(crate) fn clear(&self) -> io::Result<()> {
        let own = match std::fs::symlink_metadata(self.own) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let is_ours = |found: std::fs::Metadata| (found.dev(), found.ino()) == (own.dev(), own.ino());
        if std::fs::symlink_metadata(self.lock()).is_ok_and(is_ours) {
            points::pass("unlock git file")?;
            std::fs::remove_file(self.lock())?;
        }
        points::pass("remove own git file")?;
        std::fs::remove_file(self.own)
    }
}

/// Takes away a directory that holds nothing but such directories: what is left of refs that went, as git leaves it.
fn remove_empty_directories(path: &Path) -> io::Result<()> {
    if !std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        return Ok(());
    }
    for below in std::fs::read_dir(path)? {
        remove_empty_directories(&below?.path())?;
    }
    points::pass("remove git directory")?;
    match std::fs::remove_dir(path) {
        // Somebody has a ref there: the caller finds it in the way.
        Err(error) if matches!(error.kind(), io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotFound) => Ok(()),
        removed => removed,
    }
}

/// Adds a line to a file of the repository that is there already.
pub(crate) fn append_line(path: &Path, line: &str) -> io::Result<()> {
    points::pass("append to git file")?;
    // Never waits on a FIFO that somebody put there.
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
