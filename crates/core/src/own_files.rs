//! Files that a program keeps beside the stores, and those in somebody's home that it edits.
//!
//! The umask takes nothing from them that their owner needs, and what root makes in somebody's directory is theirs: the
//! owner goes on where root was. What is in them is the program's own affair.

use std::{fs::File, io, path::Path};

use crate::disk::{
    self, lock,
    private::{self, Durability},
};

/// Makes a directory that its owner alone may look into, with all its parents.
pub fn make_private_directories(path: &Path) -> io::Result<()> {
    private::make_directories(path)
}

/// Makes a directory like others, with all its parents.
pub fn make_directories(path: &Path) -> io::Result<()> {
    disk::make_directories_as_neighbours(path)
}

/// Makes a file with these permission bits, as far as the umask lets others have them; it must not be there yet.
pub fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    private::create_new_as_neighbours(path, mode)
}

/// Opens a file that is only there to be locked, and is made where it is missing.
pub fn open_lock(path: &Path) -> io::Result<File> {
    lock::open_or_make(path)
}

/// Puts these bytes under this name in one step, readable by the owner alone. A power cut may take them.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    private::replace(path, bytes, Durability::Unsynced)
}

/// Adds a line to a file, readable by the owner alone, that other processes may add to at the same time.
pub fn append(path: &Path, line: &[u8]) -> io::Result<()> {
    private::append_beside_others(path, line)
}
