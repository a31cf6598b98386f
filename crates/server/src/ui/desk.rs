//! The workspaces that the page shows, each with its plans and its stream of events.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use backtrail::{
    ErrorCode, Precious, Workspace, WorkspaceEntry,
    json::{WorkspaceJson, WorkspacesJson},
    workspaces,
};

use super::events::Feed;
use crate::{
    access::{Access, Purpose, Served},
    failure::Failure,
    plans::Plans,
    running::Call,
};

/// The workspaces that the page shows.
pub struct ShownWorkspaces {
    /// The workspace that the server was started for.
    pub own: Served,
    /// All other workspaces. `None` if only that one is served.
    pub all: Option<AllWorkspaces>,
}

/// Returns how to open a workspace that has a store.
pub type OpenAny = Box<dyn Fn(&WorkspaceEntry) -> backtrail::Result<Served> + Send + Sync>;

/// Finds the workspaces that have a store, and opens them.
pub struct AllWorkspaces {
    /// The directory of the stores.
    pub stores: PathBuf,
    /// Returns how to open one of them.
    pub open: OpenAny,
}

/// One workspace that is shown.
pub(super) struct Desk {
    pub(super) access: Access,
    pub(super) store: PathBuf,
    pub(super) plans: Plans,
    pub(super) feed: Arc<Feed>,
}

impl Desk {
    fn new(served: Served) -> backtrail::Result<Self> {
        let store = (served.open)(Purpose::Look)?.store_directory().to_owned();
        Ok(Self { access: Access::new(served)?, store, plans: Plans::default(), feed: Arc::default() })
    }

    /// Opens the workspace. Returns it with the paths whose contents are hidden until the user asks for one.
    pub(super) fn open(&self, purpose: Purpose, call: &Call) -> Result<(Workspace, Precious), Failure> {
        let mut workspace = self.access.open(purpose)?;
        call.watch.follow(&mut workspace);
        let precious = self.access.precious(&workspace);
        Ok((workspace, precious))
    }
}

/// The workspaces that were opened so far.
pub(super) struct Desks {
    own: Arc<Desk>,
    all: Option<AllWorkspaces>,
    others: Mutex<HashMap<PathBuf, Arc<Desk>>>,
}

impl Desks {
    pub(super) fn new(shown: ShownWorkspaces) -> backtrail::Result<Self> {
        let own = Arc::new(Desk::new(shown.own)?);
        Ok(Self { own, all: shown.all, others: Mutex::default() })
    }

    /// Returns the workspace with this store. Without a store, returns the one that the server was started for.
    pub(super) fn find(&self, store: Option<&str>) -> Result<Arc<Desk>, Failure> {
        let Some(store) = store.map(Path::new).filter(|store| *store != self.own.store) else {
            return Ok(Arc::clone(&self.own));
        };
        let unknown = || Failure::new(ErrorCode::UnknownPath, "this server does not show such a workspace");
        let all = self.all.as_ref().ok_or_else(unknown)?;
        let known = || self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(desk) = known().get(store) {
            return Ok(Arc::clone(desk));
        }
        let entries = workspaces(&all.stores)?;
        let entry = entries.iter().find(|entry| entry.store == store && is_there(entry)).ok_or_else(unknown)?;
        let desk = Arc::new(Desk::new((all.open)(entry)?)?);
        Ok(Arc::clone(known().entry(store.to_owned()).or_insert(desk)))
    }

    /// Lists the workspaces that can be shown. The one that the server was started for comes first.
    pub(super) fn list(&self) -> Result<WorkspacesJson, Failure> {
        let directory = self.all.as_ref().map(|all| all.stores.as_path()).or_else(|| self.own.store.parent());
        // A store whose neighbours can't be read can still be shown.
        let found = directory.map(workspaces).and_then(Result::ok).unwrap_or_default();
        let (own, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|entry| entry.store == self.own.store);
        let mut listed: Vec<WorkspaceJson> = own.iter().map(WorkspaceJson::from).collect();
        if listed.is_empty() {
            listed.push(self.without_checkpoints()?);
        }
        if self.all.is_some() {
            listed.extend(others.iter().filter(|entry| is_there(entry)).map(WorkspaceJson::from));
        }
        Ok(WorkspacesJson { workspaces: listed })
    }

    fn without_checkpoints(&self) -> Result<WorkspaceJson, Failure> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let workspace = self.own.access.open(Purpose::Look)?;
        Ok(WorkspaceJson {
            path: text(workspace.root()),
            exists: true,
            moved_to: None,
            store: text(&self.own.store),
            bytes: 0,
            checkpoints: 0,
            newest: None,
        })
    }
}

/// Returns whether the directory of a workspace can be opened.
fn is_there(entry: &WorkspaceEntry) -> bool {
    entry.exists || entry.moved_to.is_some()
}
