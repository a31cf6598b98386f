//! The numbers that identify a directory on a file system, and how reliable they are.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, StatxAttributes, StatxFlags},
    io::Errno,
};

use super::filesystem::{BCACHEFS, BTRFS, EXT, F2FS, OVERLAY, TMPFS, XFS, ZFS, kind_at};

/// The numbers that identify one directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DirectoryNumbers {
    /// The device number, which may change with a reboot.
    pub(crate) device: u64,
    /// The inode number.
    pub(crate) inode: u64,
    /// The creation time in nanoseconds. `None` if the file system does not record it.
    pub(crate) born: Option<i64>,
    /// The id of the file system. `None` for kinds of file systems without a permanent id.
    pub(crate) filesystem: Option<String>,
    /// The numbers that prove two directories different if they differ.
    pub(crate) trust: Trust,
}

/// The numbers that stay the same as long as a directory exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Inode and creation time stay the same.
    Both,
    /// The inode stays the same. The creation time changes when the overlay copies the directory to its upper layer.
    InodeAlone,
    /// Neither is known to stay the same.
    Neither,
}

/// Returns the numbers of a directory, following symlinks. Returns `None` if nothing is there. Facts that a sandbox
/// hides from this process are treated as unknown.
pub(crate) fn numbers_of(path: &Path) -> io::Result<Option<DirectoryNumbers>> {
    let Some(stamp) = super::stamp_following(path)? else { return Ok(None) };
    let kind = kind_at(path).unwrap_or(0);
    let filesystem = filesystem_id(path, kind);
    let trust = match kind {
        EXT | XFS | BTRFS | TMPFS | F2FS | ZFS | BCACHEFS => Trust::Both,
        // Without its upper layer, one overlay can't be told from another.
        OVERLAY if filesystem.is_some() => Trust::InodeAlone,
        _ => Trust::Neither,
    };
    let born = super::birth_time(path).unwrap_or(None);
    Ok(Some(DirectoryNumbers { device: stamp.device, inode: stamp.inode, born, filesystem, trust }))
}

/// Returns the id of the file system at a path. Returns `None` unless ids of this kind of file system stay the same
/// across mounts, containers and reboots. XFS and F2FS derive theirs from the device number, and network file systems
/// have none.
fn filesystem_id(path: &Path, kind: i64) -> Option<String> {
    let id = match kind {
        EXT | BTRFS | TMPFS | ZFS | BCACHEFS => rustix::fs::statvfs(path).map_or(0, |found| found.f_fsid),
        OVERLAY => upper_layer(path).map_or(0, |layer| xxhash_rust::xxh3::xxh3_64(&layer)),
        _ => 0,
    };
    (id != 0).then(|| format!("{kind:x}-{id:016x}"))
}

/// Returns the directory that receives all writes to the overlay at a path. Each container has its own.
fn upper_layer(path: &Path) -> Option<Vec<u8>> {
    let found = rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID).ok()?;
    StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID).then_some(())?;
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    upper_layer_in(&mounts, found.stx_mnt_id)
}

/// Returns the upper layer of the mount with this id, as the kernel's mount table spells it.
fn upper_layer_in(mounts: &[u8], mount: u64) -> Option<Vec<u8>> {
    let number = format!("{mount} ");
    let line = mounts.split(|byte| *byte == b'\n').find(|line| line.starts_with(number.as_bytes()))?;
    let options = line.rsplit(|byte| *byte == b' ').next()?;
    let upper = options.split(|byte| *byte == b',').find_map(|option| option.strip_prefix(b"upperdir="))?;
    Some(upper.to_owned())
}

/// Returns the root of the mount that contains a path: the path itself, or a directory above it.
pub(crate) fn mount_top(path: &Path) -> io::Result<PathBuf> {
    for here in path.ancestors() {
        if is_mount_top(here)? {
            return Ok(here.to_owned());
        }
    }
    Ok(PathBuf::from("/"))
}

fn is_mount_top(path: &Path) -> io::Result<bool> {
    let found = match rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::empty()) {
        Ok(found) if found.stx_attributes_mask.contains(StatxAttributes::MOUNT_ROOT) => {
            return Ok(found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT));
        }
        // On an older kernel, a different device number marks a mount.
        Ok(_) | Err(Errno::NOSYS) => path,
        Err(error) => return Err(error.into()),
    };
    let Some(above) = found.parent() else { return Ok(true) };
    let device = |path| Ok::<_, io::Error>(super::stamp_following(path)?.map(|stamp| stamp.device));
    Ok(device(found)? != device(above)?)
}

/// Returns whether a directory is empty.
pub(crate) fn is_empty(path: &Path) -> io::Result<bool> {
    Ok(std::fs::read_dir(path)?.next().is_none())
}

/// Returns the number of directories directly in this one that contain `.git`. Stops counting at `enough`.
pub(crate) fn count_repositories_in(path: &Path, enough: usize) -> io::Result<usize> {
    let mut count = 0;
    for entry in std::fs::read_dir(path)?.flatten() {
        if count == enough {
            break;
        }
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        count += usize::from(is_directory && super::private::exists(&entry.path().join(".git")));
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_layer_is_that_of_the_mount_with_this_number() {
        let mounts = b"21 1 0:20 / / rw - overlay overlay rw,lowerdir=/l/1:/l/2,upperdir=/one/diff,workdir=/one/work\n\
            211 21 0:20 / /a rw shared:1 - overlay overlay rw,lowerdir=/l/1,upperdir=/two/diff,workdir=/two/work\n\
            30 21 8:1 / /b rw - ext4 /dev/sda1 rw\n";
        assert_eq!(upper_layer_in(mounts, 21).unwrap(), b"/one/diff");
        assert_eq!(upper_layer_in(mounts, 211).unwrap(), b"/two/diff");
        assert_eq!(upper_layer_in(mounts, 30), None);
        assert_eq!(upper_layer_in(mounts, 2), None);
    }

    #[test]
    fn a_directory_that_is_not_mounted_is_no_top() {
        let place = tempfile::tempdir().unwrap();
        assert!(!is_mount_top(place.path()).unwrap());
        let top = mount_top(place.path()).unwrap();
        assert!(place.path().starts_with(&top) && is_mount_top(&top).unwrap(), "{}", top.display());
    }
}
