//! Properties of file systems that the engine relies on.

use std::{io, os::fd::AsFd};

pub(super) const EXT: i64 = 0xef53;
pub(super) const XFS: i64 = 0x5846_5342;
pub(super) const BTRFS: i64 = 0x9123_683e;
pub(super) const TMPFS: i64 = 0x0102_1994;
pub(super) const F2FS: i64 = 0xf2f5_2010;
pub(super) const ZFS: i64 = 0x2fc1_2fc1;
pub(super) const BCACHEFS: i64 = 0xca45_1a4e_u32 as i64;
pub(super) const OVERLAY: i64 = 0x794c_7630;

/// Returns whether changing a name in a directory always changes the directory's own times here.
///
/// Returns `true` only for file systems that are known for it: a network file system may answer from a cache.
pub(crate) fn has_reliable_directory_times(file: impl AsFd) -> io::Result<bool> {
    Ok(matches!(kind(file)?, EXT | XFS | BTRFS | TMPFS | F2FS | ZFS | BCACHEFS))
}

/// Returns the number of bytes that an ordinary user can still write here.
pub(crate) fn free_bytes(file: impl AsFd) -> io::Result<u64> {
    let stat = rustix::fs::fstatvfs(file)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Makes everything on this file system durable. This is cheaper than syncing many files one by one.
pub(crate) fn sync_filesystem(file: impl AsFd) -> io::Result<()> {
    super::crash_points::pass("sync file system")?;
    Ok(rustix::fs::syncfs(file)?)
}

pub(super) fn kind(file: impl AsFd) -> io::Result<i64> {
    Ok(rustix::fs::fstatfs(file)?.f_type as i64)
}

/// The kind of the file system at a path.
pub(super) fn kind_at(path: &std::path::Path) -> io::Result<i64> {
    Ok(rustix::fs::statfs(path)?.f_type as i64)
}

/// Returns the time in nanoseconds, by the clock that file systems stamp files with.
pub(crate) fn coarse_now() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    now.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec)
}
