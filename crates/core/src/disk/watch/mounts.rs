//! The table of mounts. A mount inside a watched tree hides a directory without an event.

use std::{
    fs::File,
    io,
    os::unix::{ffi::OsStrExt, fs::FileExt},
    path::Path,
};

use bstr::ByteSlice;

/// The table of mounts that this process sees.
#[derive(Debug)]
pub(crate) struct MountTable {
    table: File,
    known: Vec<u8>,
}

impl MountTable {
    pub(crate) fn open() -> io::Result<Self> {
        let table = File::open("/proc/self/mountinfo")?;
        let known = read(&table)?;
        Ok(Self { table, known })
    }

    /// Returns whether a mount at or below this directory, or on the way to it, was made or removed since this was last
    /// called.
    pub(crate) fn changed_near(&mut self, root: &Path) -> io::Result<bool> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        // The kernel marks the open table as urgent once for each change.
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut [PollFd::new(&self.table, PollFlags::PRI)], Some(&at_once))? == 0 {
            return Ok(false);
        }
        let now = read(&self.table)?;
        let is_changed = near(&self.known, root) != near(&now, root);
        self.known = now;
        Ok(is_changed)
    }

    /// Returns the mount points below a directory, as paths from there.
    pub(crate) fn below(&self, root: &Path) -> Vec<Vec<u8>> {
        let root = root.as_os_str().as_bytes();
        let points = self.known.lines().filter_map(mount_point);
        points.filter_map(|point| Some(point.strip_prefix(root)?.strip_prefix(b"/")?.to_vec())).collect()
    }
}

/// Reads the table from its beginning.
fn read(table: &File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match table.read_at(&mut piece, bytes.len() as u64)? {
            0 => return Ok(bytes),
            count => bytes.extend_from_slice(&piece[..count]),
        }
    }
}

/// Returns the lines about mounts at, above and below a directory.
fn near<'t>(table: &'t [u8], root: &Path) -> Vec<&'t [u8]> {
    let concerns = |line: &&[u8]| {
        mount_point(line).is_none_or(|point| {
            let point = Path::new(std::ffi::OsStr::from_bytes(&point));
            point.starts_with(root) || root.starts_with(point)
        })
    };
    table.lines().filter(concerns).collect()
}

/// Returns the mount point of a line, with the kernel's octal escapes resolved.
fn mount_point(line: &[u8]) -> Option<Vec<u8>> {
    let field = line.split(|byte| *byte == b' ').nth(4)?;
    let mut point = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((byte, after)) = rest.split_first() {
        match after.get(..3).filter(|_| *byte == b'\\').and_then(octal) {
            Some(escaped) => {
                point.push(escaped);
                rest = &after[3..];
            }
            None => {
                point.push(*byte);
                rest = after;
            }
        }
    }
    Some(point)
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

/// Returns the number of this process's mount namespace. Processes in different ones may see different files at the
/// same path.
pub(crate) fn mount_namespace() -> io::Result<(u64, u64)> {
    let found = rustix::fs::stat("/proc/self/ns/mnt")?;
    Ok((found.st_dev, found.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[u8] = b"21 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
        22 21 8:1 /x /work/with\\040space/a rw - ext4 /dev/sda1 rw\n\
        23 21 8:1 /x /elsewhere rw - ext4 /dev/sda1 rw\n";

    #[test]
    fn mounts_near_a_directory_are_those_above_and_below_it() {
        let near = near(TABLE, Path::new("/work/with space"));
        let numbers: Vec<&[u8]> = near.iter().map(|line| &line[..2]).collect();
        assert_eq!(numbers, [b"21", b"22"]);
    }

    #[test]
    fn a_mount_point_below_is_named_from_there() {
        let table = MountTable { table: File::open("/dev/null").unwrap(), known: TABLE.to_vec() };
        assert_eq!(table.below(Path::new("/work/with space")), [b"a"]);
        assert!(table.below(Path::new("/work/with")).is_empty());
    }
}
