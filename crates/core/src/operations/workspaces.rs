//! Manages many workspaces: lists them, tells which are gone, and forgets one.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    disk::{self, private},
    error::{Error, Result, While},
    spans::{operation, phase, write_span},
    store::{FoundDirectory, IdentityFile, Layout, Store},
    workspace::bindings::{is_absent, moved_beside},
};

/// A workspace that has a store.
#[derive(Debug, Clone)]
pub struct WorkspaceEntry {
    /// The workspace.
    pub path: PathBuf,
    /// Set if the workspace is there. Another directory at its path does not count.
    pub exists: bool,
    /// Set if it was deleted, rather than being on a disk that is not mounted.
    pub is_gone: bool,
    /// Set if its directory adopted another store, so that this one is only kept.
    pub is_kept: bool,
    /// Its current path, if it was renamed within its parent directory.
    pub moved_to: Option<PathBuf>,
    /// Its store.
    pub store: PathBuf,
    /// The size of the store in bytes.
    pub bytes: u64,
    /// The number of checkpoints.
    pub checkpoints: usize,
    /// The time of the newest checkpoint.
    pub newest: Option<Timestamp>,
}

/// Returns every workspace with a store in this directory, sorted by path.
pub fn workspaces(stores: &Path) -> Result<Vec<WorkspaceEntry>> {
    let _phase = phase!("workspaces");
    let mut found = Vec::new();
    for name in private::names(stores).or_fail("read", stores)? {
        let directory = stores.join(name);
        let Some(identity) = IdentityFile::read(&Layout::new(&directory)) else { continue };
        let Some(path) = identity.path.to_path() else { continue };
        // A store that can't be opened is listed too: it takes up space, and can be forgotten.
        let store = Store::open(&directory, None).ok().flatten();
        let timeline = store.as_ref().and_then(|store| store.timeline().ok());
        let newest = timeline.as_ref().and_then(|timeline| timeline.entries().last()).map(|entry| entry.time);
        let exists = !identity.is_released() && !is_absent(&identity);
        let moved_to = if exists || identity.is_released() { None } else { moved_beside(&identity) };
        found.push(WorkspaceEntry {
            is_gone: !exists && moved_to.is_none() && is_gone_for_good(&path, &identity),
            is_kept: identity.is_released(),
            moved_to,
            exists,
            path,
            bytes: private::bytes_below(&directory).or_fail("read", &directory)?,
            checkpoints: timeline.as_ref().map_or(0, |timeline| timeline.entries().len()),
            newest: newest.and_then(|time| Timestamp::from_millisecond(time).ok()),
            store: directory,
        });
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Returns whether a directory was deleted: its parent is there, seen through the mount that it was on. A directory on
/// a disk that is not mounted is not gone, nor is one that another container sees at the same path.
fn is_gone_for_good(path: &Path, known: &IdentityFile) -> bool {
    let parent = path.parent().and_then(|parent| FoundDirectory::of(parent).ok().flatten());
    !private::exists(path) && parent.is_some_and(|parent| known.is_seen_from(&parent))
}

/// Removes a store with everything in it. Does not touch the workspace. `workspace` is its current path, if the caller
/// knows that it was moved.
///
/// Returns an error while a restore of a workspace that still exists is unfinished: the files that it replaced are only
/// in the store.
pub fn forget(store: &Path, workspace: Option<&Path>, patience: Duration) -> Result<()> {
    operation(&write_span!(store, "forget"), || forget_now(store, workspace, patience))
}

fn forget_now(store: &Path, workspace: Option<&Path>, patience: Duration) -> Result<()> {
    let layout = Layout::new(store);
    if !private::exists(&layout.format()) && !private::exists(&layout.own()) {
        return Err(Error::NotAStore { path: store.to_owned() });
    }
    let _lock = Store::lock(store, store, patience)?;
    refuse_half_restored(&layout, workspace)?;
    // A process that opens the store in between creates a new one.
    Store::unmake(&layout)?;
    private::remove_store(store).or_fail("remove", store)
}

fn refuse_half_restored(layout: &Layout, workspace: Option<&Path>) -> Result<()> {
    if !private::exists(&layout.journal()) {
        return Ok(());
    }
    let known = IdentityFile::read(layout).and_then(|identity| Some((identity.path.to_path()?, identity)));
    let is_gone = |path: &Path, identity: &IdentityFile| {
        !disk::is_directory(path) && moved_beside(identity).is_none() && is_gone_for_good(path, identity)
    };
    match (workspace.filter(|path| disk::is_directory(path)), known) {
        (Some(workspace), _) => Err(Error::HalfRestored { path: workspace.to_owned() }),
        (None, Some((path, identity))) if !is_gone(&path, &identity) => Err(Error::HalfRestored { path }),
        _ => Ok(()),
    }
}
