//! Creates directories, and sets up new files. Their owner gets the permissions that they need, whatever the umask.
//! Files that root creates in another user's directory get that user as their owner.

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

use super::crash_points;

/// The owner of what root creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Giving<'a> {
    /// The owner of the directory around it.
    ToNeighbours,
    /// The owner of this directory.
    ToOwnerOf(&'a Path),
    /// Root itself.
    Keeping,
}

/// Sets up a file that this process created. If root created it, it gets the owner of `around`. Missing permission
/// `bits` are added.
pub(super) fn settle_file(file: &File, bits: u32, around: impl FnOnce() -> io::Result<Stat>) -> io::Result<()> {
    let made = rustix::fs::fstat(file)?;
    if made.st_uid == 0
        && let Some((user, group)) = other_owner(&around()?)
    {
        crash_points::pass("set owner")?;
        tolerate(rustix::fs::fchown(file, Some(user), Some(group)))?;
    }
    if made.st_mode & bits != bits {
        crash_points::pass("set mode")?;
        rustix::fs::fchmod(file, Mode::from_raw_mode((made.st_mode & 0o7777) | bits))?;
    }
    Ok(())
}

/// Creates one directory. The umask does not reduce the owner's part of `mode`.
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
            crash_points::pass("set owner")?;
            tolerate(rustix::fs::chownat(&at, name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW))?;
        }
    }
    let wanted = mode & 0o700;
    if made.st_mode & wanted != wanted { add_bits(at, name, wanted) } else { Ok(()) }
}

/// Creates a directory with its parents.
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
    crash_points::pass("make store directory")?;
    match make_directory(CWD, path, mode, giving) {
        // Another process created it first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Adds missing permission bits to a file or directory that this user owns. Returns whether it did.
pub(super) fn open_up(path: &Path, found: &Stat, bits: u32) -> io::Result<bool> {
    if found.st_mode & bits == bits || !is_ours(found) {
        return Ok(false);
    }
    add_bits(CWD, path, bits).map(|()| true)
}

/// Returns whether this process may change the permission bits.
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

/// Ignores failures to change an owner. Root in a container can't give files to users outside of it; such a file stays
/// root's.
fn tolerate(given: rustix::io::Result<()>) -> io::Result<()> {
    match given {
        Err(Errno::PERM | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        given => Ok(given?),
    }
}
