//! What was just made: the umask takes nothing from it that its owner needs, and what root makes in somebody else's
//! directory is theirs.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid},
    io::Errno,
};

use super::points;

/// Whom root gives what it makes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Giving<'a> {
    /// Whoever has the directory around it.
    ToNeighbours,
    /// Whoever has this one.
    ToOwnerOf(&'a Path),
    /// Nobody: it is root's.
    Keeping,
}

/// Gives a file that this process made the owner of what is beside it or around it, and at least these bits.
pub(super) fn settle_file(file: &File, bits: u32, around: impl FnOnce() -> io::Result<Stat>) -> io::Result<()> {
    let made = rustix::fs::fstat(file)?;
    if made.st_uid == 0
        && let Some((user, group)) = other_owner(&around()?)
    {
        points::pass("set owner")?;
        tolerate(rustix::fs::fchown(file, Some(user), Some(group)))?;
    }
    if made.st_mode & bits != bits {
        points::pass("set mode")?;
        rustix::fs::fchmod(file, Mode::from_raw_mode((made.st_mode & 0o7777) | bits))?;
    }
    Ok(())
}

/// Makes one directory, with all of `mode` that its owner needs.
pub(super) fn make_directory(at: impl AsFd, name: &Path, mode: u32, giving: Giving<'_>) -> io::Result<()> {
    rustix::fs::mkdirat(&at, name, Mode::from_raw_mode(mode))?;
    let made = rustix::fs::statat(&at, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if made.st_uid == 0 && giving != Giving::Keeping {
        let parent = name.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let around = match giving {
            Giving::ToOwnerOf(path) => rustix::fs::stat(path)?,
            _ => rustix::fs::statat(&at, parent, AtFlags::empty())?,
        };
        if let Some((user, group)) = other_owner(&around) {
            points::pass("set owner")?;
            tolerate(rustix::fs::chownat(&at, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW))?;
        }
    }
    let wanted = mode & 0o700;
    if made.st_mode & wanted != wanted { add_bits(at, name, wanted) } else { Ok(()) }
}

/// Makes a directory with its parents.
pub(super) fn make_directories(path: &Path, mode: u32, giving: Giving<'_>) -> io::Result<()> {
    match rustix::fs::stat(path) {
        Ok(found) if is_directory(&found) => return Ok(()),
        Ok(_) => return Err(io::ErrorKind::AlreadyExists.into()),
        Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        make_directories(parent, mode, giving)?;
    }
    points::pass("make store directory")?;
    match make_directory(CWD, path, mode, giving) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Adds permission bits to a file or directory of this user's that lacks them; says whether it did.
pub(super) fn open_up(path: &Path, found: &Stat, bits: u32) -> io::Result<bool> {
    if found.st_mode & bits == bits || !is_ours(found) {
        return Ok(false);
    }
    add_bits(CWD, path, bits).map(|()| true)
}

/// May this process change its permission bits?
pub(super) fn is_ours(found: &Stat) -> bool {
    let own = rustix::process::geteuid().as_raw();
    own == 0 || found.st_uid == own
}

pub(super) fn is_directory(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Directory
}

fn add_bits(at: impl AsFd, name: &Path, bits: u32) -> io::Result<()> {
    let unopened: OwnedFd =
        rustix::fs::openat(at, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    super::dir::add_owner_bits(&unopened, bits as u16).map(drop)
}

fn other_owner(around: &Stat) -> Option<(Uid, Gid)> {
    (around.st_uid != 0).then(|| (Uid::from_raw(around.st_uid), Gid::from_raw(around.st_gid)))
}

/// Root of a container can't give anything to those whom it does not know; then it stays as it would have been.
fn tolerate(given: rustix::io::Result<()>) -> io::Result<()> {
    match given {
        Err(Errno::PERM | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        given => Ok(given?),
    }
}
