//! The directory that a restore creates in the workspace for its files if they can't be renamed to and from the store.
//!
//! A scan skips it by its location, which the store records. A directory that only looks like one is captured.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, Read},
};

use crate::disk::{Dir, FileType};

const PREFIX: &str = ".backtrail-";

/// The file that distinguishes a staging area from a directory of the user. It also hides the staging area from the
/// user's git.
const MARK_FILE: &[u8] = b".gitignore";
const MARK: &[u8] = b"# Made by Backtrail for a restore, and removed after it.\n*\n";

/// Returns a random name, so that no other restore uses it. That includes restores of other workspaces that this one
/// was copied from, with their staging areas.
pub(crate) fn new_staging_area() -> String {
    format!("{PREFIX}{:016x}", RandomState::new().build_hasher().finish())
}

/// Returns whether the directory has the mark file. A mark that a crash cut short counts.
pub(crate) fn is_marked(directory: &Dir) -> bool {
    let is_file = directory.stamp_at(MARK_FILE).is_ok_and(|stamp| FileType::of(&stamp) == FileType::File);
    let read = || -> io::Result<Vec<u8>> {
        let mut found = Vec::new();
        directory.open_file(MARK_FILE)?.take(MARK.len() as u64 + 1).read_to_end(&mut found)?;
        Ok(found)
    };
    is_file && read().is_ok_and(|found| MARK.starts_with(&found))
}

/// Returns whether this is the name of the mark file.
pub(crate) fn is_mark(name: &[u8]) -> bool {
    name == MARK_FILE
}

/// Writes the mark file into a new staging area.
pub(crate) fn mark(directory: &Dir) -> io::Result<()> {
    if directory.try_stamp_at(MARK_FILE)?.is_some() {
        return Ok(());
    }
    let mut file = directory.create_own_file(MARK_FILE)?;
    directory.write_own(&mut file, MARK)
}
