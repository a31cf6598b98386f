//! Asks the watcher which directories may have changed, and decides whether its answer may be used.
//!
//! Every doubt leads to a full scan.

use std::sync::Arc;

use xxhash_rust::xxh3::Xxh3;

use super::{Workspace, scanning::ScanSources};
use crate::{
    disk,
    error::Result,
    model::{CacheFile, ChangeSource, ChangedDirectories, ContentSink, Scope, WatchToken},
    scan::{ChangedPaths, Revisits, Scan, ScanWatch, has_new_link},
    store::{Layout, Store, WatchNote},
    watcher::SocketWatcher,
};

/// The part that a watcher plays in an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WatcherUse {
    /// Directories that did not change according to the watcher are not looked at.
    #[default]
    Trusted,
    /// Everything is scanned. The watcher is only told, so that the next operation can rely on it.
    Told,
    /// The watcher is ignored.
    Off,
}

/// What the watcher said before a scan.
pub(crate) struct Watched {
    source: Arc<dyn ChangeSource>,
    /// The device and the inode of the workspace's directory.
    root: (u64, u64),
    note: Option<WatchNote>,
    changes: Option<ChangedDirectories>,
    token: Option<WatchToken>,
}

impl Workspace {
    /// Makes all further operations scan everything. The watcher is still told, unless it is ignored.
    pub fn scan_fully(&mut self) {
        if self.options.watcher == WatcherUse::Trusted {
            self.options.watcher = WatcherUse::Told;
        }
    }

    /// Asks the watcher, if one is running. The stat cache must be loaded after this.
    pub(crate) fn ask_watcher(&self, store: &Store, scope: &Scope) -> Option<Watched> {
        self.ask_watcher_for(store, scope, self.options().watcher)
    }

    /// Tells the watcher that everything is going to be scanned.
    pub(crate) fn tell_watcher(&self, store: &Store) -> Option<Watched> {
        let part = if self.options().watcher == WatcherUse::Off { WatcherUse::Off } else { WatcherUse::Told };
        self.ask_watcher_for(store, &Scope::Whole, part)
    }

    fn ask_watcher_for(&self, store: &Store, scope: &Scope, part: WatcherUse) -> Option<Watched> {
        if part == WatcherUse::Off || *scope != Scope::Whole {
            return None;
        }
        let source = self.change_source(store.layout())?;
        let stamp = disk::stamp_following(self.root()).ok()??;
        let root = (stamp.device, stamp.inode);
        let note = WatchNote::read(store.layout()).filter(|note| Some(note.cache) == cache_file(store.layout()));
        let answer = source.changes_since(root, note.as_ref().map(|note| &note.token))?;
        let is_trusted = part == WatcherUse::Trusted;
        let changes = answer.changes.ok().filter(|_| is_trusted && note.is_some());
        Some(Watched { source, root, note, changes, token: answer.token })
    }

    fn change_source(&self, layout: &Layout) -> Option<Arc<dyn ChangeSource>> {
        match &self.options().change_source {
            Some(source) => Some(Arc::clone(source)),
            // Most workspaces have none: this costs them one look.
            None if disk::private::exists(&layout.watcher_socket()) => {
                Some(Arc::new(SocketWatcher::at(layout.watcher())))
            }
            None => None,
        }
    }

    /// Scans the workspace. Looks only at what changed if the watcher knows that.
    pub(crate) fn scan_watched(
        &self,
        sources: &ScanSources<'_>,
        sink: &dyn ContentSink,
        watched: Option<Watched>,
    ) -> Result<Scan> {
        let Some(watched) = watched else { return self.scan_into(sources, sink, None) };
        let context = self.watch_context(sources, watched.root);
        let note = watched.note.as_ref().filter(|note| note.context == context && sources.cache.is_some());
        let known = note.map(|note| Revisits { always: note.always.clone(), for_verdicts: note.for_verdicts.clone() });
        let changed = match (&watched.changes, &known) {
            (Some(changes), Some(known)) => Some(changed_paths(changes, known, sources)),
            _ => None,
        };
        let mut is_partial = changed.is_some();
        let mut scan = self.scan_into(sources, sink, changed.as_ref())?;
        if is_partial && has_new_link(&scan) {
            // An event names one of the directories that contain the file, and the others are not known.
            watched.source.note_fallback("hard_links");
            is_partial = false;
            scan = self.scan_into(sources, sink, None)?;
        }
        if (scan.root.stamp.device, scan.root.stamp.inode) != watched.root {
            // The directory was replaced after the watcher was asked.
            return self.scan_into(sources, sink, None);
        }
        let is_quiet = is_partial && watched.changes.as_ref().is_some_and(|changes| changes.here.is_empty());
        let unchanged_since = note.filter(|_| is_quiet).map(|note| note.cache);
        scan.watch = watched.token.map(|token| ScanWatch { token, context, known, is_partial, unchanged_since });
        Ok(scan)
    }

    /// Returns a hash of the facts from outside the tree that decide what is captured and that no rule or verdict
    /// contains.
    fn watch_context(&self, sources: &ScanSources<'_>, root: (u64, u64)) -> u64 {
        let mut hash = Xxh3::new();
        let mut numbers = vec![root];
        numbers.extend(self.own_directories());
        for (device, inode) in numbers {
            hash.update(&device.to_le_bytes());
            hash.update(&inode.to_le_bytes());
        }
        for path in sources.own_paths() {
            hash.update(&path);
            hash.update(&[0]);
        }
        hash.digest()
    }

    /// Records the moment of the watcher that belongs to the stat cache, which was just written.
    pub(crate) fn remember_watch(&self, store: &Store, scan: &Scan) {
        let Some(watch) = &scan.watch else { return };
        let Some(cache) = cache_file(store.layout()) else { return };
        // The old moment is as good if nothing was written.
        if watch.unchanged_since == Some(cache) {
            return;
        }
        let Some(found) = Revisits::of(scan, watch.known.as_ref(), watch.is_partial) else { return };
        let note = WatchNote {
            token: watch.token.clone(),
            cache,
            context: watch.context,
            always: found.always,
            for_verdicts: found.for_verdicts,
        };
        // Without the note the next scan takes longer, and nothing else is lost.
        note.write(store.layout()).ok();
    }
}

/// Returns the file of the stat cache as it is now.
pub(crate) fn cache_file(layout: &Layout) -> Option<CacheFile> {
    Some(CacheFile::of(&disk::stamp_following(&layout.stat_cache()).ok()??))
}

/// Returns the directories that a scan has to look at.
fn changed_paths(changes: &ChangedDirectories, known: &Revisits, sources: &ScanSources<'_>) -> ChangedPaths {
    let mut always = known.always.clone();
    if !sources.has_cached_verdicts() {
        always.extend(known.for_verdicts.iter().cloned());
    }
    ChangedPaths::new(changes, &always)
}
