//! Finding the workspace and its store from where the caller stands.

use std::path::{Path, PathBuf};

use crate::{
    disk::{self, private},
    error::{Error, Result},
    store::{IdentityFile, Layout},
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
        let store = stores.join(store_name(root));
        is_store_of(&store).then(|| (root.to_owned(), store))
    });
    if let Some((root, store)) = with_store {
        let nearer_repository = repository.filter(|repository| repository.starts_with(&root) && *repository != root);
        return Location { root, store, nearer_repository };
    }
    if let Some((root, store)) = path.ancestors().find_map(|root| Some((root.to_owned(), moved_store(root, stores)?))) {
        return Location { root, store, nearer_repository: None };
    }
    let root = repository.unwrap_or(path);
    let store = stores.join(store_name(&root));
    Location { root, store, nearer_repository: None }
}

fn nearest_repository(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|ancestor| private::exists(&ancestor.join(".git"))).map(Path::to_owned)
}

fn is_store_of(store: &Path) -> bool {
    private::exists(&Layout::new(store).format())
}

/// The store of this workspace, under its own name or, after a move, under an older one.
fn find_store(root: &Path, stores: &Path) -> PathBuf {
    let own = stores.join(store_name(root));
    if is_store_of(&own) {
        return own;
    }
    moved_store(root, stores).unwrap_or(own)
}

/// The store of a workspace that was moved here: it knows this very directory, and its old path is gone.
fn moved_store(root: &Path, stores: &Path) -> Option<PathBuf> {
    let own = IdentityFile::of(root).ok()??;
    private::names(stores).ok()?.into_iter().map(|name| stores.join(name)).find(|store| {
        IdentityFile::read(&Layout::new(store)).is_some_and(|identity| {
            identity.is_same_directory(&own)
                && identity.path.to_path().is_some_and(|path| path == root || !private::exists(&path))
        })
    })
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
