//! Reads a settings file. Handles symlinks, directories and special files in its place.

use std::{
    io::{ErrorKind, Read},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use super::{WORKSPACE_FILE, file::Quotes};
use crate::{
    disk::{self, Dir, FileType, private},
    error::{Error, Result, While},
    model::MAX_RULE_BYTES,
};

/// The contents of a settings file.
pub(super) struct FoundFile {
    pub(super) bytes: Vec<u8>,
    /// Whether an error message may quote the contents.
    pub(super) quotes: Quotes,
}

/// Reads the user's own settings file. Returns `None` if it does not exist.
pub(super) fn of_user(file: &Path) -> Result<Option<Vec<u8>>> {
    let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else { return Ok(None) };
    match Dir::open(directory) {
        Ok(directory) => Ok(in_directory(&directory, name.as_bytes(), file)?.map(|found| found.bytes)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(error).or_fail("read the settings file", file),
    }
}

/// Reads the workspace's own settings file. Returns `None` if it does not exist, or if the workspace was deleted.
pub(super) fn in_workspace(root: &Path) -> Result<Option<FoundFile>> {
    if !private::exists(root) {
        return Ok(None);
    }
    let file = root.join(WORKSPACE_FILE);
    let directory = Dir::open(root).or_fail("read the settings file", &file)?;
    in_directory(&directory, WORKSPACE_FILE.as_bytes(), &file)
}

fn in_directory(directory: &Dir, name: &[u8], file: &Path) -> Result<Option<FoundFile>> {
    let stamp = directory.try_stamp_at(name).or_fail("read the settings file", file)?;
    let problem = match stamp.as_ref().map(FileType::of) {
        None => return Ok(None),
        Some(FileType::File) => {
            let mut bytes = Vec::new();
            let read = directory.open_file(name).and_then(|file| file.take(MAX_RULE_BYTES + 1).read_to_end(&mut bytes));
            return match read {
                Ok(_) => Ok(Some(FoundFile { bytes, quotes: Quotes::Allowed })),
                Err(error) => Err(unreadable(file, &error)),
            };
        }
        // Users share rules between workspaces with symlinks. In a workspace from a stranger, a symlink may lead to a
        // secret file, so its contents are never quoted.
        Some(FileType::Symlink) => match behind_link(file)? {
            Ok(bytes) => return Ok(Some(FoundFile { bytes, quotes: Quotes::Withheld })),
            Err(problem) => problem,
        },
        Some(FileType::Directory) => "it is a directory",
        Some(FileType::Special) => "it is not a regular file",
    };
    Err(Error::Settings { file: file.to_owned(), problem: problem.into() })
}

/// Returns the same kind of error as for an invalid file, since callers treat both alike.
fn unreadable(file: &Path, error: &std::io::Error) -> Error {
    Error::Settings { file: file.to_owned(), problem: format!("it can't be read: {error}") }
}

/// Returns the bytes of the file that a symlink leads to. The inner error says what is wrong with the target.
fn behind_link(link: &Path) -> Result<Result<Vec<u8>, &'static str>> {
    let stamp = disk::stamp_following(link).map_err(|error| unreadable(link, &error))?;
    let nowhere = "it is a symbolic link to a file that does not exist";
    Ok(match stamp.as_ref().map(FileType::of) {
        None => Err(nowhere),
        Some(FileType::Directory) => Err("it is a symbolic link to a directory"),
        Some(FileType::File) => disk::read_rules(link).map_err(|error| unreadable(link, &error))?.ok_or(nowhere),
        Some(_) => Err("it is a symbolic link to something that is not a regular file"),
    })
}
