//! Backtrail: checkpoints of a workspace that can always be taken back.
//!
//! A [`Workspace`] is a directory under protection. [`Workspace::save`] takes a checkpoint of it into a shadow git
//! repository outside of it; [`Workspace::status`], [`Workspace::diff`] and [`Workspace::show`] report what changed.
//! [`Workspace::restore`] makes the files equal to a checkpoint, after it took a safety checkpoint of the present
//! files. [`Workspace::undo`] takes that back. The user's own git repository is read, and written only if
//! [`RestoreRequest::git`] is set.
//!
//! The library blocks, prints nothing, and knows no environment, home directory or clock of its own: the caller passes
//! them in. Operations and their phases are `tracing` spans, for a caller that installs a subscriber.
//!
//! ```
//! use backtrail::{Options, RestoreRequest, SaveRequest, Start, Workspace, locate};
//! use jiff::Timestamp;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let place = tempfile::tempdir()?;
//! let (project, stores) = (place.path().join("project"), place.path().join("stores"));
//! std::fs::create_dir(&project)?;
//! std::fs::write(project.join("notes.txt"), "good")?;
//!
//! let location = locate(&Start::At(project.clone()), &stores, None)?;
//! let workspace = Workspace::new(location, Options::default());
//! let saved = workspace.save(&SaveRequest::default(), Timestamp::now())?;
//!
//! std::fs::write(project.join("notes.txt"), "bad")?;
//! let request = RestoreRequest::whole(saved.checkpoint.id);
//! workspace.restore(&request, Timestamp::now())?;
//! assert_eq!(std::fs::read_to_string(project.join("notes.txt"))?, "good");
//!
//! workspace.undo(Timestamp::now())?;
//! assert_eq!(std::fs::read_to_string(project.join("notes.txt"))?, "bad");
//! # Ok(())
//! # }
//! ```

mod address;
pub mod app_files;
mod clock;
#[doc(hidden)]
pub mod disk;
mod error;
mod events;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
pub mod json;
mod model;
mod operations;
mod scan;
pub mod settings;
mod spans;
mod store;
mod text;
mod threads;
mod user_git;
mod watcher;
mod workspace;

pub use address::{
    Address, InvalidAddress, RULE_OF_NAMES,
    range::Range,
    time::{RULE_OF_SINCE, parse_end, parse_since, problem_of_since},
    validate_name,
};
pub use app_files as own_files;
pub use clock::{BootClock, BootTime, Clock};
pub use error::{Error, ErrorCode, Result};
pub use events::{Event, Progress, TimedEvent};
pub use model::{
    Attachment, Author, Change, ChangeAnswer, ChangeSource, ChangeStatus, ChangedDirectories, Checkpoint, CheckpointId,
    Conflict, ContentId, Context, Dropped, FeatureState, GitState, Hunk, InvalidId, InvalidPath, Kind, Mode, Origin,
    Reason, Scope, Side, Skipped, UnknownAuthor, UnknownKind, WatchToken, WorkTotals, WorkspacePath,
};
pub use operations::{
    adopt_store::Adopted,
    bisect::{Bisection, Candidate, Culprit, Links, Scratch, TestResult, Tested},
    blame::{Blame, BlameRange, LineOrigin},
    captured_later::CapturedLater,
    cat::StoredName,
    diff::{Diff, PatchLimits},
    fork::{AdoptRequest, Fork, ForkChanges, ForkRequest, Forked, LeftOut},
    history::{OnDisk, Version},
    operation_log::{LoggedOperation, OperationLog},
    restore::{
        ChosenChanges, HunkChoice, Moved, Only, Recovered, Recovery, RestoreOutcome, RestorePlan, RestoreRequest,
        TakenBack, Way,
    },
    retention::{ClockDoubt, Deleted, Loss, NotApplied, PrunePlan, Pruned, Verdict},
    revert::{OnConflict, RevertOutcome, RevertPlan, RevertRequest, RevertTarget},
    save::{SaveRequest, Saved, StillCaptured},
    show::{ListFilter, Shown},
    status::Status,
    step::{StepRequest, Stepped},
    turns::OthersWork,
    verify::{Damage, Verification},
    watch::{WatchRequest, Watched},
    workspaces::{WorkspaceEntry, forget, workspaces},
};
pub use scan::{PathGlob, Survey};
pub use settings::Settings;
pub use store::{Direction, OpenStores};
pub use user_git::{GitEnvironment, GitPosition};
pub use watcher::{AutoOutcome, AutoSaver, WatchEnd, WatcherReport};
pub use workspace::{
    Options, WatcherUse, Workspace,
    bindings::Former,
    event_log::EventFollower,
    locate::{Location, OptionsOf, Start, locate},
    precious::Precious,
    skipped::IgnoringRule,
};
