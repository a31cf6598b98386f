//! The directory that a restore makes in the workspace for its files, where the store lies out of a rename's reach.
//!
//! A scan skips it by its location, which the store notes. A directory that only looks like one is captured.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, Read},
};

use crate::disk::{Dir, FileType};

const PREFIX: &str = ".backtrail-";

/// What tells it from a directory of the user's; and their own git must not see it either.
const MARK_FILE: &[u8] = b".gitignore";
const MARK: &[u8] = b"# Made by Backtrail for a restore, and removed after it.\n*\n";

/// A name that no other restore has: neither one of this workspace, nor one of which a copy brought the directory along.
pub(crate) fn new_staging_area() -> String {
    format!("{PREFIX}{:016x}", RandomState::new().build_hasher().finish())
}

/// Has it the mark, as far as a crash let that be written?
pub(crate) fn is_marked(directory: &Dir) -> bool {
    let is_file = directory.stamp_at(MARK_FILE).is_ok_and(|stamp| FileType::of(&stamp) == FileType::File);
    let read = || -> io::Result<Vec<u8>> {
        let mut found = Vec::new();
        directory.open_file(MARK_FILE)?.take(MARK.len() as u64 + 1).read_to_end(&mut found)?;
        Ok(found)
    };
    is_file && read().is_ok_and(|found| MARK.starts_with(&found))
}

/// Is this the name of the mark?
pub(crate) fn is_mark(name: &[u8]) -> bool {
    name == MARK_FILE
}

/// Puts the mark into a directory that was made for this.
pub(crate) fn mark(directory: &Dir) -> io::Result<()> {
    if directory.try_stamp_at(MARK_FILE)?.is_some() {
        return Ok(());
    }
    let mut file = directory.create_own_file(MARK_FILE)?;
    directory.write_own(&mut file, MARK)
}
