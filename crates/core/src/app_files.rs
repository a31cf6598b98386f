//! Creates and writes files that a program keeps beside the stores, and files in a user's home that it edits.
//!
//! The umask takes no permission away that the owner needs. Files that root creates in a user's directory belong to
//! that user, so that the user can continue where root was. The program alone decides about their contents.

use std::{fs::File, io, path::Path};

use crate::disk::{
    self, lock,
    private::{self, Durability},
};

/// Creates a directory that only its owner may access, with all its parents.
pub fn make_private_directories(path: &Path) -> io::Result<()> {
    private::make_directories(path)
}

/// Creates a directory with the usual permissions, with all its parents.
pub fn make_directories(path: &Path) -> io::Result<()> {
    disk::make_directories_as_neighbours(path)
}

/// Creates a file with these permission bits, as far as the umask grants them to other users. Returns an error if the
/// file exists.
pub fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    private::create_new_as_neighbours(path, mode)
}

/// Sets the user and group of a file, as far as the system permits it: only root can give files away.
pub fn set_owner(file: &File, user: u32, group: u32) -> io::Result<()> {
    disk::give_file(file, user, group)
}

/// Opens a file that exists only to be locked. Creates it if it is missing.
pub fn open_lock(path: &Path) -> io::Result<File> {
    lock::open_or_make(path)
}

/// Replaces a file with these bytes in one step, readable only by the owner. A power cut may lose them.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    private::replace(path, bytes, Durability::Unsynced)
}

/// Appends a line to a file that is readable only by the owner. Other processes may append at the same time.
pub fn append(path: &Path, line: &[u8]) -> io::Result<()> {
    private::append_beside_others(path, line)
}
