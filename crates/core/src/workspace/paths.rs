//! Converts paths that a caller names into paths inside the workspace.

use std::path::{Component, Path, PathBuf};

use super::Workspace;
use crate::{
    disk,
    error::{Error, Result},
    model::WorkspacePath,
};

impl Workspace {
    /// Converts a path that a caller named, relative to `current` or absolute, into one inside the workspace.
    ///
    /// Symlinks in the path above the workspace are resolved. Symlinks inside it are not: they are entries like any
    /// other.
    pub fn path_from(&self, current: &Path, named: &Path) -> Result<WorkspacePath> {
        use std::os::unix::ffi::OsStrExt;
        let outside = || Error::PathOutsideWorkspace { path: named.to_owned(), root: self.root().to_owned() };
        let absolute = normalize(&current.join(named)).ok_or_else(outside)?;
        let inside = match absolute.strip_prefix(self.root()) {
            Ok(inside) => inside.to_owned(),
            // The path leads through a symlink: find the ancestor that is the workspace itself.
            Err(_) => self.below_another_spelling(&absolute).ok_or_else(outside)?,
        };
        WorkspacePath::new(inside.as_os_str().as_bytes()).map_err(|_| outside())
    }

    fn below_another_spelling(&self, absolute: &Path) -> Option<PathBuf> {
        let root = disk::stamp_following(self.root()).ok()??;
        absolute.ancestors().find_map(|ancestor| {
            let stamp = disk::stamp_following(ancestor).ok()??;
            let is_root = (stamp.device, stamp.inode) == (root.device, root.inode);
            is_root.then(|| absolute.strip_prefix(ancestor).ok().map(Path::to_owned)).flatten()
        })
    }
}

/// Removes `.` and `..` from a path without looking at the disk. Returns `None` if the path leads above the root.
pub(crate) fn normalize(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            other => out.push(other),
        }
    }
    Some(out)
}
