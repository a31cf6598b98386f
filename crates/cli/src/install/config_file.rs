//! A configuration file of an agent. Replaced atomically; symlinks and permissions are preserved.

use std::{
    fs::{self, File, Permissions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
};

use backtrail::app_files;

/// The byte order mark that some editors write before UTF-8 text.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// A file that may exist.
#[derive(Debug, Clone)]
pub(crate) struct ConfigFile {
    /// The path as the agent spells it.
    pub(crate) path: PathBuf,
    /// The part of the file that this installation owns. Set if several installations share the file.
    pub(crate) part: Option<String>,
    /// The file behind all symlinks. Writing replaces this file, so that a symlink stays a symlink.
    target: PathBuf,
    bytes: Option<Vec<u8>>,
    mode: Option<u32>,
    owner: Option<(u32, u32)>,
}

/// The maximum number of symlinks in a chain. A longer chain is treated as a loop.
const MAX_LINKS: usize = 40;

impl ConfigFile {
    /// Reads the file. A missing file is not an error.
    pub(crate) fn read(path: &Path) -> io::Result<Self> {
        let target = behind_links(path)?;
        let (bytes, metadata) = match fs::read(&target) {
            Ok(bytes) => (Some(bytes), Some(fs::metadata(&target)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => (None, None),
            Err(error) => return Err(error),
        };
        Ok(Self {
            path: path.to_owned(),
            part: None,
            target,
            bytes,
            mode: metadata.as_ref().map(|metadata| metadata.mode() & 0o7777),
            owner: metadata.as_ref().map(|metadata| (metadata.uid(), metadata.gid())),
        })
    }

    /// Returns whether the file exists.
    pub(crate) fn exists(&self) -> bool {
        self.bytes.is_some()
    }

    /// Returns the text without a byte order mark. Returns an empty text if the file is missing, and `None` if it is
    /// not UTF-8.
    pub(crate) fn text(&self) -> Option<&str> {
        let text = std::str::from_utf8(self.bytes.as_deref().unwrap_or_default()).ok()?;
        Some(text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text))
    }

    fn has_mark(&self) -> bool {
        self.bytes.as_ref().is_some_and(|bytes| bytes.starts_with(BYTE_ORDER_MARK.as_bytes()))
    }

    /// Replaces the file's text. Returns the directories that had to be created, outermost first.
    pub(crate) fn write(&self, text: &str, is_executable: bool) -> io::Result<Vec<PathBuf>> {
        let mark = if self.has_mark() { BYTE_ORDER_MARK } else { "" };
        let usual_mode = if is_executable { 0o777 } else { 0o666 };
        self.replace(format!("{mark}{text}").as_bytes(), usual_mode, self)
    }

    /// Replaces the file's bytes, with the permissions and the owner of `like`.
    fn replace(&self, bytes: &[u8], usual_mode: u32, like: &Self) -> io::Result<Vec<PathBuf>> {
        let directory = self.target.parent().ok_or(io::ErrorKind::InvalidInput)?;
        let made = make_directories(directory)?;
        self.refuse_if_changed()?;
        let (mut file, temporary) = temporary_in(directory, like.mode.unwrap_or(usual_mode))?;
        let result = (|| {
            file.write_all(bytes)?;
            if let Some(mode) = like.mode {
                file.set_permissions(Permissions::from_mode(mode))?;
            }
            if let Some((user, group)) = like.owner {
                app_files::set_owner(&file, user, group)?;
            }
            file.sync_all()?;
            fs::rename(&temporary, &self.target)
        })();
        if let Err(error) = result {
            drop(fs::remove_file(&temporary));
            return Err(error);
        }
        File::open(directory)?.sync_all()?;
        Ok(made)
    }

    /// Removes the file. Also removes these directories, innermost first, as long as they are empty.
    pub(crate) fn remove(&self, directories: &[PathBuf]) -> io::Result<()> {
        self.refuse_if_changed()?;
        fs::remove_file(&self.target)?;
        for directory in directories.iter().rev() {
            if fs::remove_dir(directory).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Restores the content that was read.
    pub(crate) fn put_back(&self, made: &[PathBuf]) -> io::Result<()> {
        let present = Self::read(&self.path)?;
        match &self.bytes {
            Some(bytes) => present.replace(bytes, 0o666, self).map(drop),
            None if present.exists() => present.remove(made),
            None => Ok(()),
        }
    }

    /// Fails if the file was changed since it was read: the agent itself writes to its files, too.
    fn refuse_if_changed(&self) -> io::Result<()> {
        let present = match fs::read(&self.target) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if present == self.bytes {
            return Ok(());
        }
        Err(io::Error::other("another process wrote to it at the same time; try again"))
    }
}

/// Resolves symlinks. Does not use `canonicalize`, so that a dangling symlink is not an error.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(link) => path = path.parent().unwrap_or(Path::new("/")).join(link),
            Err(_) => return Ok(path),
        }
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Creates a directory with its parents. Returns the ones that were missing, outermost first.
fn make_directories(path: &Path) -> io::Result<Vec<PathBuf>> {
    let missing: Vec<PathBuf> =
        path.ancestors().take_while(|ancestor| !ancestor.exists()).map(Path::to_owned).collect();
    app_files::make_directories(path)?;
    Ok(missing.into_iter().rev().collect())
}

fn temporary_in(directory: &Path, mode: u32) -> io::Result<(File, PathBuf)> {
    for attempt in 0..1_000 {
        let path = directory.join(format!(".backtrail-{}-{attempt}.tmp", std::process::id()));
        match app_files::create_new(&path, mode) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn symlink_mode_and_byte_order_mark_are_kept() {
        let place = tempfile::tempdir().unwrap();
        let (real, link) = (place.path().join("real"), place.path().join("link"));
        fs::write(&real, "\u{feff}one").unwrap();
        fs::set_permissions(&real, Permissions::from_mode(0o604)).unwrap();
        symlink("real", &link).unwrap();
        let file = ConfigFile::read(&link).unwrap();
        assert_eq!(file.text(), Some("one"));
        file.write("two", false).unwrap();
        assert_eq!(fs::read_link(&link).unwrap(), Path::new("real"));
        assert_eq!(fs::read(&real).unwrap(), "\u{feff}two".as_bytes());
        assert_eq!(fs::metadata(&real).unwrap().mode() & 0o777, 0o604);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
    }

    /// Regression: a removed hook script was put back without its execute permission.
    #[test]
    fn a_removed_file_is_put_back_with_its_mode_and_byte_order_mark() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("hook");
        fs::write(&path, "\u{feff}#!/bin/sh").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o750)).unwrap();
        let file = ConfigFile::read(&path).unwrap();
        file.remove(&[]).unwrap();
        file.put_back(&[]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), "\u{feff}#!/bin/sh".as_bytes());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o750);
    }

    #[test]
    fn a_concurrent_change_is_not_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        let file = ConfigFile::read(&path).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert!(file.write("ours", false).is_err());
        assert_eq!(fs::read(&path).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }

    #[test]
    fn the_target_of_a_dangling_symlink_is_created_and_removed() {
        let place = tempfile::tempdir().unwrap();
        symlink("a/b/file", place.path().join("link")).unwrap();
        let link = place.path().join("link");
        let made = ConfigFile::read(&link).unwrap().write("x", false).unwrap();
        assert_eq!(made, [place.path().join("a"), place.path().join("a/b")]);
        ConfigFile::read(&link).unwrap().remove(&made).unwrap();
        assert!(fs::symlink_metadata(&link).is_ok() && !place.path().join("a").exists());
    }
}
