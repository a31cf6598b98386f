//! Owners of files. Creates directories, and sets up new files: their owner gets the permissions that they need,
//! whatever the umask. Files that root creates in another user's directory get that user as their owner.

use std::{
    fs::File,
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Statx, Uid},
    io::Errno,
    path::Arg,
};

use super::{Dir, crash_points};

/// The user and group that a file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    user: u32,
    group: u32,
}

impl Owner {
    pub(super) fn of(found: &Stat) -> Self {
        Self { user: found.st_uid, group: found.st_gid }
    }

    pub(super) fn of_extended(found: &Statx) -> Self {
        Self { user: found.stx_uid, group: found.stx_gid }
    }

    /// Returns the owner of files that this process creates, unless their directory gives them another group.
    fn of_process() -> Self {
        Self { user: rustix::process::geteuid().as_raw(), group: rustix::process::getegid().as_raw() }
    }

    /// Returns whether this process runs as this user.
    pub(crate) fn is_current_user(self) -> bool {
        self.user == Self::of_process().user
    }

    /// Returns whether this process may change the permission bits of files of this user, and remove them from a sticky
    /// directory.
    pub(crate) fn allows_changes(self) -> bool {
        can_give_files() || self.is_current_user()
    }

    /// Returns the owner that a new file has to be given to. Returns `None` if this process can't give files away, or
    /// creates them with this owner.
    pub(crate) fn to_be_set(self) -> Option<Self> {
        (can_give_files() && self != Self::of_process()).then_some(self)
    }

    fn is_root(self) -> bool {
        self.user == 0
    }

    fn ids(self) -> (Option<Uid>, Option<Gid>) {
        (Some(Uid::from_raw(self.user)), Some(Gid::from_raw(self.group)))
    }
}

/// Returns whether this process runs as root, which alone can give files to other users.
pub(crate) fn can_give_files() -> bool {
    Owner::of_process().is_root()
}

/// Sets the owner of an open file.
pub(crate) fn set_owner(file: impl AsFd, owner: Owner) -> io::Result<()> {
    crash_points::pass("set owner")?;
    let (user, group) = owner.ids();
    Ok(rustix::fs::fchown(file, user, group)?)
}

/// Sets the user and group of an open file that has others, as far as the system permits it.
pub(crate) fn give_file(file: &File, user: u32, group: u32) -> io::Result<()> {
    let owner = Owner { user, group };
    if Owner::of(&rustix::fs::fstat(file)?) == owner { Ok(()) } else { tolerate(set_owner(file, owner)) }
}

impl Dir {
    /// Returns the owner of the directory.
    pub(crate) fn owner(&self) -> io::Result<Owner> {
        Ok(Owner::of(&rustix::fs::fstat(self)?))
    }

    /// Returns the owner of an entry.
    pub(crate) fn owner_at(&self, name: &[u8]) -> io::Result<Owner> {
        Ok(Owner::of(&rustix::fs::statat(self, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Sets the owner of an entry. A symlink is not followed.
    pub(crate) fn set_owner_at(&self, name: &[u8], owner: Owner) -> io::Result<()> {
        set_owner_below(self, name, owner)
    }

    /// Gives a directory that root created in another user's directory to that user. It is recognised by its owner
    /// alone, so that it is found again after an interruption. The caller must be root.
    pub(crate) fn give_directory_away(&self, name: &[u8]) -> io::Result<()> {
        let owner = self.owner()?;
        if !owner.is_root() && self.owner_at(name)?.is_root() && self.open_dir(name).is_ok() {
            self.set_owner_at(name, owner)?;
        }
        Ok(())
    }

    /// Removes a directory that root could not give to its owner before root's process was killed. Nothing was in it by
    /// then.
    pub(crate) fn remove_what_root_left(&self, name: &[u8]) {
        if !can_give_files() && self.owner_at(name).is_ok_and(Owner::is_root) {
            drop(self.remove_dir(name));
        }
    }
}

fn set_owner_below(at: impl AsFd, name: impl Arg, owner: Owner) -> io::Result<()> {
    crash_points::pass("set owner")?;
    let (user, group) = owner.ids();
    Ok(rustix::fs::chownat(at, name, user, group, AtFlags::SYMLINK_NOFOLLOW)?)
}

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
    if Owner::of(&made).is_root()
        && let owner = Owner::of(&around()?)
        && !owner.is_root()
    {
        tolerate(set_owner(file, owner))?;
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
    if Owner::of(&made).is_root() && giving != Giving::Keeping {
        let parent = name.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let around = match giving {
            Giving::ToOwnerOf(path) => rustix::fs::stat(path)?,
            _ => rustix::fs::statat(&at, parent, AtFlags::empty())?,
        };
        let owner = Owner::of(&around);
        if !owner.is_root() {
            tolerate(set_owner_below(&at, name, owner))?;
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
    Owner::of(found).allows_changes()
}

pub(super) fn is_directory(found: &Stat) -> bool {
    FileType::from_raw_mode(found.st_mode) == FileType::Directory
}

fn add_bits(at: impl AsFd, name: &Path, bits: u32) -> io::Result<()> {
    let unopened: OwnedFd =
        rustix::fs::openat(at, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    super::dir::add_owner_bits(&unopened, bits as u16).map(drop)
}

/// Ignores failures to change an owner. Root in a container can't give files to users outside of it; such a file stays
/// root's.
fn tolerate(given: io::Result<()>) -> io::Result<()> {
    match given.as_ref().err().and_then(Errno::from_io_error) {
        Some(Errno::PERM | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        _ => given,
    }
}
