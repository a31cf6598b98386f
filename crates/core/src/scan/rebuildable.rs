//! Directories that a tool can rebuild. Except for `__pycache__` they are recognized by marks that the tool leaves, not
//! by name alone.

use std::io;

use crate::disk::{Dir, FileType};

/// The first bytes of the tag file of a cache directory, as its specification defines them.
const CACHE_TAG: &[u8] = b"Signature: 8a477f597d28d172789f06886806bc55";

/// Returns whether the directory `name` in `parent` can be rebuilt. `is_unmarked` returns whether it is known already
/// that the directory contains no mark file.
pub(crate) fn is_rebuildable(
    parent: &Dir,
    name: &[u8],
    directory: &Dir,
    is_unmarked: impl FnOnce() -> bool,
) -> io::Result<bool> {
    if name == b"__pycache__" {
        return Ok(true);
    }
    if name == b"node_modules" && is_file(parent, b"package.json")? {
        return Ok(true);
    }
    Ok(!is_unmarked() && (is_file(directory, b"pyvenv.cfg")? || is_tagged_cache(directory)?))
}

fn is_file(directory: &Dir, name: &[u8]) -> io::Result<bool> {
    Ok(directory.try_stamp_at(name)?.is_some_and(|stamp| FileType::of(&stamp) == FileType::File))
}

fn is_tagged_cache(directory: &Dir) -> io::Result<bool> {
    if !is_file(directory, b"CACHEDIR.TAG")? {
        return Ok(false);
    }
    let mut start = [0; CACHE_TAG.len()];
    let read = directory.open_file(b"CACHEDIR.TAG").and_then(|mut file| io::Read::read_exact(&mut file, &mut start));
    Ok(read.is_ok() && start == CACHE_TAG)
}
