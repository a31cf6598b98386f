//! A directory elsewhere that an operation fills with files, and the mark in it while it is not complete.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::{
    disk::private,
    error::{Error, Result, While},
    workspace::{Workspace, normalize},
};

impl Workspace {
    /// Returns an error for a target inside the workspace or the store. In the workspace, the files would count as new
    /// files of its own. In the store, they would not belong to anything.
    pub(super) fn refuse_own_places(&self, directory: &Path) -> Result<()> {
        // The path as it is spelled, and the part of it that exists with its links resolved.
        let there = directory.ancestors().find_map(|ancestor| private::canonical(ancestor).ok());
        let places: Vec<PathBuf> = there.into_iter().chain(normalize(directory)).collect();
        for (part, root) in [("workspace", self.root()), ("store", self.store_directory())] {
            let own = match private::canonical(root) {
                // The workspace may be gone: then its checkpoints are wanted most.
                Err(error) if error.kind() == io::ErrorKind::NotFound => root.to_owned(),
                found => found.or_fail("find", root)?,
            };
            if places.iter().any(|place| place.starts_with(&own)) {
                return Err(Error::NotElsewhere { path: directory.to_owned(), part, root: root.to_owned() });
            }
        }
        Ok(())
    }
}

/// Returns the error for a directory that holds something already.
pub(super) fn not_empty(path: &Path) -> Error {
    Error::NotEmpty { path: path.to_owned() }
}

/// Returns a name for the mark that is not taken. Appends a number if the plain name is. The name is the same each
/// time.
pub(super) fn free_name(plain: &str, is_taken: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut name = plain.as_bytes().to_vec();
    for number in 1.. {
        if !is_taken(&name) {
            break;
        }
        name = format!("{plain}-{number}").into_bytes();
    }
    name
}
