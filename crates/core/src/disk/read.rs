//! Reads files outside the workspace that the user's configuration names. Only these reads follow symlinks.

use std::{fs::File, io, path::Path};

use super::{FileType, stamp_of};
use crate::model::{MAX_RULE_BYTES, Stamp};

/// The largest configuration file that is read in full.
const MAX_CONFIGURATION_BYTES: u64 = 64 << 20;

/// Returns the bytes of a regular file, following symlinks. Returns `None` if there is no such file.
pub(crate) fn read_following(path: &Path) -> io::Result<Option<Vec<u8>>> {
    read_up_to(path, MAX_CONFIGURATION_BYTES)
}

/// Returns the bytes of a rule or settings file, following symlinks. Returns one byte more than [`MAX_RULE_BYTES`] for
/// a file that is too large, and `None` if there is no such file.
pub(crate) fn read_rules(path: &Path) -> io::Result<Option<Vec<u8>>> {
    read_up_to(path, MAX_RULE_BYTES + 1)
}

fn read_up_to(path: &Path, max_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open_following(path)? else { return Ok(None) };
    let announced = file.metadata()?.len().min(max_bytes);
    // With one spare byte, the end of the file is found without growing the buffer.
    let mut bytes = Vec::with_capacity(announced as usize + 1);
    io::Read::read_to_end(&mut io::Read::take(file, max_bytes), &mut bytes)?;
    Ok(Some(bytes))
}

/// Returns the bytes of a file of any size, following symlinks. Returns `None` if nothing is there. Anything but a
/// regular file is an error, so that this never waits for a FIFO.
pub(crate) fn read_regular(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let Some(mut file) = open_following(path)? else {
        if is_special(path)? {
            return Err(io::Error::other("it is not a regular file"));
        }
        return Ok(None);
    };
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut file, &mut bytes)?;
    Ok(Some(bytes))
}

/// Returns whether a regular file is at this path, following symlinks.
pub(crate) fn is_regular(path: &Path) -> bool {
    stamp_following(path).is_ok_and(|stamp| stamp.is_some_and(|stamp| FileType::of(&stamp) == FileType::File))
}

/// Returns whether something other than a regular file is at this path, following symlinks.
pub(crate) fn is_special(path: &Path) -> io::Result<bool> {
    Ok(stamp_following(path)?.is_some_and(|stamp| FileType::of(&stamp) != FileType::File))
}

/// Opens a regular file, following symlinks. Returns `None` if there is no such file.
fn open_following(path: &Path) -> io::Result<Option<File>> {
    use rustix::fs::{CWD, Mode, OFlags};
    // Does not wait if the path is a FIFO.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = match rustix::fs::openat(CWD, path, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(file.metadata()?.is_file().then_some(file))
}

/// Returns the creation time of a file or directory in nanoseconds. Returns `None` if the file system does not record
/// it.
pub(crate) fn birth_time(path: &Path) -> io::Result<Option<i64>> {
    use rustix::fs::{AtFlags, CWD, StatxFlags};
    let found = match rustix::fs::statx(CWD, path, AtFlags::empty(), StatxFlags::BTIME) {
        Err(rustix::io::Errno::NOSYS) => return Ok(None),
        found => found?,
    };
    let is_kept = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    let nanoseconds =
        found.stx_btime.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(i64::from(found.stx_btime.tv_nsec));
    Ok(is_kept.then_some(nanoseconds))
}

/// Returns whether a directory is at this path, following symlinks.
pub(crate) fn is_directory(path: &Path) -> bool {
    path.is_dir()
}

/// Returns `true` if the path itself is a symlink.
pub(crate) fn is_symlink(path: &Path) -> bool {
    path.is_symlink()
}

/// Returns the stamp of a file, following symlinks. Returns `None` if nothing is there, or the symlinks form a loop.
pub(crate) fn stamp_following(path: &Path) -> io::Result<Option<Stamp>> {
    match rustix::fs::stat(path) {
        Ok(stat) => Ok(Some(stamp_of(&stat))),
        Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
