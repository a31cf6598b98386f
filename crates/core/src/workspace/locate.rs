//! Finds the workspace and its store, from the directory of the caller.

use std::path::{Path, PathBuf};

use tracing::debug;

use crate::{
    disk::{self, private},
    error::{Error, Result},
    model::WorkspacePath,
    store::{IdentityFile, Layout},
    workspace::{
        Options, Workspace,
        bindings::{Former, Stores},
    },
};

/// The directory from which a workspace is searched.
#[derive(Debug, Clone)]
pub enum Start<'a> {
    /// This directory is the workspace.
    At(PathBuf),
    /// The workspace is this directory or one above it. Its settings determine whether it skips a repository inside of
    /// it.
    Around(PathBuf, OptionsOf<'a>),
}

/// Returns the options to open a workspace at a given root with.
#[derive(Clone, Copy)]
pub struct OptionsOf<'a>(pub &'a dyn Fn(&Path) -> Options);

impl std::fmt::Debug for OptionsOf<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OptionsOf")
    }
}

/// A workspace and its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// The workspace, as a canonical path.
    pub root: PathBuf,
    /// Its store, which need not exist yet.
    pub store: PathBuf,
    /// A directory with a `.git` that is nearer to the start than the workspace, and that the workspace captures.
    pub nearer_repository: Option<PathBuf>,
    /// A store that may hold the history of a workspace without a store.
    pub former: Option<Former>,
}

impl Location {
    /// Returns the location of a workspace whose store was given explicitly.
    pub(crate) fn with_store(root: PathBuf, store: PathBuf) -> Self {
        Self { root, store, nearer_repository: None, former: None }
    }
}

/// Finds the workspace: the nearest directory that has a store, else the nearest that holds `.git`, else the start. A
/// nearer `.git` wins over a store whose workspace has no `.git` itself, and over a workspace that skips it.
///
/// `stores` is the directory that holds the stores; `store` names one elsewhere.
pub fn locate(start: &Start<'_>, stores: &Path, store: Option<&Path>) -> Result<Location> {
    let named = match start {
        Start::At(path) | Start::Around(path, _) => path,
    };
    let stores = Stores::below(stores);
    let path = match private::canonical(named) {
        Ok(path) => path,
        Err(source) => {
            let deleted = matches!(start, Start::At(_)).then(|| deleted(named, &stores, store)).flatten();
            return deleted.ok_or(Error::NoWorkspace { path: named.clone(), source });
        }
    };
    if !disk::is_directory(&path) {
        return Err(Error::NotADirectory { path: named.clone() });
    }
    let location = match (start, store) {
        (Start::At(_), Some(store)) => Location::with_store(path, store.to_owned()),
        (Start::At(_), None) => at(path, &stores),
        (Start::Around(..), Some(store)) => around_given_store(path, store),
        (Start::Around(_, options), None) => around(path, &stores, *options),
    };
    debug!(workspace = ?location.root, store = ?location.store, "located the workspace");
    Ok(location)
}

fn at(root: PathBuf, stores: &Stores<'_>) -> Location {
    match stores.of(&root) {
        Some(store) => Location::with_store(root, store),
        None => {
            let (store, former) = (stores.new_name(&root), stores.former(&root));
            Location { root, store, nearer_repository: None, former }
        }
    }
}

/// Locates a workspace whose directory was deleted. Its store can be read, and a restore creates the directory again.
fn deleted(named: &Path, stores: &Stores<'_>, store: Option<&Path>) -> Option<Location> {
    let root = private::canonical(named.parent()?).ok()?.join(named.file_name()?);
    if private::exists(&root) {
        return None;
    }
    let store = match store {
        Some(store) => {
            let known = IdentityFile::read(&Layout::new(store))?;
            (known.path.to_path()? == root).then(|| store.to_owned())?
        }
        None => stores.of_deleted(&root)?,
    };
    debug!(workspace = ?root, store = ?store, "located a workspace that was deleted");
    Some(Location::with_store(root, store))
}

/// Locates the workspace of an explicitly given store. The store knows its workspace, once it has one.
fn around_given_store(path: PathBuf, store: &Path) -> Location {
    let owner = IdentityFile::read(&Layout::new(store)).and_then(|identity| identity.path.to_path());
    let root = match owner {
        Some(owner) if path.starts_with(&owner) => owner,
        _ => nearest_repository(&path).unwrap_or_else(|| path.clone()),
    };
    Location::with_store(root, store.to_owned())
}

fn around(path: PathBuf, stores: &Stores<'_>, options: OptionsOf<'_>) -> Location {
    let repository = nearest_repository(&path);
    let with_store = path.ancestors().find_map(|root| Some((root.to_owned(), stores.of(root)?)));
    let Some((root, store)) = with_store else { return at(repository.unwrap_or(path), stores) };
    let outer = Location::with_store(root, store);
    let is_nearer = |repository: &PathBuf| repository.starts_with(&outer.root) && *repository != outer.root;
    match repository.filter(is_nearer) {
        Some(repository) if !has_git(&outer.root) || is_skipped(&outer, &repository, options) => at(repository, stores),
        nearer_repository => Location { nearer_repository, ..outer },
    }
}

/// Returns whether a workspace skips a directory in it. Returns `false` if that can't be determined: the operation that
/// follows meets the same problem, and reports it.
fn is_skipped(outer: &Location, directory: &Path, options: OptionsOf<'_>) -> bool {
    let workspace = Workspace::new(outer.clone(), (options.0)(&outer.root));
    let inside = workspace.path_from(&outer.root, directory);
    inside.and_then(|path: WorkspacePath| workspace.skips(&path)).unwrap_or(false)
}

fn nearest_repository(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|ancestor| has_git(ancestor)).map(Path::to_owned)
}

fn has_git(directory: &Path) -> bool {
    private::exists(&directory.join(".git"))
}

/// Returns whether a directory merely holds projects: it has no `.git` itself, and several directories directly below
/// it have one.
pub(crate) fn is_folder_of_projects(directory: &Path) -> bool {
    const SEVERAL: usize = 2;
    !has_git(directory) && disk::count_repositories_in(directory, SEVERAL).is_ok_and(|count| count == SEVERAL)
}
