//! Finding the workspace and its store from where the caller stands.

use std::path::{Path, PathBuf};

use crate::{
    disk::{self, private},
    error::{Error, Result},
    store::{self, IdentityFile, Layout},
};

/// Where to start looking.
#[derive(Debug, Clone)]
pub enum Start {
    /// This directory is the workspace.
    At(PathBuf),
    /// The workspace is around this directory.
    Around(PathBuf),
}

/// A workspace and its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The workspace, in its one true spelling.
    pub root: PathBuf,
    /// Its store, whether it exists or not.
    pub store: PathBuf,
    /// A directory with a `.git` that lies nearer to the start than the workspace that was found.
    pub nearer_repository: Option<PathBuf>,
}

/// Finds the workspace: the nearest directory that has a store, else the nearest that holds `.git`, else the start.
///
/// `stores` is the directory that holds the stores; `store` names one elsewhere.
pub fn locate(start: &Start, stores: &Path, store: Option<&Path>) -> Result<Location> {
    let named = match start {
        Start::At(path) | Start::Around(path) => path,
    };
    let path = private::canonical(named).map_err(|source| Error::NoWorkspace { path: named.clone(), source })?;
    if !disk::is_directory(&path) {
        return Err(Error::NotADirectory { path: named.clone() });
    }
    match (start, store) {
        (Start::At(_), store) => Ok(at(path, stores, store)),
        (Start::Around(_), Some(store)) => Ok(around_given_store(path, store)),
        (Start::Around(_), None) => Ok(around(path, stores)),
    }
}

fn at(root: PathBuf, stores: &Path, store: Option<&Path>) -> Location {
    let store = store.map_or_else(|| find_store(&root, stores), Path::to_owned);
    Location { root, store, nearer_repository: None }
}

/// A store that was named by hand knows its workspace, once it has one.
fn around_given_store(path: PathBuf, store: &Path) -> Location {
    let owner = IdentityFile::read(&Layout::new(store)).and_then(|identity| identity.path.to_path());
    let root = match owner {
        Some(owner) if path.starts_with(&owner) => owner,
        _ => nearest_repository(&path).unwrap_or_else(|| path.clone()),
    };
    Location { root, store: store.to_owned(), nearer_repository: None }
}

fn around(path: PathBuf, stores: &Path) -> Location {
    let repository = nearest_repository(&path);
    let with_store = path.ancestors().find_map(|root| {
        let store = own_store(root, stores);
        is_store(&store).then(|| (root.to_owned(), store))
    });
    if let Some((root, store)) = with_store {
        let nearer_repository = repository.filter(|repository| repository.starts_with(&root) && *repository != root);
        return Location { root, store, nearer_repository };
    }
    if let Some((root, store)) = path.ancestors().find_map(|root| Some((root.to_owned(), moved_store(root, stores)?))) {
        return Location { root, store, nearer_repository: None };
    }
    let root = repository.unwrap_or(path);
    let store = own_store(&root, stores);
    Location { root, store, nearer_repository: None }
}

fn nearest_repository(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|ancestor| private::exists(&ancestor.join(".git"))).map(Path::to_owned)
}

fn is_store(store: &Path) -> bool {
    store::is_store(&Layout::new(store))
}

/// The store of this workspace, under its own name or, after a move, under an older one.
fn find_store(root: &Path, stores: &Path) -> PathBuf {
    let own = own_store(root, stores);
    if is_store(&own) {
        return own;
    }
    moved_store(root, stores).unwrap_or(own)
}

/// The store under the workspace's own name, whether it exists or not. A workspace that was moved away keeps its store,
/// and with it the name: the next directory under its old path takes another.
fn own_store(root: &Path, stores: &Path) -> PathBuf {
    let name = store_name(root);
    let mut store = stores.join(&name);
    let mut number = 2;
    while is_store(&store) && is_of_another(&store, root) {
        store = stores.join(format!("{name}-{number}"));
        number += 1;
    }
    store
}

/// Is it the store of a workspace that lies elsewhere by now?
fn is_of_another(store: &Path, root: &Path) -> bool {
    let Some(known) = IdentityFile::read(&Layout::new(store)) else { return false };
    let Some(owner) = known.path.to_path() else { return false };
    let is_same = || IdentityFile::of(root).is_ok_and(|own| own.is_some_and(|own| known.is_same_directory(&own)));
    if owner != root {
        return private::exists(&owner) && !is_same();
    }
    let is_another = IdentityFile::of(root).is_ok_and(|own| own.is_some_and(|own| known.is_another_directory(&own)));
    is_another && moved_beside(&known).is_some()
}

/// Where the directory is that a store belongs to, if it was renamed and stayed beside its old name.
pub(crate) fn moved_beside(known: &IdentityFile) -> Option<PathBuf> {
    let old = known.path.to_path()?;
    let beside = old.parent()?;
    let candidates = private::names(beside).ok()?.into_iter().map(|name| beside.join(name));
    let is_it = |path: &PathBuf| {
        let found = IdentityFile::of(path).ok().flatten();
        // Where no time of birth is kept the inode has to do: what is taken for it is only kept.
        found.is_some_and(|found| {
            (found.device, found.inode) == (known.device, known.inode)
                && (found.born == known.born || found.born.is_none() || known.born.is_none())
        })
    };
    candidates.filter(|path| *path != old).find(is_it)
}

/// The store of a workspace that was moved here: it knows this very directory, which is not where it was.
fn moved_store(root: &Path, stores: &Path) -> Option<PathBuf> {
    let own = IdentityFile::of(root).ok()??;
    private::names(stores).ok()?.into_iter().map(|name| stores.join(name)).find(|store| {
        IdentityFile::read(&Layout::new(store)).is_some_and(|identity| {
            identity.is_same_directory(&own) && (identity.path == own.path || !is_where_it_was(&identity))
        })
    })
}

fn is_where_it_was(known: &IdentityFile) -> bool {
    let there = known.path.to_path().and_then(|path| IdentityFile::of(&path).ok()?);
    there.is_some_and(|there| known.is_same_directory(&there))
}

/// A store's name: what the workspace is called, and a hash of its whole path.
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
