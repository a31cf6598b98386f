//! A directory under protection. Operations are methods of [`Workspace`].

pub(crate) mod bindings;
mod event_log;
pub(crate) mod held;
pub(crate) mod identity;
pub(crate) mod locate;
pub(crate) mod precious;
pub(crate) mod skipped;

use std::{
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;

use crate::{
    clock::{BootClock, BootTime, Clock},
    disk::{self, private},
    error::{Error, Result, While},
    events::{Event, Progress, TimedEvent},
    model::{ContentSink, OutsideRules, Scope, Unwritable, WorkspacePath},
    scan::{Exceptions, Scan, ScanOptions, StatCache, scan},
    settings::Settings,
    store::{FoundJournal, HashOnly, IdentityFile, Layout, OpenStores, Store, Timeline, Writer},
    user_git::{
        GitEnvironment, GitPosition, LentObjects, NestedRepositories, RuleFiles, UserRepository, global_excludes,
    },
    workspace::{held::Holders, locate::Location},
};

/// The facts about the process that a workspace needs.
#[derive(Debug, Clone)]
pub struct Options {
    /// The settings in force.
    pub settings: Settings,
    /// The user's git configuration.
    pub git: GitEnvironment,
    /// Directories of the program itself. They are never captured, wherever they are.
    pub own_directories: Vec<PathBuf>,
    /// The time to wait for another process.
    pub patience: Duration,
    /// Stores that the process keeps open, shared by all workspaces with the same value. With `None`, they are opened
    /// each time.
    pub open_stores: Option<Arc<OpenStores>>,
    /// The boot-time clock, which reveals a wall clock that jumped ahead.
    pub boot_clock: BootClock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            git: GitEnvironment::default(),
            own_directories: Vec::new(),
            patience: Duration::from_secs(30),
            open_stores: None,
            boot_clock: BootClock::default(),
        }
    }
}

type Observer = Box<dyn Fn(&TimedEvent) + Send + Sync>;

/// A directory under protection, with its store.
pub struct Workspace {
    location: Location,
    options: Options,
    progress: Arc<Progress>,
    observer: Option<Observer>,
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workspace").field("location", &self.location).finish_non_exhaustive()
    }
}

impl Workspace {
    /// Creates a workspace from what [`locate`](crate::workspace::locate()) found. Nothing is read or written yet.
    pub fn new(location: Location, options: Options) -> Self {
        Self { location, options, progress: Arc::default(), observer: None }
    }

    /// Reports all further events to `observer`.
    pub fn observe(&mut self, observer: impl Fn(&TimedEvent) + Send + Sync + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// Returns the progress of the current operation.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Returns the directory under protection.
    pub fn root(&self) -> &Path {
        &self.location.root
    }

    /// Returns the path of its store, which need not exist yet.
    pub fn store_directory(&self) -> &Path {
        &self.location.store
    }

    /// Returns the settings in force.
    pub fn settings(&self) -> &Settings {
        &self.options.settings
    }

    /// Returns whether the store exists.
    pub fn has_store(&self) -> Result<bool> {
        Ok(self.store()?.is_some())
    }

    /// Checks whether the store would take a checkpoint. Only reads. The error is the one that a save would meet.
    pub fn check_store(&self) -> Result<()> {
        self.refuse_own_directory()?;
        self.refuse_foreign_directory()?;
        let Some(store) = self.store()? else {
            let directory = self.store_directory();
            return private::check_writable(directory).or_fail("write to", directory);
        };
        if let Some(known) = IdentityFile::read(store.layout()) {
            self.refuse_other_owner(&known, &self.found()?)?;
        }
        store.check_writable()
    }

    /// Converts a path that a caller named, relative to `current` or absolute, into one inside the workspace.
    ///
    /// Symlinks in the path above the workspace are resolved. Symlinks inside it are not: they are entries like any
    /// other.
    pub fn path_from(&self, current: &Path, named: &Path) -> Result<WorkspacePath> {
        use std::os::unix::ffi::OsStrExt;
        let outside = || Error::PathOutsideWorkspace { path: named.to_owned(), root: self.root().to_owned() };
        let absolute = normalize(&current.join(named)).ok_or_else(outside)?;
        let inside = match absolute.strip_prefix(self.root()) {
            Ok(inside) => inside.to_owned(),
            // The path leads through a symlink: find the ancestor that is the workspace itself.
            Err(_) => self.below_another_spelling(&absolute).ok_or_else(outside)?,
        };
        WorkspacePath::new(inside.as_os_str().as_bytes()).map_err(|_| outside())
    }

    fn below_another_spelling(&self, absolute: &Path) -> Option<PathBuf> {
        let root = disk::stamp_following(self.root()).ok()??;
        absolute.ancestors().find_map(|ancestor| {
            let stamp = disk::stamp_following(ancestor).ok()??;
            let is_root = (stamp.device, stamp.inode) == (root.device, root.inode);
            is_root.then(|| absolute.strip_prefix(ancestor).ok().map(Path::to_owned)).flatten()
        })
    }

    /// Returns an error if the store's path is a file, or a directory that holds something else: that must not be
    /// filled with a store.
    pub fn refuse_foreign_directory(&self) -> Result<()> {
        let layout = Layout::new(self.store_directory());
        if private::exists(&layout.format()) || private::exists(&layout.own()) {
            return Ok(());
        }
        if private::exists(layout.root()) && !disk::is_directory(layout.root()) {
            return Err(Error::NotAStore { path: layout.root().to_owned() });
        }
        let names = private::names_of_closed(layout.root()).or_fail("read", layout.root())?;
        // Another process may have begun to create the store since the check above.
        let is_fresh = names.is_empty() || names.iter().any(|name| name == "backtrail");
        if is_fresh { Ok(()) } else { Err(Error::NotAStore { path: layout.root().to_owned() }) }
    }

    /// Returns an error if the workspace is one of these directories, which hold so much that no user means them as a
    /// workspace.
    pub fn refuse_protected(&self, protected: &[PathBuf]) -> Result<()> {
        let is_root = |path: &PathBuf| private::canonical(path).is_ok_and(|path| path == self.root());
        if protected.iter().any(is_root) {
            return Err(Error::ProtectedDirectory { path: self.root().to_owned() });
        }
        Ok(())
    }
}

/// Removes `.` and `..` from a path without looking at the disk. Returns `None` if the path leads above the root.
pub(crate) fn normalize(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            other => out.push(other),
        }
    }
    Some(out)
}

/// Functions that operations share.
impl Workspace {
    /// Returns the options that it was opened with.
    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the time to wait for another process.
    pub(crate) fn patience(&self) -> Duration {
        self.options.patience
    }

    /// Returns the time of the boot-time clock. Returns `None` if the process has none.
    pub(crate) fn boot_time(&self) -> Option<BootTime> {
        self.options.boot_clock.read()
    }

    /// Opens the store for reading. Returns `None` if nothing was saved yet.
    pub(crate) fn store(&self) -> Result<Option<Store>> {
        Store::open(self.store_directory(), self.options.open_stores.as_deref())
    }

    /// Opens the store for an operation that needs one. Returns an error if there is none.
    pub(crate) fn existing_store(&self) -> Result<Store> {
        self.store()?.ok_or_else(|| Error::UnknownCheckpoint { word: "@".into(), nearest: None })
    }

    /// Locks the store, and creates it if it is missing. Returns whether it was missing, and the time at which the lock
    /// was taken. An interrupted restore is left as it is: see [`Workspace::writer`].
    pub(crate) fn lock_store(&self, clock: &impl Clock) -> Result<((Writer, bool), Timestamp)> {
        self.refuse_own_directory()?;
        self.refuse_foreign_directory()?;
        let lock = Store::lock(self.store_directory(), self.root(), self.options.patience)?;
        let now = clock.now();
        let own = self.found()?;
        let (writer, created) = lock.open_or_create(&own.identity, self.options.open_stores.as_deref())?;
        let known = IdentityFile::read(writer.layout()).filter(|_| !created);
        if known.as_ref() != Some(&own.identity) {
            known.as_ref().map_or(Ok(()), |known| self.refuse_other_owner(known, &own))?;
            let is_pending = matches!(writer.journal()?, FoundJournal::Journal(_));
            if !(is_pending && self.is_another_directory(&writer)?) {
                // The directory was moved, or created again at the same path: the history is the same.
                own.identity.write(writer.layout())?;
            }
        }
        if created {
            self.emit(&writer, Event::Initialized, now)?;
        }
        Ok(((writer, created), now))
    }

    /// Returns an error if the workspace is a store, a directory of the program, or a git directory. Restoring stores
    /// would take checkpoints away from all other workspaces. Restoring a git directory would take commits away.
    pub(crate) fn refuse_own_directory(&self) -> Result<()> {
        let mut own = self.options.own_directories.iter().filter_map(|path| private::canonical(path).ok());
        let is_git = || {
            self.root().iter().any(|part| part == ".git")
                || disk::Dir::open(self.root()).is_ok_and(|root| crate::scan::is_repository(&root))
        };
        if own.any(|own| self.root().starts_with(own))
            || private::exists(&Layout::new(self.root()).format())
            || is_git()
        {
            return Err(Error::ProtectedDirectory { path: self.root().to_owned() });
        }
        Ok(())
    }

    /// Returns the place and the position of the user repository around the workspace, or `None` if there is none.
    pub fn git_position(&self) -> Option<GitPosition> {
        self.user_repository().map(|repository| repository.position())
    }

    pub(crate) fn user_repository(&self) -> Option<UserRepository> {
        UserRepository::around(self.root())
    }

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

    /// Reads the workspace, and passes contents to `sink`.
    pub(crate) fn scan_into(&self, sources: &ScanSources<'_>, sink: &dyn ContentSink) -> Result<Scan> {
        let Surroundings { repository, outside, .. } = sources.surroundings;
        let nested = NestedRepositories::of(self.root());
        let lent = LentObjects::below(self.root());
        let is_tracked = |path: &[u8]| {
            repository.as_ref().is_some_and(|repository| repository.is_tracked(path)) || nested.is_tracked(path)
        };
        let holders = sources.holders;
        let mut settings = self.options.settings.scan.clone();
        settings.confirm(sources.confirmed);
        let index = repository.as_ref().and_then(UserRepository::index_stamp);
        let index_is_cached = sources.cache.is_some_and(|cache| cache.base().index == index);
        let own = self.own_directories();
        let scanned = scan(
            self.root(),
            &ScanOptions {
                settings: &settings,
                outside,
                exceptions: Exceptions {
                    named: sources.named,
                    is_tracked: &is_tracked,
                    meet_repository: &|path| nested.meet(path),
                    is_lent: &|directory| lent.contain(directory),
                    index_is_cached: &|directory| index_is_cached && !nested.contain(directory),
                    is_held: &|path| holders.current_contains(path),
                    is_restored: &|path| holders.others_contain(path),
                    held_size: &|path| holders.size(path),
                    cached_verdicts: holders.cached_verdicts(sources.cache.map(Arc::as_ref)),
                },
                own: &own,
                staging_areas: sources.staging_areas,
                scope: sources.scope,
                cache: sources.cache,
                sink,
                progress: &self.progress,
            },
        );
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
        let surroundings = self.surroundings();
        let timeline = store.map(Store::timeline).transpose()?.unwrap_or_default();
        let named = self.named_paths(&timeline);
        let cache = store.and_then(|store| self.stat_cache(store, &timeline));
        let known = store.map(|store| StoreKnowledge::of_current(store, &timeline)).transpose()?.unwrap_or_default();
        let sources = known.sources(&surroundings, &named, scope, cache.as_ref());
        self.scan_into(&sources, &HashOnly)
    }

    /// Returns an error if the operation was asked to stop. This is the last moment for that: what follows is published
    /// or written.
    pub(crate) fn refuse_if_stopped(&self) -> Result<()> {
        if self.progress.is_stopped() { Err(Error::Stopped) } else { Ok(()) }
    }

    /// Passes an event to the observer of this workspace.
    pub(crate) fn tell(&self, event: &TimedEvent) {
        if let Some(observer) = &self.observer {
            observer(event);
        }
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
}

impl<'s> StoreKnowledge<'s> {
    /// Reads them for the checkpoint that the workspace stands on.
    pub(crate) fn of_current(store: &'s Store, timeline: &Timeline) -> Result<Self> {
        Ok(Self {
            holders: Holders::of_current(store, timeline)?,
            confirmed: store.confirmed_excludes()?,
            staging_areas: store.staging_areas()?,
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
        let Self { holders, confirmed, staging_areas } = self;
        ScanSources { surroundings, named, holders, confirmed, staging_areas, scope, cache }
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
    pub(crate) scope: &'a Scope,
    pub(crate) cache: Option<&'a Arc<StatCache>>,
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::{
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
        let error = workspace.scan_into(&sources, &FullDisk).unwrap_err();
        assert_eq!(error.code(), ErrorCode::NoSpace);
        let store = workspace.store_directory().display();
        assert_eq!(error.to_string(), format!("can't write into the store {store}: no space left on the disk"));
    }
}
