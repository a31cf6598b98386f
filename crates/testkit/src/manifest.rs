//! Reads a tree with plain `std::fs`, independent of the engine, so that a bug in the engine can't hide itself.

use std::{
    collections::BTreeMap,
    fmt,
    os::unix::{ffi::OsStrExt, fs::PermissionsExt},
    path::Path,
};

/// An entry of a tree.
#[derive(Clone, PartialEq, Eq)]
pub enum Found {
    /// A file: permission bits and bytes.
    File(u32, Vec<u8>),
    /// A symlink and its target.
    Link(Vec<u8>),
    /// A directory and its permission bits.
    Directory(u32),
    /// Any other kind of file.
    Special,
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(mode, bytes) => {
                let shown = &bytes[..bytes.len().min(40)];
                write!(f, "file {mode:o} {} bytes {:?}", bytes.len(), String::from_utf8_lossy(shown))
            }
            Self::Link(target) => write!(f, "link to {:?}", String::from_utf8_lossy(target)),
            Self::Directory(mode) => write!(f, "directory {mode:o}"),
            Self::Special => write!(f, "special file"),
        }
    }
}

/// Everything below a directory, by path. `.git` is skipped at every level.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Manifest(pub BTreeMap<Vec<u8>, Found>);

impl Manifest {
    /// Reads a directory.
    ///
    /// # Panics
    ///
    /// Panics if something can't be read: a test must not continue with half a tree.
    pub fn of(directory: &Path) -> Self {
        let mut found = BTreeMap::new();
        read(directory, b"", true, &mut found);
        Self(found)
    }

    /// Returns the differences to another tree, for the message of a failing test. Empty if the trees are equal.
    pub fn differences(&self, other: &Self) -> Vec<String> {
        let paths: std::collections::BTreeSet<_> = self.0.keys().chain(other.0.keys()).collect();
        paths
            .into_iter()
            .filter(|path| self.0.get(*path) != other.0.get(*path))
            .map(|path| {
                let name = String::from_utf8_lossy(path);
                format!("{name}: {:?} against {:?}", self.0.get(path), other.0.get(path))
            })
            .collect()
    }

    /// Checks that two trees are equal.
    ///
    /// # Panics
    ///
    /// Panics if they are not, naming each path.
    #[track_caller]
    pub fn assert_same(&self, other: &Self, what: &str) {
        let differences = self.differences(other);
        assert!(differences.is_empty(), "{what}:\n  {}", differences.join("\n  "));
    }

    /// Returns whether a file has exactly these bytes.
    pub fn holds(&self, bytes: &[u8]) -> bool {
        self.0.values().any(|found| matches!(found, Found::File(_, held) if held == bytes))
    }
}

impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(path, found)| (String::from_utf8_lossy(path), found))).finish()
    }
}

/// Returns every byte below a git directory, or of a `.git` file.
///
/// # Panics
///
/// Panics if something can't be read.
pub fn git_directory_bytes(directory: &Path) -> Manifest {
    let mut found = BTreeMap::new();
    if directory.is_dir() {
        read(directory, b"", false, &mut found);
    } else {
        found.insert(Vec::new(), entry(directory));
    }
    Manifest(found)
}

fn read(directory: &Path, above: &[u8], without_git: bool, found: &mut BTreeMap<Vec<u8>, Found>) {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for child in entries {
        let child = child.unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        let name = child.file_name();
        if without_git && name == ".git" {
            continue;
        }
        let mut path = above.to_vec();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name.as_bytes());
        let what = entry(&child.path());
        let is_directory = matches!(what, Found::Directory(_));
        found.insert(path.clone(), what);
        if is_directory {
            read(&child.path(), &path, without_git, found);
        }
    }
}

fn entry(path: &Path) -> Found {
    let fail = |error: std::io::Error| -> ! { panic!("{}: {error}", path.display()) };
    let metadata = std::fs::symlink_metadata(path).unwrap_or_else(|error| fail(error));
    let mode = metadata.permissions().mode() & 0o7777;
    if metadata.is_symlink() {
        let target = std::fs::read_link(path).unwrap_or_else(|error| fail(error));
        Found::Link(target.as_os_str().as_bytes().to_vec())
    } else if metadata.is_dir() {
        Found::Directory(mode)
    } else if metadata.is_file() {
        Found::File(mode, std::fs::read(path).unwrap_or_else(|error| fail(error)))
    } else {
        Found::Special
    }
}
