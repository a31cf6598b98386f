//! The objects of the user repository. Only regular files are read: gitoxide would wait for a FIFO forever.

use std::path::{Path, PathBuf};

use gix_hash::oid;
use gix_object::{Data, Find};

use super::UserRepository;
use crate::{
    disk::{self, private},
    error::{Error, Result},
};

/// The objects of a repository.
pub(super) struct UserObjects {
    handle: gix_odb::Handle,
    path: PathBuf,
}

impl UserRepository {
    pub(super) fn objects(&self) -> Result<UserObjects> {
        let path = self.common_dir.join("objects");
        let packs = path.join("pack");
        let packs = private::names(&packs).unwrap_or_default().into_iter().map(|name| packs.join(name));
        let mut read_by_name = packs.chain([path.join("info/alternates")]);
        if let Some(special) = read_by_name.find(|path| is_waited_for(path)) {
            return Err(Error::GitState { reason: format!("{} is not a regular file", special.display()) });
        }
        match gix_odb::at(path.clone(), gix_hash::Kind::Sha1) {
            Ok(handle) => Ok(UserObjects { handle, path }),
            Err(source) => Err(Error::Io { action: "open", path, source }),
        }
    }
}

/// Returns whether reading this path could block. A directory can't be read either, but that fails at once.
fn is_waited_for(path: &Path) -> bool {
    disk::is_special(path).unwrap_or(false) && !disk::is_directory(path)
}

impl Find for UserObjects {
    fn try_find<'a>(&self, id: &oid, buffer: &'a mut Vec<u8>) -> gix_error::Result<Option<Data<'a>>> {
        let hex = id.to_hex().to_string();
        let (directory, name) = hex.split_at(2);
        if is_waited_for(&self.path.join(directory).join(name)) {
            return Ok(None);
        }
        Find::try_find(&self.handle, id, buffer)
    }
}
