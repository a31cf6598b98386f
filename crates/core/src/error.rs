//! What can go wrong, as cases that somebody can act on.
//!
//! Every front end shares [`Error::code`]; hints and exit codes belong to them.

use std::{io, path::PathBuf};

use rustix::io::Errno;

use crate::model::{CheckpointId, InvalidPath, Reason, WorkspacePath};

/// The stable word for a sort of failure, shared by exit codes, JSON, MCP and Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// The system refused something.
    Io,
    /// The disk is full.
    NoSpace,
    /// A bug.
    Internal,
    /// The call makes no sense.
    Usage,
    /// A settings file can't be read.
    Settings,
    /// A pipeline file can't be read, or asks for something that there is not.
    Pipeline,
    /// No such checkpoint.
    UnknownCheckpoint,
    /// Several checkpoints fit.
    AmbiguousCheckpoint,
    /// No such path.
    UnknownPath,
    /// The files changed since the plan was made.
    PlanChanged,
    /// Something stands in the way.
    Conflict,
    /// The store is damaged.
    StoreDamaged,
    /// The store was written by a newer version.
    StoreTooNew,
    /// The directory is one that nobody should restore as a whole.
    ProtectedDirectory,
    /// A feature checkpoint needs force.
    FeatureCheckpoint,
    /// A path outside the workspace.
    PathOutsideWorkspace,
    /// The user's repository can't be moved safely.
    GitState,
    /// Another process holds the workspace.
    Busy,
    /// It was asked to stop.
    Interrupted,
}

impl ErrorCode {
    /// All of them.
    pub const ALL: [Self; 19] = [
        Self::Io,
        Self::NoSpace,
        Self::Internal,
        Self::Usage,
        Self::Settings,
        Self::Pipeline,
        Self::UnknownCheckpoint,
        Self::AmbiguousCheckpoint,
        Self::UnknownPath,
        Self::PlanChanged,
        Self::Conflict,
        Self::StoreDamaged,
        Self::StoreTooNew,
        Self::ProtectedDirectory,
        Self::FeatureCheckpoint,
        Self::PathOutsideWorkspace,
        Self::GitState,
        Self::Busy,
        Self::Interrupted,
    ];

    /// Did something fail, rather than the caller ask for what there is not, or ask it to stop?
    pub(crate) fn is_failure(self) -> bool {
        !matches!(
            self,
            Self::Usage
                | Self::Settings
                | Self::Pipeline
                | Self::UnknownCheckpoint
                | Self::AmbiguousCheckpoint
                | Self::UnknownPath
                | Self::PathOutsideWorkspace
                | Self::Interrupted
        )
    }

    /// The word, as `docs/json.md` has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Io => "io",
            Self::NoSpace => "no_space",
            Self::Internal => "internal",
            Self::Usage => "usage",
            Self::Settings => "settings",
            Self::Pipeline => "pipeline",
            Self::UnknownCheckpoint => "unknown_checkpoint",
            Self::AmbiguousCheckpoint => "ambiguous_checkpoint",
            Self::UnknownPath => "unknown_path",
            Self::PlanChanged => "plan_changed",
            Self::Conflict => "conflict",
            Self::StoreDamaged => "store_damaged",
            Self::StoreTooNew => "store_too_new",
            Self::ProtectedDirectory => "protected_directory",
            Self::FeatureCheckpoint => "feature_checkpoint",
            Self::PathOutsideWorkspace => "path_outside_workspace",
            Self::GitState => "git_state",
            Self::Busy => "busy",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A failed operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system refused a step.
    #[error("can't {action} {}: {}", path.display(), describe(source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The workspace is not there, or can't be reached.
    #[error("can't find the workspace {}: {}", path.display(), describe(source))]
    NoWorkspace {
        /// What was named.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What should be a directory is none, or is not there.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// What was named.
        path: PathBuf,
    },
    /// No checkpoint fits the word.
    #[error("no checkpoint fits {word:?}{}", nearest.as_ref().map(|n| format!("; did you mean {n:?}?")).unwrap_or_default())]
    UnknownCheckpoint {
        /// What was asked for.
        word: String,
        /// A name or id that is nearly the same.
        nearest: Option<String>,
    },
    /// The word has the shape of an address, but not its content.
    #[error("no checkpoint fits {word:?}: {expected}")]
    MalformedAddress {
        /// What was asked for.
        word: String,
        /// How it would be right.
        expected: &'static str,
    },
    /// The parent of this checkpoint was deleted, or it never had one.
    #[error("there is nothing before {of}: {reason}")]
    NoEarlierCheckpoint {
        /// The word that was asked for.
        of: String,
        /// Why.
        reason: &'static str,
    },
    /// The user's repository can't be moved safely.
    #[error("can't move the git repository: {reason}")]
    GitState {
        /// Why.
        reason: String,
    },
    /// Several checkpoints fit the word.
    #[error("{word:?} fits several checkpoints: {}", candidates.iter().map(CheckpointId::short).collect::<Vec<_>>().join(", "))]
    AmbiguousCheckpoint {
        /// What was asked for.
        word: String,
        /// What it fits.
        candidates: Vec<CheckpointId>,
    },
    /// The path is neither in the checkpoint nor on disk.
    #[error("{path} is not in {place}")]
    UnknownPath {
        /// What was asked for.
        path: WorkspacePath,
        /// Where it was looked for.
        place: String,
    },
    /// The path is not in the checkpoint, and on disk it is one that checkpoints leave out.
    #[error("{path} is not in checkpoint {}: it is left out ({})", checkpoint.short(), reason.as_str())]
    LeftOutPath {
        /// What was asked for.
        path: WorkspacePath,
        /// Why it is left out.
        reason: Reason,
        /// Where it was looked for.
        checkpoint: CheckpointId,
    },
    /// A moment before the first checkpoint.
    #[error("no checkpoint is as old as {word:?}: the oldest is {}, of {time}", oldest.short())]
    BeforeTheFirst {
        /// What was asked for.
        word: String,
        /// The oldest that there is.
        oldest: CheckpointId,
        /// When that was taken, in the caller's time zone.
        time: String,
    },
    /// A checkpoint has no attachment of this name.
    #[error("checkpoint {} has no attachment {name:?}", checkpoint.short())]
    UnknownAttachment {
        /// Which checkpoint.
        checkpoint: CheckpointId,
        /// What was asked for.
        name: String,
    },
    /// The path lies outside the workspace.
    #[error("{} is outside the workspace {}", path.display(), root.display())]
    PathOutsideWorkspace {
        /// What was asked for.
        path: PathBuf,
        /// The workspace.
        root: PathBuf,
    },
    /// The path could not be one inside a workspace.
    #[error(transparent)]
    InvalidPath(#[from] InvalidPath),
    /// The workspace is a place that is never taken as a whole.
    #[error("{} is a protected directory", path.display())]
    ProtectedDirectory {
        /// Which.
        path: PathBuf,
    },
    /// A feature checkpoint stays unless somebody insists.
    #[error("{} is a feature checkpoint, which stays for ever", id.short())]
    FeatureCheckpoint {
        /// Which.
        id: CheckpointId,
    },
    /// The name could be read as another address.
    #[error("{name:?} can't be the name of a checkpoint: it would be read as something else")]
    InvalidName {
        /// What was asked for.
        name: String,
    },
    /// The call makes no sense.
    #[error("{0}")]
    Usage(String),
    /// A settings file can't be read.
    #[error("{}: {problem}", file.display())]
    Settings {
        /// The file.
        file: PathBuf,
        /// Line, key and what is wrong.
        problem: String,
    },
    /// Something in the store is missing or does not match its id.
    #[error("the store {} is damaged: {problem}", store.display())]
    StoreDamaged {
        /// The store.
        store: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// What a restore noted before it was interrupted can't be read.
    #[error("the store {} is damaged: the journal of an interrupted restore can't be read: {problem}", store.display())]
    JournalDamaged {
        /// The store.
        store: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// The store needs features that this version does not have.
    #[error("the store {} was written by a newer version: it needs {feature}", store.display())]
    StoreTooNew {
        /// The store.
        store: PathBuf,
        /// The first unknown feature.
        feature: String,
    },
    /// The directory under `--store` holds something else.
    #[error("{} is neither a store nor empty", path.display())]
    NotAStore {
        /// Which.
        path: PathBuf,
    },
    /// The store belongs to another workspace.
    #[error("the store {} belongs to the workspace {}", store.display(), owner.display())]
    StoreOfAnother {
        /// The store.
        store: PathBuf,
        /// Whose it is.
        owner: PathBuf,
    },
    /// Another directory has the path of the one that the store belongs to.
    #[error("{} is another directory than the one that the store {} belongs to", path.display(), store.display())]
    AnotherDirectory {
        /// The store.
        store: PathBuf,
        /// The path of both.
        path: PathBuf,
    },
    /// The directory of the store has another store by now.
    #[error("the store {} is only kept: {} has another one now", store.display(), path.display())]
    StoreSetAside {
        /// The store.
        store: PathBuf,
        /// Its directory.
        path: PathBuf,
    },
    /// A store can't be bound to a directory while the one that it belongs to is there.
    #[error("the store {} belongs to {}, which is still there", store.display(), owner.display())]
    OwnerIsThere {
        /// The store.
        store: PathBuf,
        /// Its directory.
        owner: PathBuf,
    },
    /// A folder that merely holds projects becomes a workspace only by its owner's word.
    #[error("{} holds several projects; `backtrail init` there makes it one workspace", path.display())]
    FolderOfProjects {
        /// The folder.
        path: PathBuf,
    },
    /// The files are not what the previewed plan saw.
    #[error("the files changed since the plan was made")]
    PlanChanged,
    /// Something stands in the way of a restore.
    #[error("{path}: {reason}{}", if *others == 0 { String::new() } else { format!(" (and {others} more conflicts)") })]
    Conflict {
        /// The first path.
        path: WorkspacePath,
        /// What stands there.
        reason: String,
        /// How many more there are.
        others: usize,
    },
    /// A restore failed and could not be taken back at once; the next command that writes goes on with it.
    #[error("{source}; the restore is unfinished")]
    Unfinished {
        /// What went wrong.
        source: Box<Error>,
    },
    /// A restore of this workspace was interrupted, and what it needs would go.
    #[error("a restore of {} was interrupted and is not finished: its store holds files that are nowhere else", path.display())]
    HalfRestored {
        /// The workspace.
        path: PathBuf,
    },
    /// A directory to export into has something in it, or is none.
    #[error("{} is not an empty directory", path.display())]
    NotEmpty {
        /// Which.
        path: PathBuf,
    },
    /// What is written for somewhere else would land in the workspace, or in a store.
    #[error("{} lies inside the {part} {}", path.display(), root.display())]
    NotElsewhere {
        /// Where it was to go.
        path: PathBuf,
        /// Workspace or store.
        part: &'static str,
        /// What that is part of.
        root: PathBuf,
    },
    /// Another process holds the workspace.
    #[error("another process is working on {} and did not let go within {seconds} s", path.display())]
    Busy {
        /// The workspace.
        path: PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// The store lies on a file system without locks.
    #[error("the file system of {} has no locks", path.display())]
    NoLocks {
        /// The store.
        path: PathBuf,
    },
    /// Whoever asked for it asked it to stop.
    #[error("stopped on request before anything was changed")]
    Stopped,
    /// A bug, or damage that nothing foresaw.
    #[error("internal error: {0}")]
    Internal(String),
}

/// What operations return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The stable word.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::GitState { .. } => ErrorCode::GitState,
            Self::Io { source, .. } if is_no_space(source) => ErrorCode::NoSpace,
            Self::Io { .. } | Self::NoWorkspace { .. } | Self::NotADirectory { .. } | Self::NoLocks { .. } => {
                ErrorCode::Io
            }
            Self::UnknownCheckpoint { .. }
            | Self::MalformedAddress { .. }
            | Self::NoEarlierCheckpoint { .. }
            | Self::BeforeTheFirst { .. } => ErrorCode::UnknownCheckpoint,
            Self::AmbiguousCheckpoint { .. } => ErrorCode::AmbiguousCheckpoint,
            Self::UnknownPath { .. } | Self::LeftOutPath { .. } | Self::UnknownAttachment { .. } => {
                ErrorCode::UnknownPath
            }
            Self::PathOutsideWorkspace { .. } | Self::InvalidPath(_) => ErrorCode::PathOutsideWorkspace,
            Self::ProtectedDirectory { .. } | Self::OwnerIsThere { .. } | Self::FolderOfProjects { .. } => {
                ErrorCode::ProtectedDirectory
            }
            Self::FeatureCheckpoint { .. } => ErrorCode::FeatureCheckpoint,
            Self::InvalidName { .. } | Self::Usage(_) | Self::NotAStore { .. } => ErrorCode::Usage,
            Self::StoreOfAnother { .. } | Self::AnotherDirectory { .. } | Self::StoreSetAside { .. } => {
                ErrorCode::Usage
            }
            Self::Unfinished { source } => source.code(),
            Self::PlanChanged => ErrorCode::PlanChanged,
            Self::Conflict { .. } | Self::HalfRestored { .. } => ErrorCode::Conflict,
            Self::NotEmpty { .. } | Self::NotElsewhere { .. } => ErrorCode::Usage,
            Self::Settings { .. } => ErrorCode::Settings,
            Self::StoreDamaged { .. } | Self::JournalDamaged { .. } => ErrorCode::StoreDamaged,
            Self::StoreTooNew { .. } => ErrorCode::StoreTooNew,
            Self::Busy { .. } => ErrorCode::Busy,
            Self::Stopped => ErrorCode::Interrupted,
            Self::Internal(_) => ErrorCode::Internal,
        }
    }
}

/// Returns `true` if there was no room for what had to be written.
pub(crate) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is nothing there".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::StorageFull => "no space left on the disk".into(),
        io::ErrorKind::FileTooLarge => "the file would be larger than it may be here".into(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".into(),
        _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            "a symbolic link has taken the place of a directory".into()
        }
        _ => error.to_string(),
    }
}

/// Adds what was tried, and on what, to an error of the system.
pub(crate) trait While<T> {
    fn or_fail(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T>;
}

impl<T> While<T> for io::Result<T> {
    fn or_fail(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|source| Error::Io { action, path: path.into(), source })
    }
}
