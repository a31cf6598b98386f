//! Finding the workspace and its store from where the caller stands.

use std::{
    cell::OnceCell,
    path::{Path, PathBuf},
};

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
        (Start::At(_), store) => Ok(at(path, &Stores::below(stores), store)),
        (Start::Around(_), Some(store)) => Ok(around_given_store(path, store)),
        (Start::Around(_), None) => Ok(around(path, &Stores::below(stores))),
    }
}

fn at(root: PathBuf, stores: &Stores, store: Option<&Path>) -> Location {
    let store = match store {
        Some(store) => store.to_owned(),
        None => stores.of(&root).unwrap_or_else(|| stores.own_name(&root)),
    };
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

fn around(path: PathBuf, stores: &Stores) -> Location {
    let repository = nearest_repository(&path);
    let with_store = path.ancestors().find_map(|root| Some((root.to_owned(), stores.of(root)?)));
    if let Some((root, store)) = with_store {
        let nearer_repository = repository.filter(|repository| repository.starts_with(&root) && *repository != root);
        return Location { root, store, nearer_repository };
    }
    let root = repository.unwrap_or(path);
    let store = stores.own_name(&root);
    Location { root, store, nearer_repository: None }
}

fn nearest_repository(path: &Path) -> Option<PathBuf> {
    path.ancestors().find(|ancestor| private::exists(&ancestor.join(".git"))).map(Path::to_owned)
}

fn is_store(store: &Path) -> bool {
    store::is_store(&Layout::new(store))
}

/// All stores, and whose they are.
struct Stores<'a> {
    directory: &'a Path,
    /// Read only where a workspace has no store under its own name.
    all: OnceCell<Vec<(PathBuf, IdentityFile)>>,
}

impl<'a> Stores<'a> {
    fn below(directory: &'a Path) -> Self {
        Self { directory, all: OnceCell::new() }
    }

    /// The store of this workspace, under its own name or, after a move, under an older one; none where it has none.
    fn of(&self, root: &Path) -> Option<PathBuf> {
        let own = self.own_name(root);
        if is_store(&own) { Some(own) } else { self.under_another_name(root) }
    }

    /// The store under the workspace's own name, whether it exists or not. A workspace that was moved away keeps its
    /// store, and with it the name: the next directory under its old path takes another.
    fn own_name(&self, root: &Path) -> PathBuf {
        let name = store_name(root);
        let nth = |number: usize| match number {
            1 => self.directory.join(&name),
            _ => self.directory.join(format!("{name}-{number}")),
        };
        let taken: Vec<PathBuf> = (1..).map(nth).take_while(|store| is_store(store)).collect();
        // Whoever had the name before may be out of sight by now; this directory is still the one that it is.
        let is_its_own = |store: &&PathBuf| taken.len() > 1 && is_of_this_directory(store, root);
        let found = taken.iter().find(is_its_own).or_else(|| taken.iter().find(|store| !is_of_another(store, root)));
        found.cloned().unwrap_or_else(|| nth(taken.len() + 1))
    }

    /// The store that knows this very directory, which is not where it was; else one that knows it by its path, where it
    /// was made anew.
    fn under_another_name(&self, root: &Path) -> Option<PathBuf> {
        let own = IdentityFile::of(root).ok()??;
        let is_moved =
            |known: &IdentityFile| known.is_same_directory(&own) && (known.path == own.path || !is_where_it_was(known));
        let is_made_anew = |known: &IdentityFile| known.path == own.path && moved_beside(known).is_none();
        let find = |is_it: &dyn Fn(&IdentityFile) -> bool| {
            let found = self.all().iter().find(|(store, known)| is_it(known) && is_store(store));
            found.map(|(store, _)| store.clone())
        };
        find(&is_moved).or_else(|| find(&is_made_anew))
    }

    fn all(&self) -> &[(PathBuf, IdentityFile)] {
        self.all.get_or_init(|| {
            let stores =
                private::names(self.directory).unwrap_or_default().into_iter().map(|name| self.directory.join(name));
            stores.filter_map(|store| Some((store.clone(), IdentityFile::read(&Layout::new(&store))?))).collect()
        })
    }
}

fn is_of_this_directory(store: &Path, root: &Path) -> bool {
    let known = IdentityFile::read(&Layout::new(store));
    let own = IdentityFile::of(root).ok().flatten();
    known.zip(own).is_some_and(|(known, own)| known.is_same_directory(&own))
}

/// Is it the store of a workspace that lies elsewhere by now?
fn is_of_another(store: &Path, root: &Path) -> bool {
    let Some(known) = IdentityFile::read(&Layout::new(store)) else { return false };
    let Some(owner) = known.path.to_path() else { return false };
    if owner != root {
        return !is_of_this_directory(store, root);
    }
    is_moved_away(&known)
}

/// Was the directory that a store belongs to renamed, and has another one taken its path?
pub(crate) fn is_moved_away(known: &IdentityFile) -> bool {
    let there = known.path.to_path().and_then(|path| IdentityFile::of(&path).ok()?);
    there.is_some_and(|there| known.is_another_directory(&there)) && moved_beside(known).is_some()
}

/// Where the directory is that a store belongs to, if it was renamed and stayed beside its old name.
pub(crate) fn moved_beside(known: &IdentityFile) -> Option<PathBuf> {
    let old = known.path.to_path()?;
    let beside = old.parent()?;
    let candidates = private::names(beside).ok()?.into_iter().map(|name| beside.join(name));
    let is_it = |path: &PathBuf| {
        let found = IdentityFile::of(path).ok().flatten();
        // Where no time of birth is kept the inode has to do: what is taken for it is only kept.
        found.is_some_and(|found| match (found.born, known.born) {
            (Some(_), Some(_)) => known.is_same_directory(&found),
            _ => (found.device, found.inode) == (known.device, known.inode),
        })
    };
    candidates.filter(|path| *path != old).find(is_it)
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
