//! What can be relied on, per file system.

use std::{io, os::fd::AsFd};

const EXT: i64 = 0xef53;
const XFS: i64 = 0x5846_5342;
const BTRFS: i64 = 0x9123_683e;
const TMPFS: i64 = 0x0102_1994;
const F2FS: i64 = 0xf2f5_2010;
const OVERLAY: i64 = 0x794c_7630;
const ZFS: i64 = 0x2fc1_2fc1;
const BCACHEFS: i64 = 0xca45_1a4e_u32 as i64;

/// Does a change of a name always change the directory's own times here?
///
/// Only of file systems where that is known: a network file system may answer from a cache.
pub(crate) fn has_reliable_directory_times(file: impl AsFd) -> io::Result<bool> {
    Ok(matches!(kind(file)?, EXT | XFS | BTRFS | TMPFS | F2FS | ZFS | BCACHEFS))
}

/// Is it a file system of this machine, with file times that follow every write?
pub(crate) fn is_local(file: impl AsFd) -> io::Result<bool> {
    Ok(matches!(kind(file)?, EXT | XFS | BTRFS | TMPFS | F2FS | OVERLAY | ZFS | BCACHEFS))
}

fn kind(file: impl AsFd) -> io::Result<i64> {
    Ok(rustix::fs::fstatfs(file)?.f_type as i64)
}

/// The clock that file systems stamp files with, in nanoseconds.
pub(crate) fn coarse_now() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
    now.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec)
}
