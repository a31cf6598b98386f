//! Scans the workspace: gathers the facts that decide what is captured, and passes them to [`scan`].

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{Workspace, held::Holders, watching::Watched};
use crate::{
    disk,
    error::{Error, Result},
    model::{ContentSink, OutsideRules, Scope, Stamp, Unwritable, WorkspacePath},
    scan::{CachedVerdicts, CapturePolicy, ChangedPaths, OwnLink, Scan, ScanOptions, StatCache, scan},
    spans::phase,
    store::{ForkLink, HashOnly, Store, Timeline},
    user_git::{NestedRepositories, RuleFiles, SharedObjects, UserRepository, global_excludes},
};

impl Workspace {
    /// Reads the user repository and the rules around the workspace, as they are now.
    pub(crate) fn surroundings(&self) -> Surroundings {
        let repository = self.user_repository();
        let files = RuleFiles::default();
        let outside = match &repository {
            Some(repository) => repository.outside_rules(&self.options.git, &files),
            None => {
                let global_excludes = global_excludes(&self.options.git, &files);
                OutsideRules { global_excludes, ..OutsideRules::default() }
            }
        };
        Surroundings { repository, outside, unapplied_rules: files.too_large() }
    }

    /// Returns the stat cache, if the checkpoint that it is based on still exists.
    pub(crate) fn stat_cache(&self, store: &Store, timeline: &Timeline) -> Option<Arc<StatCache>> {
        let cache = StatCache::load(&store.layout().stat_cache()).filter(|_| !store.is_distrusted())?;
        timeline.get(&cache.base().checkpoint).is_some().then_some(cache)
    }

    /// Reads the workspace, and passes contents to `sink`. Everything in the scope is looked at, unless `changed` names
    /// the directories that may differ from the cache.
    pub(crate) fn scan_into(
        &self,
        sources: &ScanSources<'_>,
        sink: &dyn ContentSink,
        changed: Option<&ChangedPaths>,
    ) -> Result<Scan> {
        let phase = phase!("scan", is_whole, is_cached, entries, bytes_read);
        phase.record("is_whole", *sources.scope == Scope::Whole).record("is_cached", sources.cache.is_some());
        let (entries, bytes_read) = (self.progress.entries(), self.progress.bytes());
        let policy = WorkspacePolicy::new(self.root(), sources);
        let mut settings = self.options.settings.scan.clone();
        settings.confirm(sources.confirmed);
        let own = self.own_directories();
        let links: Vec<OwnLink<'_>> = sources.links.iter().filter_map(own_link).collect();
        let scanned = scan(
            self.root(),
            &ScanOptions {
                settings: &settings,
                outside: &sources.surroundings.outside,
                policy: &policy,
                own: &own,
                staging_areas: sources.staging_areas,
                links: &links,
                scope: sources.scope,
                cache: sources.cache,
                changed,
                sink,
                progress: &self.progress,
            },
        );
        phase.record("entries", self.progress.entries() - entries);
        phase.record("bytes_read", self.progress.bytes() - bytes_read);
        scanned.map_err(|error| self.blame_store(error))
    }

    /// Names the store instead of the file if it was the store that failed while a file was read.
    fn blame_store(&self, error: Error) -> Error {
        match error {
            Error::Io { source, .. } if Unwritable::is_marked(&source) => {
                Error::Io { action: "write into the store", path: self.store_directory().to_owned(), source }
            }
            other => other,
        }
    }

    pub(crate) fn own_directories(&self) -> Vec<(u64, u64)> {
        let directories = self.options.own_directories.iter().map(PathBuf::as_path).chain([self.store_directory()]);
        let stamps = directories.filter_map(|path| disk::stamp_following(path).ok().flatten());
        stamps.map(|stamp| (stamp.device, stamp.inode)).collect()
    }

    /// Reads the workspace without storing anything.
    pub(crate) fn scan_for_reading(&self, store: Option<&Store>, scope: &Scope) -> Result<Scan> {
        self.scan_without_storing(store, scope, None)
    }

    /// Like [`Self::scan_for_reading`], but looks only at what changed if a watcher knows that.
    fn scan_for_showing(&self, store: Option<&Store>, scope: &Scope) -> Result<Scan> {
        let watched = store.and_then(|store| self.ask_watcher(store, scope));
        self.scan_without_storing(store, scope, watched)
    }

    /// Returns what `show` makes of such a scan. Repeats it with a full scan if the stat cache turns out to be damaged.
    pub(crate) fn showing<T>(
        &self,
        store: Option<&Store>,
        scope: &Scope,
        show: impl Fn(&Scan) -> Result<T>,
    ) -> Result<T> {
        let present = self.scan_for_showing(store, scope)?;
        let shown = show(&present);
        if present.lacks_entries() { show(&self.scan_for_reading(store, scope)?) } else { shown }
    }

    fn scan_without_storing(&self, store: Option<&Store>, scope: &Scope, watched: Option<Watched>) -> Result<Scan> {
        let surroundings = self.surroundings();
        let timeline = store.map(Store::timeline).transpose()?.unwrap_or_default();
        let named = self.named_paths(&timeline);
        let cache = store.and_then(|store| self.stat_cache(store, &timeline));
        let known = store.map(|store| StoreKnowledge::of_current(store, &timeline)).transpose()?.unwrap_or_default();
        let sources = known.sources(&surroundings, &named, scope, cache.as_ref());
        self.scan_watched(&sources, &HashOnly, watched)
    }
}

/// The facts in a store that decide what a scan captures.
#[derive(Default)]
pub(crate) struct StoreKnowledge<'s> {
    /// The checkpoints whose paths stay captured.
    pub(crate) holders: Holders<'s>,
    /// Exclude patterns that the owner confirmed with `backtrail exclude`.
    confirmed: Vec<String>,
    staging_areas: Vec<WorkspacePath>,
    links: Vec<ForkLink>,
}

impl<'s> StoreKnowledge<'s> {
    /// Reads them for the checkpoint that the workspace stands on.
    pub(crate) fn of_current(store: &'s Store, timeline: &Timeline) -> Result<Self> {
        Ok(Self {
            holders: Holders::of_current(store, timeline)?,
            confirmed: store.confirmed_excludes()?,
            staging_areas: store.staging_areas()?,
            links: store.fork_links()?,
        })
    }

    /// Adds the facts from around the workspace.
    pub(crate) fn sources<'a>(
        &'a self,
        surroundings: &'a Surroundings,
        named: &'a [WorkspacePath],
        scope: &'a Scope,
        cache: Option<&'a Arc<StatCache>>,
    ) -> ScanSources<'a> {
        let Self { holders, confirmed, staging_areas, links } = self;
        ScanSources { surroundings, named, holders, confirmed, staging_areas, links, scope, cache }
    }
}

/// The facts from around a workspace that affect what is captured.
pub(crate) struct Surroundings {
    /// The user's own repository.
    pub(crate) repository: Option<UserRepository>,
    /// Ignore rules from outside the tree.
    pub(crate) outside: OutsideRules,
    /// Files of such rules that are too large to be applied.
    pub(crate) unapplied_rules: Vec<PathBuf>,
}

/// Everything that decides how a scan is done, except the settings.
pub(crate) struct ScanSources<'a> {
    pub(crate) surroundings: &'a Surroundings,
    pub(crate) named: &'a [WorkspacePath],
    holders: &'a Holders<'a>,
    confirmed: &'a [String],
    staging_areas: &'a [WorkspacePath],
    links: &'a [ForkLink],
    pub(crate) scope: &'a Scope,
    pub(crate) cache: Option<&'a Arc<StatCache>>,
}

impl ScanSources<'_> {
    /// Returns whether the verdicts in the cache were made with the same index and for the same checkpoint.
    pub(super) fn has_cached_verdicts(&self) -> bool {
        let index = self.surroundings.repository.as_ref().and_then(UserRepository::index_stamp);
        self.cache.is_some_and(|cache| cache.base().index == index)
            && self.holders.cached_verdicts(self.cache.map(Arc::as_ref)) == CachedVerdicts::Final
    }

    /// Returns the paths inside the workspace that belong to the program, as bytes.
    pub(super) fn own_paths(&self) -> impl Iterator<Item = Vec<u8>> {
        let areas = self.staging_areas.iter().map(|area| area.as_bytes().to_vec());
        areas.chain(
            self.links.iter().filter_map(own_link).map(|link| [link.path.as_bytes(), b"\0", &link.target].concat()),
        )
    }
}

/// Returns a link of a fork for the scan. Returns `None` if its target is damaged.
fn own_link(link: &ForkLink) -> Option<OwnLink<'_>> {
    Some(OwnLink { path: &link.path, target: link.target.to_bytes()? })
}

/// The capture policy of a workspace: what git tracks, what checkpoints hold, and what the caller named.
struct WorkspacePolicy<'a> {
    sources: &'a ScanSources<'a>,
    nested: NestedRepositories<'a>,
    shared: SharedObjects<'a>,
    index_is_cached: bool,
    cached_verdicts: CachedVerdicts,
}

impl<'a> WorkspacePolicy<'a> {
    fn new(root: &'a Path, sources: &'a ScanSources<'a>) -> Self {
        let index = sources.surroundings.repository.as_ref().and_then(UserRepository::index_stamp);
        Self {
            sources,
            nested: NestedRepositories::of(root),
            shared: SharedObjects::below(root),
            index_is_cached: sources.cache.is_some_and(|cache| cache.base().index == index),
            cached_verdicts: sources.holders.cached_verdicts(sources.cache.map(Arc::as_ref)),
        }
    }
}

impl CapturePolicy for WorkspacePolicy<'_> {
    fn named(&self) -> &[WorkspacePath] {
        self.sources.named
    }

    fn is_tracked(&self, path: &[u8]) -> bool {
        let around = self.sources.surroundings.repository.as_ref();
        around.is_some_and(|repository| repository.is_tracked(path)) || self.nested.is_tracked(path)
    }

    fn meet_repository(&self, path: &[u8]) {
        self.nested.meet(path);
    }

    fn is_borrowed_from(&self, directory: &Stamp) -> bool {
        self.shared.contain(directory)
    }

    fn index_is_cached(&self, directory: &[u8]) -> bool {
        self.index_is_cached && !self.nested.contain(directory)
    }

    fn is_held(&self, path: &[u8]) -> bool {
        self.sources.holders.current_contains(path)
    }

    fn is_restored(&self, path: &[u8]) -> bool {
        self.sources.holders.others_contain(path)
    }

    fn held_size(&self, path: &[u8]) -> Option<u64> {
        self.sources.holders.size(path)
    }

    fn cached_verdicts(&self) -> CachedVerdicts {
        self.cached_verdicts
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::{
        Options,
        error::ErrorCode,
        model::{ContentId, Contents},
        workspace::locate::{Start, locate},
    };

    /// A content sink on a full disk.
    struct FullDisk;

    impl ContentSink for FullDisk {
        fn put(&self, _: Contents<'_>) -> io::Result<Option<ContentId>> {
            Err(io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error()))
        }
    }

    /// A full disk was reported as an error of the file that was being read.
    #[test]
    fn a_full_store_is_named_rather_than_the_file() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("ws")).unwrap();
        std::fs::write(place.path().join("ws/innocent"), "x").unwrap();
        let location = locate(&Start::At(place.path().join("ws")), &place.path().join("stores"), None).unwrap();
        let workspace = Workspace::new(location, Options::default());
        let surroundings =
            Surroundings { repository: None, outside: OutsideRules::default(), unapplied_rules: Vec::new() };
        let known = StoreKnowledge::default();
        let sources = known.sources(&surroundings, &[], &Scope::Whole, None);
        let error = workspace.scan_into(&sources, &FullDisk, None).unwrap_err();
        assert_eq!(error.code(), ErrorCode::NoSpace);
        let store = workspace.store_directory().display();
        assert_eq!(error.to_string(), format!("can't write into the store {store}: no space left on the disk"));
    }
}
