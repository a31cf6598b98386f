//! Opening a workspace for one call, with the settings as they are then.

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

/// How long one try to get hold of the workspace takes; between two it is seen whether somebody wants to stop.
const TRY: Duration = Duration::from_millis(200);

/// What an operation needs of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// The store alone: the workspace itself may be gone.
    Store,
    /// Looks at files or brings them back: mistakes in the settings file are told, and it counts for nothing.
    Files,
    /// Takes files in: mistakes in the settings file, and protected places, are refused.
    Save,
}

/// A workspace that was found, and how the caller wants it opened.
pub(crate) struct Opener {
    pub(crate) environment: Environment,
    pub(crate) location: Location,
    pub(crate) values: Value,
    pub(crate) exclude: Vec<String>,
    pub(crate) wait: Duration,
    pub(crate) force: bool,
    pub(crate) prepared: Mutex<Option<Arc<Prepared>>>,
}

/// What the user's settings make of a call, kept for the next one: they hardly ever change.
pub(crate) struct Prepared {
    of_user: Settings,
    settings: Settings,
    own_directories: Vec<PathBuf>,
}

impl Opener {
    /// Tries until the workspace is free, the time is over, or the caller wants to stop.
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
            Access::Files | Access::Save => Some(self.with_workspace_file(&user, access, watch)?),
        };
        let prepared = self.prepared(user)?;
        let settings = match of_workspace {
            Some(settings) if settings != prepared.of_user => self.with_words_of_caller(settings)?,
            _ => prepared.settings.clone(),
        };
        let options = Options {
            own_directories: prepared.own_directories.clone(),
            git: self.environment.git().clone(),
            patience: TRY.min(self.wait),
            open_stores: open_stores(&settings),
            boot_clock: BootClock::of_system(),
            settings,
        };
        let mut workspace = Workspace::new(self.location.clone(), options);
        if access == Access::Save && !self.force {
            workspace.refuse_protected(&self.environment.protected_places())?;
        }
        if access == Access::Save && !workspace.has_store()? {
            self.tell_of_first_save(&workspace, watch);
        }
        watch.over(&mut workspace);
        Ok(workspace)
    }

    /// Says what the owner of a workspace has to know before it gets its store.
    fn tell_of_first_save(&self, workspace: &Workspace, watch: &Watch) {
        if let Some(former) = &self.location.former {
            watch.note_problem(former.notice(&self.location.root));
        }
        if let Err(problem @ Error::FolderOfProjects { .. }) = workspace.refuse_folder_of_projects() {
            watch.note_problem(problem.to_string());
        }
    }

    fn prepared(&self, of_user: Settings) -> Result<Arc<Prepared>, Failure> {
        // Whoever can't have the lock does without: in a process that was forked off nobody may be there to release it.
        let mut kept = self.prepared.try_lock().ok();
        if let Some(prepared) = kept.as_deref().and_then(Option::as_ref)
            && prepared.of_user == of_user
        {
            return Ok(Arc::clone(prepared));
        }
        let settings = self.with_words_of_caller(of_user.clone())?;
        let own_directories = self.environment.own_directories(&settings);
        let prepared = Arc::new(Prepared { of_user, settings, own_directories });
        if let Some(kept) = kept.as_deref_mut() {
            *kept = Some(Arc::clone(&prepared));
        }
        Ok(prepared)
    }

    fn with_words_of_caller(&self, settings: Settings) -> Result<Settings, Failure> {
        let mut settings = settings.with_values(self.values.clone())?;
        settings.scan.exclude.extend(self.exclude.iter().cloned());
        Ok(settings)
    }

    fn with_workspace_file(&self, user: &Settings, access: Access, watch: &Watch) -> Result<Settings, Failure> {
        let root = &self.location.root;
        if let Err(source) = std::fs::metadata(root) {
            return Err(Error::NoWorkspace { path: root.clone(), source }.into());
        }
        match user.clone().with_workspace(root) {
            Err(error @ Error::Settings { .. }) if access == Access::Files => {
                watch.note_problem(format!("{error}; the file is ignored until this is fixed"));
                Ok(user.clone())
            }
            settings => Ok(settings?),
        }
    }
}

/// The stores that this process keeps open. One that was forked off has none: another thread of its parent may have
/// held them when it was made.
fn open_stores(settings: &Settings) -> Option<Arc<OpenStores>> {
    static OPEN: OnceLock<Arc<OpenStores>> = OnceLock::new();
    if work::is_forked() {
        return None;
    }
    Some(Arc::clone(OPEN.get_or_init(|| Arc::new(OpenStores::new(settings.stores.cache_size)))))
}

/// Finds the workspace at a path, or around it.
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
        // Mistakes in it are told when that workspace is opened.
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
