//! Errors, as cases that a caller can act on.
//!
//! All front ends share [`Error::code`]. Each adds its own hints and exit codes.

use std::{io, path::PathBuf};

use rustix::io::Errno;

use crate::model::{CheckpointId, InvalidPath, Reason, WorkspacePath};

/// The stable word for a kind of failure, shared by exit codes, JSON, MCP and Python.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// The operating system reported an error.
    Io,
    /// The disk is full.
    NoSpace,
    /// A bug.
    Internal,
    /// The arguments are invalid, or contradict each other.
    Usage,
    /// A settings file can't be read, or is not valid.
    Settings,
    /// A pipeline file can't be read, or asks for something that does not exist.
    Pipeline,
    /// No checkpoint matches.
    UnknownCheckpoint,
    /// Several checkpoints match.
    AmbiguousCheckpoint,
    /// There is no such path.
    UnknownPath,
    /// The files changed since the plan was made.
    PlanChanged,
    /// Something is in the way.
    Conflict,
    /// The store is damaged.
    StoreDamaged,
    /// The store was written by a newer version.
    StoreTooNew,
    /// The directory must not be saved or restored as a whole.
    ProtectedDirectory,
    /// A feature checkpoint is deleted only with force.
    FeatureCheckpoint,
    /// The path is outside the workspace.
    PathOutsideWorkspace,
    /// The user's repository can't be moved safely.
    GitState,
    /// Another process has locked the workspace.
    Busy,
    /// The caller asked the operation to stop.
    Interrupted,
}

impl ErrorCode {
    /// All codes.
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

    /// Returns whether something failed. `false` means that the caller asked for something that does not exist or is
    /// not valid, or asked the operation to stop.
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

    /// Returns the word that `docs/json.md` lists.
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
    /// The operating system reported an error.
    #[error("can't {action} {}: {}", path.display(), describe(source))]
    Io {
        /// The action that was tried.
        action: &'static str,
        /// The path that it was tried on.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The directory in the workspace that files are staged in can't be created. A restore stages files there if the
    /// store is on another disk.
    #[error("can't create {}: {}", path.display(), describe(source))]
    StagingArea {
        /// The directory.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The workspace does not exist, or can't be reached.
    #[error("can't find the workspace {}: {}", path.display(), describe(source))]
    NoWorkspace {
        /// The path that was given.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The path does not exist, or is not a directory.
    #[error("{} is not a directory", path.display())]
    NotADirectory {
        /// The path that was given.
        path: PathBuf,
    },
    /// No checkpoint matches the word.
    #[error("no checkpoint matches {word:?}{}", nearest.as_ref().map(|n| format!("; did you mean {n:?}?")).unwrap_or_default())]
    UnknownCheckpoint {
        /// The word that was given.
        word: String,
        /// A name or id that is nearly the same.
        nearest: Option<String>,
    },
    /// The word is not a valid address.
    #[error("{word:?} does not name a checkpoint: {expected}")]
    MalformedAddress {
        /// The word that was given.
        word: String,
        /// A hint with the correct syntax.
        expected: &'static str,
    },
    /// The parent of this checkpoint was deleted, or it never had one.
    #[error("there is no checkpoint before {of}: {reason}")]
    NoEarlierCheckpoint {
        /// The word that was given.
        of: String,
        /// The reason.
        reason: &'static str,
    },
    /// The checkpoint followed no other one, so that its own changes are not known.
    #[error("{} is the first checkpoint: there is nothing before it to go back to", id.short())]
    FirstCheckpoint {
        /// The checkpoint.
        id: CheckpointId,
    },
    /// The parent of the checkpoint was deleted, so that its own changes are not known any more.
    #[error("the checkpoint before {} was deleted, so its own changes are not known any more", id.short())]
    ParentDeleted {
        /// The checkpoint.
        id: CheckpointId,
        /// The nearest one before it that still exists.
        before: Option<CheckpointId>,
    },
    /// The range leads from a checkpoint to an earlier one.
    #[error("the range {}..{} runs backwards", from.short(), to.short())]
    BackwardRange {
        /// The first checkpoint of the range.
        from: CheckpointId,
        /// The last one, which is earlier.
        to: CheckpointId,
    },
    /// No checkpoint belongs to the session.
    #[error("no checkpoint is of the session {session:?}")]
    UnknownSession {
        /// The session that was given.
        session: String,
    },
    /// The user's repository can't be moved safely.
    #[error("can't restore git's HEAD and index: {reason}")]
    GitState {
        /// The reason.
        reason: String,
    },
    /// Several checkpoints match the word.
    #[error("{word:?} matches several checkpoints: {}", candidates.iter().map(CheckpointId::short).collect::<Vec<_>>().join(", "))]
    AmbiguousCheckpoint {
        /// The word that was given.
        word: String,
        /// The checkpoints that match.
        candidates: Vec<CheckpointId>,
    },
    /// The path is neither in the checkpoint nor on disk.
    #[error("{path} is not in {place}")]
    UnknownPath {
        /// The path that was given.
        path: WorkspacePath,
        /// The place that was searched.
        place: String,
    },
    /// The path is not in the checkpoint, and on disk it is one that checkpoints skip.
    #[error("{path} is not in checkpoint {}: it is skipped ({})", checkpoint.short(), reason.as_str())]
    LeftOutPath {
        /// The path that was given.
        path: WorkspacePath,
        /// The reason why it is skipped.
        reason: Reason,
        /// The checkpoint that was searched.
        checkpoint: CheckpointId,
    },
    /// The moment is before the first checkpoint.
    #[error("{word:?} is before the first checkpoint: {} was taken {time}", oldest.short())]
    BeforeTheFirst {
        /// The word that was given.
        word: String,
        /// The oldest checkpoint.
        oldest: CheckpointId,
        /// The time of the oldest checkpoint, in the caller's time zone.
        time: String,
    },
    /// The checkpoint has no attachment of this name.
    #[error("checkpoint {} has no attachment {name:?}", checkpoint.short())]
    UnknownAttachment {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The name that was given.
        name: String,
    },
    /// The path is outside the workspace.
    #[error("{} is outside the workspace {}", path.display(), root.display())]
    PathOutsideWorkspace {
        /// The path that was given.
        path: PathBuf,
        /// The workspace.
        root: PathBuf,
    },
    /// The path can't be one inside a workspace.
    #[error(transparent)]
    InvalidPath(#[from] InvalidPath),
    /// The workspace is a directory that must not be saved or restored as a whole.
    #[error("{} is a protected directory", path.display())]
    ProtectedDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// The checkpoint is a feature checkpoint, which is deleted only with force.
    #[error("{} is a feature checkpoint, which is kept forever", id.short())]
    FeatureCheckpoint {
        /// The checkpoint.
        id: CheckpointId,
    },
    /// The name could be read as another address.
    #[error("{name:?} can't be the name of a checkpoint: it has another meaning")]
    InvalidName {
        /// The name that was given.
        name: String,
    },
    /// The arguments are invalid, or contradict each other.
    #[error("{0}")]
    Usage(String),
    /// A settings file can't be read, or is not valid.
    #[error("{}: {problem}", file.display())]
    Settings {
        /// The file.
        file: PathBuf,
        /// The line, the key and the problem.
        problem: String,
    },
    /// Something in the store is missing or does not match its id.
    #[error("the store {} is damaged: {problem}", store.display())]
    StoreDamaged {
        /// The store.
        store: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The journal of an interrupted restore can't be read.
    #[error("the store {} is damaged: the journal of an interrupted restore can't be read: {problem}", store.display())]
    JournalDamaged {
        /// The store.
        store: PathBuf,
        /// The problem.
        problem: String,
    },
    /// The store needs features that this version does not have.
    #[error("the store {} was written by a newer version of Backtrail: it needs {feature}", store.display())]
    StoreTooNew {
        /// The store.
        store: PathBuf,
        /// The first unknown feature.
        feature: String,
    },
    /// The directory that should be a store, such as the one given with `--store`, holds something else.
    #[error("{} is neither a store nor an empty directory", path.display())]
    NotAStore {
        /// The directory.
        path: PathBuf,
    },
    /// The store belongs to another workspace.
    #[error("the store {} belongs to the workspace {}", store.display(), owner.display())]
    StoreOfAnother {
        /// The store.
        store: PathBuf,
        /// The workspace that it belongs to.
        owner: PathBuf,
    },
    /// Another directory is at the path of the one that the store belongs to.
    #[error("the store {} belongs to another directory, which was at {} before", store.display(), path.display())]
    AnotherDirectory {
        /// The store.
        store: PathBuf,
        /// The path of both.
        path: PathBuf,
    },
    /// The directory of the store uses another store now.
    #[error("the store {} is no longer in use: {} has another store now", store.display(), path.display())]
    StoreSetAside {
        /// The store.
        store: PathBuf,
        /// Its directory.
        path: PathBuf,
    },
    /// A store can't be bound to a directory while the one that it belongs to is there.
    #[error("the store {} belongs to {}, which still exists", store.display(), owner.display())]
    OwnerIsThere {
        /// The store.
        store: PathBuf,
        /// Its directory.
        owner: PathBuf,
    },
    /// The folder merely holds projects. It becomes a workspace only if its owner asks for that.
    #[error("{} contains several projects; to make it one workspace, run `backtrail init` there", path.display())]
    FolderOfProjects {
        /// The folder.
        path: PathBuf,
    },
    /// The files differ from those that the plan was made for.
    #[error("the files changed since the plan was made")]
    PlanChanged,
    /// A hunk is not among those that the restore or revert would make.
    #[error("there is no hunk {id} any more, or there never was")]
    HunkChanged {
        /// The id that was given.
        id: String,
    },
    /// Something is in the way of a restore.
    #[error("{path}: {reason}{}", if *others == 0 { String::new() } else { format!(" (and {others} more)") })]
    Conflict {
        /// The first path with a conflict.
        path: WorkspacePath,
        /// The conflict at that path.
        reason: String,
        /// The number of further conflicts.
        others: usize,
    },
    /// A restore failed and could not be taken back at once. The next command that writes continues it.
    #[error("{source}; the restore is not finished")]
    Unfinished {
        /// The error that stopped the restore.
        source: Box<Error>,
    },
    /// A restore of this workspace was interrupted, and the operation would remove what the restore needs.
    #[error("a restore of {} was interrupted and is not finished: the store has the only copy of some files", path.display())]
    HalfRestored {
        /// The workspace.
        path: PathBuf,
    },
    /// The directory to export or fork into is not empty, or is not a directory.
    #[error("{} is not an empty directory", path.display())]
    NotEmpty {
        /// The path.
        path: PathBuf,
    },
    /// The directory is not a fork of the workspace.
    #[error("{} is not a fork of {}", path.display(), workspace.display())]
    NotAFork {
        /// The directory.
        path: PathBuf,
        /// The workspace.
        workspace: PathBuf,
    },
    /// The directory is a fork that was interrupted before it had all its files.
    #[error("{} is an unfinished fork: files are missing in it", path.display())]
    UnfinishedFork {
        /// The directory.
        path: PathBuf,
    },
    /// The target of an export or a fork is inside the workspace or a store.
    #[error("{} is inside the {part} {}", path.display(), root.display())]
    NotElsewhere {
        /// The target.
        path: PathBuf,
        /// The word `workspace` or `store`.
        part: &'static str,
        /// The path of that workspace or store.
        root: PathBuf,
    },
    /// Another process has locked the workspace.
    #[error("another process is using {} and did not finish within {seconds} s", path.display())]
    Busy {
        /// The workspace.
        path: PathBuf,
        /// The time that was waited.
        seconds: u64,
    },
    /// The store lies on a file system without locks.
    #[error("the file system of {} does not support locks", path.display())]
    NoLocks {
        /// The store.
        path: PathBuf,
    },
    /// The caller asked the operation to stop.
    #[error("stopped on request before anything was changed")]
    Stopped,
    /// A bug, or damage of an unforeseen kind.
    #[error("internal error: {0}")]
    Internal(String),
}

/// The result of an operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Returns the error for a checkpoint that is not on the timeline.
    pub(crate) fn unknown_checkpoint(id: &CheckpointId) -> Self {
        Self::UnknownCheckpoint { word: id.to_string(), nearest: None }
    }

    /// Returns the stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::GitState { .. } => ErrorCode::GitState,
            Self::Io { source, .. } | Self::StagingArea { source, .. } if is_no_space(source) => ErrorCode::NoSpace,
            Self::Io { .. }
            | Self::StagingArea { .. }
            | Self::NoWorkspace { .. }
            | Self::NotADirectory { .. }
            | Self::NoLocks { .. } => ErrorCode::Io,
            Self::UnknownCheckpoint { .. }
            | Self::MalformedAddress { .. }
            | Self::NoEarlierCheckpoint { .. }
            | Self::ParentDeleted { .. }
            | Self::UnknownSession { .. }
            | Self::BeforeTheFirst { .. } => ErrorCode::UnknownCheckpoint,
            Self::AmbiguousCheckpoint { .. } => ErrorCode::AmbiguousCheckpoint,
            Self::UnknownPath { .. } | Self::LeftOutPath { .. } | Self::UnknownAttachment { .. } => {
                ErrorCode::UnknownPath
            }
            Self::PathOutsideWorkspace { .. } | Self::InvalidPath(_) => ErrorCode::PathOutsideWorkspace,
            Self::ProtectedDirectory { .. }
            | Self::OwnerIsThere { .. }
            | Self::FolderOfProjects { .. }
            | Self::UnfinishedFork { .. } => ErrorCode::ProtectedDirectory,
            Self::FeatureCheckpoint { .. } => ErrorCode::FeatureCheckpoint,
            Self::InvalidName { .. } | Self::Usage(_) | Self::NotAStore { .. } => ErrorCode::Usage,
            Self::FirstCheckpoint { .. } | Self::BackwardRange { .. } => ErrorCode::Usage,
            Self::StoreOfAnother { .. } | Self::AnotherDirectory { .. } | Self::StoreSetAside { .. } => {
                ErrorCode::Usage
            }
            Self::Unfinished { source } => source.code(),
            Self::PlanChanged | Self::HunkChanged { .. } => ErrorCode::PlanChanged,
            Self::Conflict { .. } | Self::HalfRestored { .. } => ErrorCode::Conflict,
            Self::NotEmpty { .. } | Self::NotElsewhere { .. } | Self::NotAFork { .. } => ErrorCode::Usage,
            Self::Settings { .. } => ErrorCode::Settings,
            Self::StoreDamaged { .. } | Self::JournalDamaged { .. } => ErrorCode::StoreDamaged,
            Self::StoreTooNew { .. } => ErrorCode::StoreTooNew,
            Self::Busy { .. } => ErrorCode::Busy,
            Self::Stopped => ErrorCode::Interrupted,
            Self::Internal(_) => ErrorCode::Internal,
        }
    }
}

/// Returns whether there was no room for the data to write.
pub(crate) fn is_no_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

fn describe(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file or directory".into(),
        io::ErrorKind::PermissionDenied => "permission denied".into(),
        io::ErrorKind::StorageFull => "no space left on the disk".into(),
        io::ErrorKind::FileTooLarge => "the file would be larger than the limit allows".into(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".into(),
        _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            "a directory was replaced by a symbolic link".into()
        }
        _ => error.to_string(),
    }
}

/// Adds the action and its path to an error of the operating system.
pub(crate) trait While<T> {
    fn or_fail(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T>;
}

impl<T> While<T> for io::Result<T> {
    fn or_fail(self, action: &'static str, path: impl Into<PathBuf>) -> Result<T> {
        self.map_err(|source| Error::Io { action, path: path.into(), source })
    }
}
