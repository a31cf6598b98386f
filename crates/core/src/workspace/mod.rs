//! A directory under protection. Operations are methods of [`Workspace`].

pub(crate) mod bindings;
pub(crate) mod event_log;
pub(crate) mod held;
mod identity;
pub(crate) mod locate;
mod open;
mod paths;
pub(crate) mod precious;
mod scanning;
pub(crate) mod skipped;
mod watching;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use locate::Location;
pub(crate) use paths::normalize;
pub(crate) use scanning::{StoreKnowledge, Surroundings};
pub use watching::WatcherUse;
pub(crate) use watching::{Watched, cache_file};

use crate::{
    clock::{BootClock, BootTime},
    error::{Error, Result},
    events::{Progress, TimedEvent},
    model::ChangeSource,
    settings::Settings,
    store::OpenStores,
    user_git::{GitEnvironment, GitPosition, UserRepository},
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
    /// Whether operations rely on the watcher of the workspace, if one is running.
    pub watcher: WatcherUse,
    /// Another source of the same knowledge than the watcher.
    pub change_source: Option<Arc<dyn ChangeSource>>,
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
            watcher: WatcherUse::default(),
            change_source: None,
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
    /// Creates a workspace from what [`locate`](crate::locate()) found. Nothing is read or written yet.
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

    /// Returns the place and the position of the user repository around the workspace, or `None` if there is none.
    pub fn git_position(&self) -> Option<GitPosition> {
        self.user_repository().map(|repository| repository.position())
    }

    pub(crate) fn user_repository(&self) -> Option<UserRepository> {
        UserRepository::around(self.root())
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
