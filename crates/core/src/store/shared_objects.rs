//! Objects that two stores share: their packs and loose objects are the same files.
//!
//! Such a file is never written in place. A store that no longer needs it removes only its own name of it.

use std::{ffi::OsStr, io, path::Path};

use super::Layout;
use crate::disk::{self, private};

/// Gives a new store all objects of another one. The lock of the other store is held, so that its packs stay.
pub(super) fn share(from: &Layout, to: &Layout) -> io::Result<()> {
    private::make_directories(&to.packs())?;
    let names = private::names(&from.packs())?;
    // An index without its pack would be damage. A pack without its index is completed by the next writer.
    for ending in ["pack", "idx"] {
        let is_meant = |name: &&std::ffi::OsString| Path::new(name).extension() == Some(OsStr::new(ending));
        link_all(&from.packs(), &to.packs(), names.iter().filter(is_meant))?;
    }
    for name in private::names(&from.objects())? {
        let is_loose = name.len() == 2 && name.to_str().is_some_and(|name| u8::from_str_radix(name, 16).is_ok());
        if is_loose {
            let [from, to] = [from, to].map(|layout| layout.objects().join(&name));
            private::make_directories(&to)?;
            link_all(&from, &to, private::names(&from)?.iter())?;
        }
    }
    Ok(())
}

fn link_all<'n>(from: &Path, to: &Path, names: impl Iterator<Item = &'n std::ffi::OsString>) -> io::Result<()> {
    let is_finished = |name: &&std::ffi::OsString| !name.to_string_lossy().starts_with(private::TEMPORARY_PREFIX);
    for name in names.filter(is_finished) {
        disk::link_store_file(&from.join(name), &to.join(name))?;
    }
    private::sync_directory(to)
}
