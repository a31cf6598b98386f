//! Opens the served workspace, and resolves the addresses and paths that clients send.

use std::{
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use backtrail::{
    CheckpointId, Options, Precious, RULE_OF_SINCE, RevertTarget, Scope, Workspace, WorkspacePath, parse_since,
    problem_of_since, settings::ScanSettings,
};
use jiff::{Timestamp, Zoned};

use crate::failure::Failure;

/// The purpose that a workspace is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Reading its checkpoints.
    Look,
    /// Reading all of its files.
    Scan,
    /// Taking a checkpoint.
    Save,
    /// Restoring files.
    Restore,
}

/// Opens the workspace with the current settings.
pub type Opener = Arc<dyn Fn(Purpose) -> backtrail::Result<Workspace> + Send + Sync>;

/// Returns the options to open the workspace at a directory with.
pub type OptionsAt = Arc<dyn Fn(&Path) -> Options + Send + Sync>;

/// The workspace to serve, and the facts that its forks need.
#[derive(Clone)]
pub struct Served {
    /// Opens the workspace.
    pub open: Opener,
    /// Returns the options of a fork.
    pub options_at: OptionsAt,
    /// The directory that holds the stores. `None` if the process has none.
    pub stores: Option<PathBuf>,
}

impl std::fmt::Debug for Served {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Served").field("stores", &self.stores).finish_non_exhaustive()
    }
}

/// The maximum length of a checkpoint's address.
const MAX_WORD_BYTES: usize = 512;
/// The maximum length of a path, as on Linux.
const MAX_PATH_BYTES: usize = 4_096;
/// The maximum number of paths in one call.
const MAX_PATHS: usize = 1_000;

/// The workspace that is served.
pub(crate) struct Access {
    served: Served,
    root: PathBuf,
    /// The scan settings from the start of the server. Paths that were precious then stay precious.
    scan_at_start: ScanSettings,
}

impl Access {
    pub(crate) fn new(served: Served) -> backtrail::Result<Self> {
        let workspace = (served.open)(Purpose::Look)?;
        let (root, scan_at_start) = (workspace.root().to_owned(), workspace.settings().scan.clone());
        Ok(Self { served, root, scan_at_start })
    }

    pub(crate) fn open(&self, purpose: Purpose) -> Result<Workspace, Failure> {
        let workspace = (self.served.open)(purpose)?;
        if workspace.root() != self.root {
            return Err(Failure::internal("the workspace is not the one that the server was started with"));
        }
        Ok(workspace)
    }

    /// Returns the root of the workspace.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the options of the workspace at a directory.
    pub(crate) fn options_at(&self, root: &Path) -> Options {
        (self.served.options_at)(root)
    }

    /// Returns the directory that holds the stores.
    pub(crate) fn stores(&self) -> Result<PathBuf, Failure> {
        let missing = || {
            Failure::usage("there is no directory for the stores of forks")
                .with_hint("ask the user to start the server with HOME or BACKTRAIL_HOME set")
        };
        self.served.stores.clone().ok_or_else(missing)
    }

    /// Returns the paths whose contents must not be shown.
    pub(crate) fn precious(&self, workspace: &Workspace) -> Precious {
        Precious::of([&self.scan_at_start, &workspace.settings().scan])
    }
}

/// Resolves the address of a checkpoint.
pub(crate) fn checkpoint(workspace: &Workspace, word: &str, now: &Zoned) -> Result<CheckpointId, Failure> {
    limited("checkpoint", word, MAX_WORD_BYTES)?;
    Ok(workspace.resolve(word, now)?)
}

/// The words that name what a revert takes back. Exactly one of them is given.
pub(crate) struct RevertWords {
    pub(crate) what: Option<String>,
    pub(crate) turn: Option<u64>,
    pub(crate) session: Option<String>,
}

impl RevertWords {
    pub(crate) fn is_empty(&self) -> bool {
        self.what.is_none() && self.turn.is_none() && self.session.is_none()
    }

    pub(crate) fn target(&self, workspace: &Workspace, now: &Zoned) -> Result<RevertTarget, Failure> {
        let Self { what, turn, session } = self;
        for (name, word) in [("what", what), ("session", session)] {
            limited(name, word.as_deref().unwrap_or_default(), MAX_WORD_BYTES)?;
        }
        Ok(workspace.revert_target(what.as_deref(), *turn, session.as_deref(), now)?)
    }
}

/// Converts a path from an agent: relative to the workspace, or absolute inside it.
///
/// A path with `..` is refused even if it stays inside the workspace: agents do not need it, and its meaning depends on
/// symlinks.
pub(crate) fn path(workspace: &Workspace, named: &str) -> Result<WorkspacePath, Failure> {
    limited("path", named, MAX_PATH_BYTES)?;
    let outside = |why: &str| {
        let message = format!("{named:?} is not a path inside the workspace {}: {why}", workspace.root().display());
        Failure::new(backtrail::ErrorCode::PathOutsideWorkspace, message)
            .with_hint("write it relative to the workspace, without ..")
    };
    if named.is_empty() {
        return Err(Failure::usage("a path is empty").with_hint("leave out paths for the whole workspace"));
    }
    if named.contains('\0') {
        return Err(outside("it contains a NUL character"));
    }
    if Path::new(named).components().any(|part| part == Component::ParentDir) {
        return Err(outside("it contains .."));
    }
    Ok(workspace.path_from(workspace.root(), Path::new(named))?)
}

/// Returns the scope of these paths, or the whole workspace if there are none.
pub(crate) fn scope(workspace: &Workspace, named: &[String]) -> Result<Scope, Failure> {
    if named.is_empty() {
        return Ok(Scope::Whole);
    }
    if named.len() > MAX_PATHS {
        let message = format!("{} paths are too many: the limit is {MAX_PATHS}", named.len());
        return Err(Failure::usage(message).with_hint("give the directories that contain them"));
    }
    let paths = named.iter().map(|named| path(workspace, named)).collect::<Result<_, _>>()?;
    Ok(Scope::of_paths(paths))
}

/// Parses a duration before now, or a time.
pub(crate) fn moment(text: &str, now: &Zoned) -> Result<Timestamp, Failure> {
    limited("since", text, MAX_WORD_BYTES)?;
    parse_since(text, now).ok_or_else(|| Failure::usage(problem_of_since(text)).with_hint(RULE_OF_SINCE))
}

/// Refuses a text that is longer than the limit.
pub(crate) fn limited(name: &str, text: &str, max_bytes: usize) -> Result<(), Failure> {
    if text.len() <= max_bytes {
        return Ok(());
    }
    Err(Failure::usage(format!("{name} has {} bytes: the limit is {max_bytes}", text.len())))
}
