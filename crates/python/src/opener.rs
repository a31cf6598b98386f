//! Opens a workspace for one call, with the settings at that time.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use backtrail::{
    BootClock, Error, Location, OpenStores, Options, OptionsOf, Result, Settings, Start, Workspace, locate,
};
use backtrail_cli::{Failure, settings::Environment};
use serde_json::Value;

use crate::{call::Watch, work};

/// The time that one attempt waits for the lock of the workspace. Between two attempts, the call checks whether the
/// caller wants to stop it.
const ATTEMPT: Duration = Duration::from_millis(200);

/// The access to the workspace that an operation needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Access to the store only. The workspace itself need not exist.
    Store,
    /// Reads files. A settings file with a mistake is ignored, with a warning.
    Files,
    /// Restores files, and creates the directory of the workspace again if it was deleted. Otherwise like `Files`.
    Restore,
    /// Captures files. A settings file with a mistake and a protected directory are errors.
    Save,
}

/// A located workspace, with the caller's options for opening it.
pub(crate) struct Opener {
    pub(crate) environment: Environment,
    pub(crate) location: Location,
    pub(crate) values: Value,
    pub(crate) exclude: Vec<String>,
    pub(crate) wait: Duration,
    pub(crate) force: bool,
    pub(crate) prepared: Mutex<Option<Arc<Prepared>>>,
}

/// Values derived from the user's settings. They are cached for the next call, because the settings rarely change.
pub(crate) struct Prepared {
    of_user: Settings,
    settings: Settings,
    own_directories: Vec<PathBuf>,
}

impl Opener {
    /// Runs an operation. Retries it while the workspace is locked, until the time is over or the caller wants to stop.
    pub(crate) fn attempt<T>(
        &self,
        access: Access,
        watch: &Watch,
        operation: &impl Fn(&Workspace) -> Result<T>,
    ) -> Result<T, Failure> {
        let started = Instant::now();
        loop {
            let workspace = self.open(access, watch)?;
            match operation(&workspace) {
                Err(Error::Busy { .. }) if watch.is_stopped() => return Err(Error::Stopped.into()),
                Err(Error::Busy { path, .. }) if started.elapsed() >= self.wait => {
                    return Err(Error::Busy { path, seconds: self.wait.as_secs() }.into());
                }
                Err(Error::Busy { .. }) => {}
                outcome => return Ok(outcome?),
            }
        }
    }

    fn open(&self, access: Access, watch: &Watch) -> Result<Workspace, Failure> {
        let user = self.environment.user_settings()?;
        let of_workspace = match access {
            Access::Store => None,
            Access::Restore if !self.location.root.exists() => None,
            Access::Files | Access::Restore | Access::Save => Some(self.with_workspace_file(&user, access, watch)?),
        };
        let prepared = self.prepared(user)?;
        let settings = match of_workspace {
            Some(settings) if settings != prepared.of_user => self.with_caller_settings(settings)?,
            _ => prepared.settings.clone(),
        };
        let options = Options {
            own_directories: prepared.own_directories.clone(),
            git: self.environment.git().clone(),
            patience: ATTEMPT.min(self.wait),
            open_stores: open_stores(&settings),
            boot_clock: BootClock::of_system(),
            watcher: self.environment.watcher_use(),
            change_source: None,
            settings,
        };
        let mut workspace = Workspace::new(self.location.clone(), options);
        if access == Access::Restore && !workspace.make_root_again()? {
            self.refuse_missing_root()?;
        }
        if access == Access::Save && !self.force {
            workspace.refuse_protected(&self.environment.protected_places())?;
        }
        if access == Access::Save && !workspace.has_store()? {
            self.warn_before_first_save(&workspace, watch);
        }
        watch.over(&mut workspace);
        Ok(workspace)
    }

    /// Returns the directory that holds the stores.
    pub(crate) fn stores(&self) -> Result<PathBuf, Failure> {
        self.environment.stores(&self.with_caller_settings(self.environment.user_settings()?)?)
    }

    /// Returns the options to open forks with: the caller's, with the settings file of each fork.
    pub(crate) fn options_of_forks(&self) -> Result<impl Fn(&Path) -> Options + Send + use<>, Failure> {
        let user = self.environment.user_settings()?;
        let mut settings = user.clone().with_values(self.values.clone())?;
        settings.scan.exclude.extend(self.exclude.iter().cloned());
        let options = Options {
            own_directories: self.environment.own_directories(&settings),
            git: self.environment.git().clone(),
            patience: ATTEMPT.min(self.wait),
            boot_clock: BootClock::of_system(),
            settings,
            ..Options::default()
        };
        let (values, exclude) = (self.values.clone(), self.exclude.clone());
        Ok(move |root: &Path| {
            // A settings file with a mistake is ignored, as for the workspace itself.
            let own = user.clone().with_workspace(root).and_then(|settings| settings.with_values(values.clone()));
            let settings = own.map_or_else(
                |_| options.settings.clone(),
                |mut own| {
                    own.scan.exclude.extend(exclude.iter().cloned());
                    own
                },
            );
            Options { settings, ..options.clone() }
        })
    }

    /// Adds the warnings for a workspace that is about to get its store.
    fn warn_before_first_save(&self, workspace: &Workspace, watch: &Watch) {
        if let Some(former) = &self.location.former {
            watch.note_problem(former.notice(&self.location.root));
        }
        if let Err(problem @ Error::FolderOfProjects { .. }) = workspace.refuse_folder_of_projects() {
            watch.note_problem(problem.to_string());
        }
    }

    fn prepared(&self, of_user: Settings) -> Result<Arc<Prepared>, Failure> {
        // If the lock is taken, the cache is not used. In a forked process, the thread that holds the lock may not
        // exist, so that waiting would never end.
        let mut kept = self.prepared.try_lock().ok();
        if let Some(prepared) = kept.as_deref().and_then(Option::as_ref)
            && prepared.of_user == of_user
        {
            return Ok(Arc::clone(prepared));
        }
        let settings = self.with_caller_settings(of_user.clone())?;
        let own_directories = self.environment.own_directories(&settings);
        let prepared = Arc::new(Prepared { of_user, settings, own_directories });
        if let Some(kept) = kept.as_deref_mut() {
            *kept = Some(Arc::clone(&prepared));
        }
        Ok(prepared)
    }

    fn with_caller_settings(&self, settings: Settings) -> Result<Settings, Failure> {
        let mut settings = settings.with_values(self.values.clone())?;
        settings.scan.exclude.extend(self.exclude.iter().cloned());
        Ok(settings)
    }

    fn refuse_missing_root(&self) -> Result<()> {
        let path = &self.location.root;
        std::fs::metadata(path).map(drop).map_err(|source| Error::NoWorkspace { path: path.clone(), source })
    }

    fn with_workspace_file(&self, user: &Settings, access: Access, watch: &Watch) -> Result<Settings, Failure> {
        let root = &self.location.root;
        self.refuse_missing_root()?;
        match user.clone().with_workspace(root) {
            Err(error @ Error::Settings { .. }) if access != Access::Save => {
                watch.note_problem(format!("{error}; the file is ignored until that is corrected"));
                Ok(user.clone())
            }
            settings => Ok(settings?),
        }
    }
}

/// Returns the cache of open stores of this process. A forked process has none: another thread of its parent may have
/// held the lock of the cache at the time of the fork.
fn open_stores(settings: &Settings) -> Option<Arc<OpenStores>> {
    static OPEN: OnceLock<Arc<OpenStores>> = OnceLock::new();
    if work::is_forked() {
        return None;
    }
    Some(Arc::clone(OPEN.get_or_init(|| Arc::new(OpenStores::new(settings.stores.cache_size)))))
}

/// Finds the workspace at a path, or the one that contains it.
pub(crate) fn find(
    environment: &Environment,
    path: &Path,
    around: bool,
    store: Option<&Path>,
    values: &Value,
) -> Result<Location, Failure> {
    let path = environment.absolute(path)?;
    let settings = environment.user_settings()?.with_values(values.clone())?;
    let options = |root: &Path| Options {
        own_directories: environment.own_directories(&settings),
        git: environment.git().clone(),
        // Mistakes in the settings file are reported when that workspace is opened.
        settings: settings.clone().with_workspace(root).unwrap_or_else(|_| settings.clone()),
        ..Options::default()
    };
    let start = if around { Start::Around(path, OptionsOf(&options)) } else { Start::At(path) };
    let store = store.map(|store| environment.absolute(store)).transpose()?;
    let stores = match &store {
        Some(_) => PathBuf::new(),
        None => environment.stores(&settings)?,
    };
    Ok(locate(&start, &stores, store.as_deref())?)
}
