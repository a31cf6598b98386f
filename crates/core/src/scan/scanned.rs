//! The result of a scan.

use std::sync::Arc;

use super::{Revisits, StatCache, stat_cache::is_settled};
use crate::model::{
    CacheFile, Directory, Exception, ModeDefaults, Node, Reason, Scope, Skipped, Stamp, WatchToken, WorkspacePath,
};

/// The workspace as a scan read it.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) root: Directory,
    /// The time when the scan began, by the clock that stamps files.
    pub(crate) started: i64,
    /// The paths that were read.
    pub(crate) scope: Scope,
    /// The cache that the scan used.
    pub(crate) cache: Option<Arc<StatCache>>,
    /// Ignore files that are too large to be applied.
    pub(crate) unapplied_rules: Vec<WorkspacePath>,
    /// What a watcher said before the scan. `None` if there was none to ask.
    pub(crate) watch: Option<ScanWatch>,
}

/// The part of a watcher in a scan.
#[derive(Debug)]
pub(crate) struct ScanWatch {
    /// The moment before the scan.
    pub(crate) token: WatchToken,
    /// A hash of the facts from outside the tree that decided what was captured.
    pub(crate) context: u64,
    /// The directories to look at in any case, as they were known for the cache that the scan used.
    pub(crate) known: Option<Revisits>,
    /// Set if the scan looked only at what changed.
    pub(crate) is_partial: bool,
    /// The stat cache that the scan used, if nothing changed since it was written.
    pub(crate) unchanged_since: Option<CacheFile>,
}

impl Scan {
    /// Returns the usual permission bits, which the ids in this scan do not encode. Returns `None` if no ids are known.
    pub(crate) fn id_defaults(&self) -> Option<ModeDefaults> {
        self.cache.as_ref().map(|cache| cache.base().mode_defaults)
    }

    /// Returns whether a file with this stamp was last changed well before the scan, so that any later change shows in
    /// its stamp.
    pub(crate) fn is_settled(&self, stamp: &Stamp) -> bool {
        is_settled(stamp, self.started)
    }

    /// Returns whether entries are missing because the stat cache turned out to be damaged after the scan.
    pub(crate) fn lacks_entries(&self) -> bool {
        self.cache.as_ref().is_some_and(|cache| cache.is_damaged())
    }

    /// Returns the skipped paths. Omits `.git`, which is always skipped, and ignored paths, which the captured rules
    /// identify. Includes ignored paths below a directory whose `.gitignore` was itself skipped.
    pub(crate) fn skipped(&self) -> Vec<Skipped> {
        let mut skipped = Vec::new();
        collect_skipped(&self.root, &WorkspacePath::root(), false, &mut skipped);
        skipped
    }

    /// Returns the skipped paths that are worth reporting to the user.
    pub(crate) fn told_skipped(&self) -> Vec<Skipped> {
        let mut skipped = self.skipped();
        skipped.retain(|skipped| !skipped.reason.goes_without_saying());
        skipped
    }
}

impl Scan {
    /// Returns the files and symlinks that were captured only because a checkpoint holds them. Each is the second of a
    /// pair; the first is the path that the rule names, which is the same path or a directory above it.
    pub(crate) fn held(&self) -> Vec<(WorkspacePath, WorkspacePath)> {
        let mut held = Vec::new();
        collect_held(&self.root, &WorkspacePath::root(), None, &mut held);
        held
    }
}

fn collect_held(
    directory: &Directory,
    path: &WorkspacePath,
    named: Option<&WorkspacePath>,
    out: &mut Vec<(WorkspacePath, WorkspacePath)>,
) {
    if directory.cache_offset().is_some() && !directory.summary().has_held {
        return;
    }
    for entry in directory.entries() {
        let here = path.join(&entry.name);
        let is_held = entry.exception == Some(Exception::Held);
        match &entry.node {
            Node::Directory(child) => {
                let named = named.or(is_held.then_some(&here));
                collect_held(child, &here, named, out);
            }
            Node::File(_) | Node::Symlink(_) if is_held => {
                out.push((named.unwrap_or(&here).clone(), here));
            }
            _ => {}
        }
    }
}

fn collect_skipped(directory: &Directory, path: &WorkspacePath, list_ignored: bool, out: &mut Vec<Skipped>) {
    if directory.cache_offset().is_some() {
        let summary = directory.summary();
        if !(summary.has_skipped || summary.has_ignored && list_ignored) {
            return;
        }
    }
    // If the rule file was not captured, the snapshot does not tell which rules it held.
    let list_ignored = list_ignored || matches!(directory.get(b".gitignore"), Some(Node::Skipped(..)));
    for entry in directory.entries() {
        match &entry.node {
            Node::Skipped(Reason::Git, _) if entry.name == ".git" => {}
            Node::Skipped(Reason::Ignored, _) if !list_ignored => {}
            Node::Skipped(reason, _) => out.push(Skipped { path: path.join(&entry.name), reason: *reason }),
            Node::Directory(child) => collect_skipped(child, &path.join(&entry.name), list_ignored, out),
            Node::File(_) | Node::Symlink(_) => {}
        }
    }
}
