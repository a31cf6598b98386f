//! An open directory. Everything is reached by one name at a time from its handle, and no symlink is followed.

use std::{
    ffi::CStr,
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::{Component, Path},
};

use bstr::{BString, ByteSlice};
use rustix::{
    fs::{AtFlags, CWD, IFlags, OFlags, RenameFlags, ResolveFlags, StatxAttributes, StatxFlags},
    io::Errno,
};

use super::{
    crash_points,
    ownership::{self, Giving, Owner},
    stamp_of,
};
use crate::model::{Mode, Stamp, WorkspacePath};

/// An open directory.
#[derive(Debug)]
pub(crate) struct Dir(OwnedFd);

/// The type of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileType {
    File,
    Directory,
    Symlink,
    Special,
}

impl FileType {
    pub(crate) fn of(stamp: &Stamp) -> Self {
        match rustix::fs::FileType::from_raw_mode(stamp.mode) {
            rustix::fs::FileType::RegularFile => Self::File,
            rustix::fs::FileType::Directory => Self::Directory,
            rustix::fs::FileType::Symlink => Self::Symlink,
            _ => Self::Special,
        }
    }
}

/// A name that [`Dir::list`] found.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) name: BString,
    /// `None` if the file system does not report it.
    pub(crate) file_type: Option<FileType>,
}

/// Conditions that may prevent the removal of a name, regardless of the permission bits of its directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hindrances {
    /// Set if the name is a mount point.
    pub(crate) is_mount: bool,
    /// Set if the entry is immutable or append-only.
    pub(crate) is_fixed: bool,
    pub(crate) owner: Owner,
}

/// Whether this process can change the names in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Openness {
    Open,
    /// Its permission bits forbid it, but this process owns the directory and can change them.
    Closed,
}

/// The behaviour of a rename if the new name exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rename {
    /// The rename fails.
    NoReplace,
    /// The two names exchange their contents.
    Exchange,
}

/// A path with up to this many slashes is opened level by level.
const FEW_LEVELS: usize = 16;

/// The longest path that is passed to the kernel in one call.
const MAX_PIECE_BYTES: usize = 4_000;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Dir {
    /// Opens one of the program's own directories, or one that the caller named. This is the only function here that
    /// follows symlinks in the path.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(CWD, path, flags, rustix::fs::Mode::empty())?))
    }

    /// Opens a directory by a path that was resolved earlier. If a part of it has become a symlink since then, this is
    /// an error: the symlink could lead to files that the user did not mean.
    pub(crate) fn open_resolved(path: &Path) -> io::Result<Self> {
        use std::os::unix::ffi::OsStrExt;
        let on_the_way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut directory = Self(rustix::fs::openat(CWD, "/", on_the_way, rustix::fs::Mode::empty())?);
        for part in path.components().filter(|part| matches!(part, Component::Normal(_))) {
            let name = part.as_os_str().as_bytes();
            directory = match rustix::fs::openat(&directory.0, name, on_the_way, rustix::fs::Mode::empty()) {
                Ok(below) => Self(below),
                Err(Errno::NOTDIR) if directory.is_symlink(name) => return Err(Errno::LOOP.into()),
                Err(error) => return Err(error.into()),
            };
        }
        directory.open_dir(b".")
    }

    fn is_symlink(&self, name: &[u8]) -> bool {
        self.stamp_at(name).is_ok_and(|stamp| FileType::of(&stamp) == FileType::Symlink)
    }

    /// Opens a directory in this one. A symlink is an error.
    pub(crate) fn open_dir(&self, name: &[u8]) -> io::Result<Self> {
        Ok(Self(rustix::fs::openat(&self.0, name, DIRECTORY, rustix::fs::Mode::empty())?))
    }

    /// Opens a file for reading. Never waits for a FIFO, and never follows a symlink.
    pub(crate) fn open_file(&self, name: &[u8]) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, rustix::fs::Mode::empty())?))
    }

    /// Opens the directory that contains this path in the workspace at `root`. Follows no symlink on the way.
    pub(crate) fn open_parent(root: &Path, path: &WorkspacePath) -> io::Result<Self> {
        Self::open_resolved(root)?.open_below(path.parent_bytes())
    }

    /// Opens the directory at a path below this one. Follows no symlink on the way.
    pub(crate) fn open_below(self, path: &[u8]) -> io::Result<Self> {
        if path.find_iter(b"/").nth(FEW_LEVELS).is_some()
            && let Ok(found) = self.open_far_below(path)
        {
            return Ok(found);
        }
        // Opened level by level, so that an error is that of the name in the way.
        path.split_str("/").filter(|part| !part.is_empty()).try_fold(self, |directory, part| directory.open_dir(part))
    }

    /// Opens a long path with as few calls as possible. One call per level would be slow for many deeply nested paths,
    /// since each path is opened from the top.
    fn open_far_below(&self, path: &[u8]) -> io::Result<Self> {
        let (mut directory, mut rest) = (None, path);
        while !rest.is_empty() {
            let piece = match rest.get(..MAX_PIECE_BYTES) {
                Some(most) => &rest[..most.rfind_byte(b'/').ok_or(io::ErrorKind::InvalidFilename)?],
                None => rest,
            };
            let above = directory.as_ref().unwrap_or(&self.0);
            let resolve = ResolveFlags::NO_SYMLINKS;
            directory = Some(rustix::fs::openat2(above, piece, DIRECTORY, rustix::fs::Mode::empty(), resolve)?);
            rest = rest[piece.len()..].strip_prefix(b"/").unwrap_or_default();
        }
        directory.map(Self).ok_or_else(|| io::ErrorKind::InvalidFilename.into())
    }

    /// Returns a second handle for the same directory.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        Ok(Self(self.0.try_clone()?))
    }

    /// Returns the stamp of the directory itself.
    pub(crate) fn stamp(&self) -> io::Result<Stamp> {
        Ok(stamp_of(&rustix::fs::fstat(&self.0)?))
    }

    /// Returns the stamp of a name. A symlink is not followed.
    pub(crate) fn stamp_at(&self, name: &[u8]) -> io::Result<Stamp> {
        Ok(stamp_of(&rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Like [`Self::stamp_at`], but returns `None` if nothing is there.
    pub(crate) fn try_stamp_at(&self, name: &[u8]) -> io::Result<Option<Stamp>> {
        match self.stamp_at(name) {
            Ok(stamp) => Ok(Some(stamp)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns whether a name still has this stamp. Returns `false` on any error.
    pub(crate) fn has_stamp(&self, name: &CStr, stamp: &Stamp) -> bool {
        let found = rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| stamp_of(&found) == *stamp)
    }

    /// Returns the conditions that may prevent the removal of a name. Returns `None` if nothing is there.
    pub(crate) fn hindrances_at(&self, name: &[u8]) -> io::Result<Option<Hindrances>> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let found = match rustix::fs::statx(&self.0, name, flags, StatxFlags::UID | StatxFlags::GID) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Ok(None),
            // The kernel is too old for `statx`. Only an attempt will show.
            Err(Errno::NOSYS) => {
                let owner = self.owner_at(name)?;
                return Ok(Some(Hindrances { is_mount: false, is_fixed: false, owner }));
            }
            Err(error) => return Err(error.into()),
        };
        let attributes = found.stx_attributes;
        Ok(Some(Hindrances {
            is_mount: attributes.contains(StatxAttributes::MOUNT_ROOT),
            is_fixed: attributes.intersects(StatxAttributes::IMMUTABLE | StatxAttributes::APPEND),
            owner: Owner::of_extended(&found),
        }))
    }

    /// Returns whether the directory itself is immutable or append-only.
    pub(crate) fn is_fixed(&self) -> io::Result<bool> {
        Ok(self.hindrances_at(b".")?.is_some_and(|found| found.is_fixed))
    }

    /// Returns the target of a symlink.
    pub(crate) fn read_link(&self, name: &[u8]) -> io::Result<Vec<u8>> {
        Ok(rustix::fs::readlinkat(&self.0, name, Vec::new())?.into_bytes())
    }

    /// Returns the names in the directory, sorted by their bytes.
    pub(crate) fn list(&self) -> io::Result<Vec<Listed>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                let file_type = match entry.file_type() {
                    rustix::fs::FileType::RegularFile => Some(FileType::File),
                    rustix::fs::FileType::Directory => Some(FileType::Directory),
                    rustix::fs::FileType::Symlink => Some(FileType::Symlink),
                    rustix::fs::FileType::Unknown => None,
                    _ => Some(FileType::Special),
                };
                names.push(Listed { name: name.into(), file_type });
            }
        }
        names.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(names)
    }
}

/// Steps that change something on disk. Each passes a crash point first.
impl Dir {
    /// Creates a directory.
    pub(crate) fn make_dir(&self, name: &[u8], mode: Mode) -> io::Result<()> {
        crash_points::pass("make directory")?;
        ownership::make_directory(&self.0, as_path(name), u32::from(mode.0), Giving::Keeping)
    }

    /// Creates a directory for the program's own use. It gets the owner of this directory.
    pub(crate) fn make_own_dir(&self, name: &[u8]) -> io::Result<()> {
        crash_points::pass("make directory")?;
        ownership::make_directory(&self.0, as_path(name), 0o700, Giving::ToNeighbours)
    }

    /// Creates a private file for the program's own use. It gets the owner of this directory.
    pub(crate) fn create_own_file(&self, name: &[u8]) -> io::Result<File> {
        let file = self.create_file(name)?;
        ownership::settle_file(&file, 0o600, || Ok(rustix::fs::fstat(&self.0)?))?;
        Ok(file)
    }

    /// Removes an empty directory.
    pub(crate) fn remove_dir(&self, name: &[u8]) -> io::Result<()> {
        crash_points::pass("remove directory")?;
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes a file or symlink. Used only for files that this program created, in its own directories.
    pub(crate) fn remove_own_file(&self, name: &[u8]) -> io::Result<()> {
        crash_points::pass("remove own file")?;
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Writes bytes to one of the program's own files.
    pub(crate) fn write_own(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        crash_points::pass("write file")?;
        io::Write::write_all(file, bytes)
    }

    /// Makes the bytes of a file durable.
    pub(crate) fn sync_own(&self, file: &File) -> io::Result<()> {
        crash_points::pass("sync file")?;
        file.sync_all()
    }

    /// Creates a file that is private until its mode is set.
    pub(crate) fn create_file(&self, name: &[u8]) -> io::Result<File> {
        crash_points::pass("create file")?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, rustix::fs::Mode::from_raw_mode(0o600))?))
    }

    /// Creates a symlink.
    pub(crate) fn create_symlink(&self, target: &[u8], name: &[u8]) -> io::Result<()> {
        crash_points::pass("create symlink")?;
        Ok(rustix::fs::symlinkat(target, &self.0, name)?)
    }

    /// Moves or exchanges a file or symlink.
    pub(crate) fn rename(&self, name: &[u8], to: &Self, new_name: &[u8], how: Rename) -> io::Result<()> {
        crash_points::pass(match how {
            Rename::NoReplace => "move into place",
            Rename::Exchange => "exchange",
        })?;
        let flags = match how {
            Rename::NoReplace => RenameFlags::NOREPLACE,
            Rename::Exchange => RenameFlags::EXCHANGE,
        };
        match rustix::fs::renameat_with(&self.0, name, &to.0, new_name, flags) {
            // Not every file system supports this. A hard link, which fails if the new name exists, does the same in
            // two steps.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if how == Rename::NoReplace => {
                let linked = rustix::fs::linkat(&self.0, name, &to.0, new_name, AtFlags::empty());
                self.remove_old_name(name, to, new_name, linked)
            }
            result if how == Rename::NoReplace && result == Err(Errno::EXIST) => {
                self.remove_old_name(name, to, new_name, result)
            }
            result => Ok(result?),
        }
    }

    /// Completes a move that is done in two steps. If both names are the same file already, the first step was done
    /// before an interruption.
    fn remove_old_name(
        &self,
        name: &[u8],
        to: &Self,
        new_name: &[u8],
        linked: rustix::io::Result<()>,
    ) -> io::Result<()> {
        if linked != Err(Errno::EXIST) || !self.is_same_file(name, to, new_name)? {
            linked?;
        }
        crash_points::pass("remove the old name")?;
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    fn is_same_file(&self, name: &[u8], other: &Self, other_name: &[u8]) -> io::Result<bool> {
        let (Some(one), Some(two)) = (self.try_stamp_at(name)?, other.try_stamp_at(other_name)?) else {
            return Ok(false);
        };
        Ok((one.device, one.inode) == (two.device, two.inode))
    }

    /// Returns whether a name can be moved from this directory into the other one. Moves nothing.
    pub(crate) fn can_rename_to(&self, other: &Self) -> bool {
        // The kernel compares the mounts before it looks at the names, and `.` can't be renamed.
        let result = rustix::fs::renameat_with(&self.0, ".", &other.0, ".", RenameFlags::NOREPLACE);
        let is_one_mount = !matches!(result, Err(Errno::XDEV));
        // A subvolume has its own device number although it is part of the same mount.
        let device = |directory: &Self| directory.stamp().ok().map(|stamp| stamp.device);
        is_one_mount && device(self) == device(other) && self.fencing().contains(other.fencing())
    }

    /// Returns the flags of the directory that keep out files from directories without these flags: an inherited
    /// project quota and encryption.
    fn fencing(&self) -> IFlags {
        const ENCRYPTED: IFlags = IFlags::from_bits_retain(0x800);
        let flags = rustix::fs::ioctl_getflags(&self.0).unwrap_or(IFlags::empty());
        flags & (IFlags::PROJECT_INHERIT | ENCRYPTED)
    }

    /// Returns whether this process can change the names in the directory. Returns [`Openness::Closed`] if only the
    /// permission bits forbid it and this process owns the directory.
    pub(crate) fn openness(&self) -> io::Result<Openness> {
        use rustix::fs::Access;
        let wanted = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
        match rustix::fs::accessat(&self.0, ".", wanted, AtFlags::EACCESS) {
            Ok(()) => Ok(Openness::Open),
            Err(Errno::ACCESS) if self.owner()?.is_current_user() => Ok(Openness::Closed),
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a directory in this one so that names in it can change. Adds permission bits if they are missing and this
    /// process owns the directory.
    pub(crate) fn open_up(&self, name: &[u8]) -> io::Result<Self> {
        let directory = match self.open_dir(name) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let unopened = rustix::fs::openat(&self.0, name, flags, rustix::fs::Mode::empty())?;
                add_owner_bits(&unopened, 0o700)?;
                self.open_dir(name)?
            }
            opened => opened?,
        };
        directory.open_up_itself()?;
        Ok(directory)
    }

    /// Adds the permission bits that are needed to change names in the directory. Returns the previous mode if it was
    /// changed.
    pub(crate) fn open_up_itself(&self) -> io::Result<Option<Mode>> {
        match self.openness() {
            Ok(Openness::Closed) => {
                let mode = Mode::from_raw(self.stamp()?.mode);
                self.set_own_mode(Mode(mode.0 | 0o700))?;
                Ok(Some(mode))
            }
            // If this process may not write here, the write itself reports the error.
            _ => Ok(None),
        }
    }

    /// Runs `act` while this process can change names in the directory. Restores the permission bits afterwards.
    pub(crate) fn while_open<T>(&self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let closed = self.open_up_itself()?;
        let done = act();
        match closed.map(|mode| self.set_own_mode(mode)) {
            Some(Err(error)) => done.and(Err(error)),
            _ => done,
        }
    }

    /// Opens a file for reading. If its permission bits forbid that and this process owns the file, they are changed
    /// for a moment.
    pub(crate) fn open_closed_file(&self, name: &[u8]) -> io::Result<File> {
        match self.open_file(name) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let unopened = rustix::fs::openat(&self.0, name, flags, rustix::fs::Mode::empty())?;
                let mode = add_owner_bits(&unopened, 0o400)?;
                let file = self.open_file(name);
                set_mode_unopened(&unopened, mode)?;
                file
            }
            opened => opened,
        }
    }

    /// Sets the permission bits of the open directory itself.
    pub(crate) fn set_own_mode(&self, mode: Mode) -> io::Result<()> {
        crash_points::pass("set directory mode")?;
        Ok(rustix::fs::fchmod(&self.0, raw(mode))?)
    }

    /// Makes the names in the directory durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        crash_points::pass("sync directory")?;
        Ok(rustix::fs::fsync(&self.0)?)
    }
}

/// Adds permission bits to a file or directory that can't be opened without them. Returns the previous mode.
pub(super) fn add_owner_bits(unopened: &OwnedFd, bits: u16) -> io::Result<Mode> {
    let mode = Mode::from_raw(stamp_of(&rustix::fs::fstat(unopened)?).mode);
    set_mode_unopened(unopened, Mode(mode.0 | bits))?;
    Ok(mode)
}

/// Sets the mode by a handle that was not opened for reading. `fchmod` refuses such a handle, but `chmod` of its name
/// in `/proc` works and can't reach another file.
fn set_mode_unopened(unopened: &OwnedFd, mode: Mode) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    crash_points::pass("set mode")?;
    let name = format!("/proc/self/fd/{}", unopened.as_raw_fd());
    Ok(rustix::fs::chmodat(CWD, name, raw(mode), AtFlags::empty())?)
}

/// Creates a directory that the caller named, with its parents. The umask applies, except to the permissions that the
/// owner needs.
pub(crate) fn make_directories(path: &Path) -> io::Result<()> {
    crash_points::pass("make directories")?;
    ownership::make_directories(path, 0o777, Giving::Keeping)
}

/// Like [`make_directories`]. A directory that root creates gets the owner of the directory around it.
pub(crate) fn make_directories_as_neighbours(path: &Path) -> io::Result<()> {
    crash_points::pass("make directories")?;
    ownership::make_directories(path, 0o777, Giving::ToNeighbours)
}

/// Sets the permission bits of an open file.
pub(crate) fn set_mode(file: &File, mode: Mode) -> io::Result<()> {
    crash_points::pass("set mode")?;
    Ok(rustix::fs::fchmod(file, raw(mode))?)
}

fn as_path(name: &[u8]) -> &Path {
    Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(name))
}

fn raw(mode: Mode) -> rustix::fs::Mode {
    rustix::fs::Mode::from_raw_mode(u32::from(mode.0))
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One call for many levels must see the link that one call for each level would see.
    #[test]
    fn a_link_on_a_long_way_down_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let beside = place.path().join("beside");
        std::fs::create_dir_all(place.path().join("d/".repeat(40))).unwrap();
        let path = |levels: usize| vec!["d"; levels].join("/").into_bytes();
        let root = || Dir::open(place.path()).unwrap();
        assert!(root().open_below(&path(40)).is_ok());
        std::fs::rename(place.path().join("d/".repeat(20)), &beside).unwrap();
        std::os::unix::fs::symlink(&beside, place.path().join("d/".repeat(19)).join("d")).unwrap();
        assert!(place.path().join("d/".repeat(40)).exists(), "the link leads there");
        assert!(root().open_below(&path(19)).is_ok());
        assert!(root().open_below(&path(20)).is_err());
        assert!(root().open_below(&path(40)).is_err());
    }
}
