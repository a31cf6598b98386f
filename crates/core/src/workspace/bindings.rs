//! Finds the store that belongs to a directory.

use std::{
    cell::OnceCell,
    path::{Path, PathBuf},
};

use crate::{
    disk::{self, private},
    store::{self, FoundDirectory, IdentityFile, Layout, Likeness},
};

/// A store whose own directory is gone, and that may hold the history of a directory without a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Former {
    /// The store.
    pub store: PathBuf,
    /// The path that its directory had.
    pub path: PathBuf,
}

impl Former {
    /// Returns a message for the owner of a directory without a history: where an older history is, and how to continue
    /// it.
    pub fn notice(&self, root: &Path) -> String {
        let (root_text, adopt) =
            (root.display(), format!("`backtrail workspaces --adopt {}` there", self.store.display()));
        match self.path == root {
            true => format!(
                "{root_text} is not the directory that was at this path before; to continue the old history, run {adopt}"
            ),
            false => format!(
                "{root_text} has no history yet; if it was {} before, continue that history with {adopt}",
                self.path.display()
            ),
        }
    }
}

/// All stores, with the directories that they belong to.
pub(crate) struct Stores<'a> {
    directory: &'a Path,
    /// Read only if a directory has no store under its own name.
    all: OnceCell<Vec<(PathBuf, IdentityFile)>>,
}

/// The reason why a store belongs to a directory, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// The directory that had the path is gone, and this one is empty: it continues the history.
    Heir,
    /// The directory has the recorded path, and nothing distinguishes it from the recorded directory.
    ByPath,
    /// It is the recorded directory.
    Itself,
}

impl<'a> Stores<'a> {
    pub(crate) fn below(directory: &'a Path) -> Self {
        Self { directory, all: OnceCell::new() }
    }

    /// Returns the store of this directory, under its own name or, after a move, under an older one. Returns `None` if
    /// it has none.
    pub(crate) fn of(&self, root: &Path) -> Option<PathBuf> {
        let own = FoundDirectory::of(root).ok()??;
        // A store whose identity file is lost belongs to the path that its name is made of.
        let claim_by_name = |store: &PathBuf| match IdentityFile::read(&Layout::new(store)) {
            Some(known) => claim(&known, &own),
            None => Some(Claim::ByPath),
        };
        let by_name = self.named_after(root).filter_map(|store| Some((claim_by_name(&store)?, store)));
        if let Some((_, store)) = strongest(by_name).filter(|(claim, _)| *claim > Claim::Heir) {
            return Some(store);
        }
        let known = self.all().iter().filter_map(|(store, known)| Some((claim(known, &own)?, store.clone())));
        strongest(known).map(|(_, store)| store)
    }

    /// Returns the store of a directory that was deleted. Of several, returns the one that was used last.
    pub(crate) fn of_deleted(&self, root: &Path) -> Option<PathBuf> {
        let is_its = |known: &IdentityFile| {
            !known.is_released()
                && known.path.to_path().is_some_and(|path| path == root)
                && moved_beside(known).is_none()
        };
        let idle = |store: &Path| private::age(&Layout::new(store).timeline()).unwrap_or(std::time::Duration::MAX);
        let its = self.all().iter().filter(|(_, known)| is_its(known)).map(|(store, _)| store);
        its.min_by_key(|store| idle(store)).cloned()
    }

    /// Returns the stores that have the name of this directory's path, whichever directory they belong to.
    pub(crate) fn named_after(&self, root: &Path) -> impl Iterator<Item = PathBuf> {
        self.names(root).take_while(|store| is_store(store))
    }

    /// Returns the store that a directory without one would get.
    pub(crate) fn new_name(&self, root: &Path) -> PathBuf {
        let free = self.names(root).find(|store| !is_store(store));
        free.unwrap_or_else(|| self.directory.join(store_name(root)))
    }

    /// Returns the store that may hold the history of a directory without one: the store of another directory that had
    /// its path, else the store of a directory with the same name that is gone. Of several, returns the one that was
    /// used last.
    pub(crate) fn former(&self, root: &Path) -> Option<Former> {
        let candidates = self.all().iter().filter_map(|(store, known)| {
            let path = known.path.to_path()?;
            let is_meant = path == root || (path.file_name() == root.file_name() && is_absent(known));
            let idle = private::age(&Layout::new(store).timeline()).unwrap_or(std::time::Duration::MAX);
            let rank = (path != root, idle);
            (is_meant && moved_beside(known).is_none()).then(|| (rank, Former { store: store.clone(), path }))
        });
        candidates.min_by_key(|(rank, _)| *rank).map(|(_, former)| former)
    }

    /// Returns the names that the store of a directory may have. A directory that was moved away keeps its store, and
    /// thereby the name. The next directory at its path gets another name.
    fn names(&self, root: &Path) -> impl Iterator<Item = PathBuf> {
        let first = self.directory.join(store_name(root));
        (1_usize..).map(move |number| match number {
            1 => first.clone(),
            _ => first.with_file_name(format!("{}-{number}", first.file_name().unwrap_or_default().display())),
        })
    }

    fn all(&self) -> &[(PathBuf, IdentityFile)] {
        self.all.get_or_init(|| {
            let mut names = private::names(self.directory).unwrap_or_default();
            names.sort();
            let stores = names.into_iter().map(|name| self.directory.join(name)).filter(|store| is_store(store));
            stores.filter_map(|store| Some((store.clone(), IdentityFile::read(&Layout::new(&store))?))).collect()
        })
    }
}

/// Returns the strongest claim. Of several heirs the last wins. Otherwise the first wins, so that the older store is
/// used.
fn strongest(claims: impl Iterator<Item = (Claim, PathBuf)>) -> Option<(Claim, PathBuf)> {
    claims.reduce(
        |best, next| if next.0 > best.0 || next.0 == Claim::Heir && best.0 == Claim::Heir { next } else { best },
    )
}

fn claim(known: &IdentityFile, own: &FoundDirectory) -> Option<Claim> {
    if known.is_released() {
        return None;
    }
    let is_path = known.path == own.identity.path;
    match known.likeness(own) {
        Likeness::Same if is_path || !is_elsewhere(known, own) => Some(Claim::Itself),
        Likeness::Unknown if is_path => Some(Claim::ByPath),
        Likeness::Another if is_path && is_heir(known, own) => Some(Claim::Heir),
        _ => None,
    }
}

/// Returns whether the directory of a store is still at its path, and is not this one seen through another path.
fn is_elsewhere(known: &IdentityFile, own: &FoundDirectory) -> bool {
    let there = found_at_path_of(known);
    there.is_some_and(|there| known.likeness(&there) == Likeness::Same && !there.is_also(own))
}

/// Returns whether a directory continues the history of another one that had its path: the other one is certainly gone,
/// and this one is empty.
pub(crate) fn is_heir(known: &IdentityFile, own: &FoundDirectory) -> bool {
    let path = own.identity.path.to_path();
    known.path == own.identity.path
        && known.is_seen_from(own)
        && !own.is_mount_top()
        && path.is_some_and(|path| disk::is_empty(&path).unwrap_or(false))
        && moved_beside(known).is_none()
}

/// Returns whether the directory of a store is not at its path: nothing is there, or another directory.
pub(crate) fn is_absent(known: &IdentityFile) -> bool {
    found_at_path_of(known).is_none_or(|there| known.likeness(&there) == Likeness::Another)
}

/// Returns the directory that is at the path of a store's own directory, or `None` if there is none.
pub(crate) fn found_at_path_of(known: &IdentityFile) -> Option<FoundDirectory> {
    let path = known.path.to_path().filter(|path| disk::is_directory(path))?;
    FoundDirectory::of(&path).ok()?
}

/// Returns the path of the directory that a store belongs to, if it was renamed within its parent directory.
pub(crate) fn moved_beside(known: &IdentityFile) -> Option<PathBuf> {
    let old = known.path.to_path()?;
    let beside = old.parent()?;
    let candidates = private::names(beside).ok()?.into_iter().map(|name| beside.join(name));
    let is_it = |path: &PathBuf| {
        let found = FoundDirectory::of(path).ok().flatten();
        found.is_some_and(|found| match known.likeness(&found) {
            Likeness::Same => true,
            // Device and inode number are enough: a wrong match only makes Backtrail keep a store.
            Likeness::Unknown => (found.identity.device, found.identity.inode) == (known.device, known.inode),
            Likeness::Another => false,
        })
    };
    candidates.filter(|path| *path != old).find(is_it)
}

pub(crate) fn is_store(store: &Path) -> bool {
    store::is_store(&Layout::new(store))
}

/// Returns the name of a store: the name of the workspace and a hash of its whole path.
fn store_name(root: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let hash = xxhash_rust::xxh3::xxh3_64(root.as_os_str().as_bytes());
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-') { c } else { '_' })
        .take(40)
        .collect();
    let plain = plain.trim_start_matches(['.', '-']);
    format!("{}-{hash:016x}", if plain.is_empty() { "workspace" } else { plain })
}
