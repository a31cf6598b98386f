//! The one workspace that is served, and what words and paths mean in it.

use std::{
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use backtrail::{
    CheckpointId, Precious, RULE_OF_SINCE, Scope, Workspace, WorkspacePath, parse_since, problem_of_since,
    settings::ScanSettings,
};
use jiff::{Timestamp, Zoned};

use crate::failure::Failure;

/// What a workspace is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To look at its checkpoints.
    Look,
    /// To look at all of its files.
    Scan,
    /// To take a checkpoint of it.
    Save,
    /// To bring files back into it.
    Restore,
}

/// Opens the workspace, with the settings as they are now.
pub type Opener = Arc<dyn Fn(Purpose) -> backtrail::Result<Workspace> + Send + Sync>;

/// No word that names a checkpoint is longer.
const MAX_WORD_BYTES: usize = 512;
/// No path that a system takes is longer.
const MAX_PATH_BYTES: usize = 4_096;
/// No more paths are taken at once.
const MAX_PATHS: usize = 1_000;

/// The workspace that is served.
pub(crate) struct Access {
    open: Opener,
    root: PathBuf,
    /// As they were when the server started: what was precious then stays so.
    scan_at_start: ScanSettings,
}

impl Access {
    pub(crate) fn new(open: Opener) -> backtrail::Result<Self> {
        let workspace = open(Purpose::Look)?;
        let (root, scan_at_start) = (workspace.root().to_owned(), workspace.settings().scan.clone());
        Ok(Self { open, root, scan_at_start })
    }

    pub(crate) fn open(&self, purpose: Purpose) -> Result<Workspace, Failure> {
        let workspace = (self.open)(purpose)?;
        if workspace.root() != self.root {
            return Err(Failure::internal("the workspace is not the one that the server was started with"));
        }
        Ok(workspace)
    }

    /// What must not be shown.
    pub(crate) fn precious(&self, workspace: &Workspace) -> Precious {
        Precious::of([&self.scan_at_start, &workspace.settings().scan])
    }
}

/// The checkpoint that a word names.
pub(crate) fn checkpoint(workspace: &Workspace, word: &str, now: &Zoned) -> Result<CheckpointId, Failure> {
    limited("checkpoint", word, MAX_WORD_BYTES)?;
    Ok(workspace.resolve(word, now)?)
}

/// A path as an agent writes it: relative to the workspace, or absolute inside it.
///
/// One that goes up is refused even where it would come back: nobody needs it, and what it means depends on links.
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

/// The part of the workspace that these paths name; all of it where there are none.
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

/// A moment given as a duration up to now, or as a time.
pub(crate) fn moment(text: &str, now: &Zoned) -> Result<Timestamp, Failure> {
    limited("since", text, MAX_WORD_BYTES)?;
    parse_since(text, now).ok_or_else(|| Failure::usage(problem_of_since(text)).with_hint(RULE_OF_SINCE))
}

/// Refuses a text that is longer than anybody means.
pub(crate) fn limited(name: &str, text: &str, max_bytes: usize) -> Result<(), Failure> {
    if text.len() <= max_bytes {
        return Ok(());
    }
    Err(Failure::usage(format!("{name} has {} bytes: the limit is {max_bytes}", text.len())))
}
