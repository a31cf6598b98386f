//! The one place that calls the operating system.
//!
//! Workspaces are read and written through `Dir` handles, name by name, so that no symlink is ever followed; the
//! store's own files go through `private`. Every step that changes something passes [`points`], where the crash driver
//! can stop it.

mod dir;
mod filesystem;
pub(crate) mod git_file;
pub(crate) mod lock;
pub mod points;
pub(crate) mod private;
mod read;

pub(crate) use dir::make_directories;
pub(crate) use dir::{Dir, FileType, Listed, Openness, Rename, set_mode, set_owner};
pub(crate) use filesystem::{coarse_now, free_bytes, has_reliable_directory_times, sync_filesystem};
pub(crate) use read::{
    birth_time, is_directory, is_regular, is_special, read_following, read_regular, stamp_following,
};

use crate::model::Stamp;

/// The stamp of a raw stat.
pub(crate) fn stamp_of(stat: &rustix::fs::Stat) -> Stamp {
    let nanoseconds = |seconds: i64, part: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(part);
    Stamp {
        device: stat.st_dev,
        inode: stat.st_ino,
        size: stat.st_size as u64,
        mtime: nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64),
        ctime: nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64),
        mode: stat.st_mode,
        links: stat.st_nlink as u32,
    }
}
