//! The only module that calls the operating system.
//!
//! Workspaces are read and written through `Dir` handles, name by name, so that no symlink is ever followed. The
//! store's own files go through `private`. Every step that changes something passes [`crash_points`], where the crash
//! tests can stop it.

mod boot;
pub mod crash_points;
pub mod delays;
mod dir;
mod directory_identity;
mod filesystem;
pub(crate) mod git_file;
pub(crate) mod lock;
mod ownership;
pub(crate) mod private;
mod read;
pub mod read_counts;
mod share;
mod store_file;
pub(crate) mod watch;

pub(crate) use boot::time_since_boot;
pub(crate) use dir::{Dir, FileType, Listed, Openness, Rename, set_mode};
pub(crate) use dir::{make_directories, make_directories_as_neighbours};
pub(crate) use directory_identity::{DirectoryNumbers, Trust, count_repositories_in, is_empty, mount_top, numbers_of};
pub(crate) use filesystem::{coarse_now, free_bytes, has_reliable_directory_times, sync_filesystem};
pub(crate) use ownership::{Owner, can_give_files, give_file, set_owner};
pub(crate) use read::{
    birth_time, is_directory, is_regular, is_special, is_symlink, read_following, read_regular, read_rules,
    stamp_following,
};
pub(crate) use share::{clone_or_copy, link_store_file};
pub(crate) use store_file::StoreFile;

use crate::model::Stamp;

/// Returns the stamp of a raw stat. The setuid and setgid bits of a file are kept only if this user owns the file:
/// another user could not restore them, and root would restore them on a file of its own.
pub(crate) fn stamp_of(stat: &rustix::fs::Stat) -> Stamp {
    let nanoseconds = |seconds: i64, part: i64| seconds.wrapping_mul(1_000_000_000).wrapping_add(part);
    Stamp {
        device: stat.st_dev,
        inode: stat.st_ino,
        size: stat.st_size as u64,
        mtime: nanoseconds(stat.st_mtime, stat.st_mtime_nsec as i64),
        ctime: nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64),
        mode: match stat.st_mode & 0o6000 {
            0 => stat.st_mode,
            _ if is_file_of_another_user(stat) => stat.st_mode & !0o6000,
            _ => stat.st_mode,
        },
        links: stat.st_nlink as u32,
    }
}

fn is_file_of_another_user(stat: &rustix::fs::Stat) -> bool {
    let is_file = rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile;
    is_file && !Owner::of(stat).is_current_user()
}
