//! The file system of a path: its type, its free space, and whether locks work.

use std::{fs, path::Path};

use backtrail::Error;
use rustix::fs::{FlockOperation, flock, fstatfs, fstatvfs};

/// The file system of a path.
pub(crate) struct FileSystem {
    /// The name of its type.
    pub(crate) name: String,
    pub(crate) free_bytes: u64,
    /// The error of the system if locks don't work.
    pub(crate) locks: Result<(), rustix::io::Errno>,
}

impl FileSystem {
    /// Returns the file system of a path, or of the nearest directory above it that exists.
    pub(crate) fn of(path: &Path) -> Result<Self, Error> {
        let there = path.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(path);
        Self::of_directory(there).map_err(|source| Error::Io { action: "look at", path: there.to_owned(), source })
    }

    fn of_directory(path: &Path) -> std::io::Result<Self> {
        let directory = fs::File::open(path)?;
        let (kind, space) = (fstatfs(&directory)?.f_type as u64, fstatvfs(&directory)?);
        let locks = match flock(&directory, FlockOperation::NonBlockingLockShared) {
            Ok(()) | Err(rustix::io::Errno::WOULDBLOCK) => Ok(()),
            Err(error) => Err(error),
        };
        Ok(Self { name: name_of(kind), free_bytes: space.f_bavail.saturating_mul(space.f_frsize), locks })
    }
}

fn name_of(kind: u64) -> String {
    let known = match kind {
        0xef53 => "ext4",
        0x5846_5342 => "xfs",
        0x9123_683e => "btrfs",
        0x0102_1994 => "tmpfs",
        0xf2f5_2010 => "f2fs",
        0x2fc1_2fc1 => "zfs",
        0xca45_1a4e => "bcachefs",
        0x794c_7630 => "overlay",
        0x6969 => "nfs (network)",
        0xff53_4d42 | 0xfe53_4d42 => "smb (network)",
        0x0102_1997 => "9p",
        0x6573_5546 => "fuse",
        0x4d44 => "fat",
        _ => return format!("file system {kind:#x}"),
    };
    known.to_owned()
}
