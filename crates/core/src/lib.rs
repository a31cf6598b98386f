//! Backtrail: checkpoints of a workspace that can always be taken back.
//!
//! A [`Workspace`] is a directory under protection. [`Workspace::save`] takes a checkpoint of it into a shadow git
//! repository outside of it; [`Workspace::status`], [`Workspace::diff`] and [`Workspace::show`] report what changed.
//! [`Workspace::restore`] makes the files equal to a checkpoint, after it took a safety checkpoint of the present
//! files. [`Workspace::undo`] takes that back. The user's own git repository is read, and written only if
//! [`RestoreRequest::git`] is set.
//!
//! The library blocks, prints nothing, and knows no environment, home directory or clock of its own: the caller passes
//! them in.
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
mod bindings;
mod cat;
mod clock;
mod diff;
#[doc(hidden)]
pub mod disk;
mod error;
mod event_log;
mod events;
mod exclude;
mod export;
mod features;
mod files;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod held;
mod history;
mod housekeeping;
pub mod json;
mod left_out;
mod locate;
mod locked;
mod model;
mod moment;
mod not_taken_back;
pub mod own_files;
mod ownership;
mod precious;
mod restore;
mod retention;
mod save;
pub mod settings;
mod show;
mod skips;
mod status;
mod step;
mod store;
mod text;
mod threads;
mod turns;
mod undo;
mod user_repository;
mod verify;
mod workspace;

pub use address::{Address, InvalidAddress, RULE_OF_NAMES, validate_name};
pub use bindings::Former;
pub use cat::StoredName;
pub use clock::{BootClock, BootTime, Clock};
pub use diff::{Diff, PatchLimits};
pub use error::{Error, ErrorCode, Result};
pub use events::{Event, Progress, TimedEvent};
pub use files::Survey;
pub use history::{OnDisk, Version};
pub use housekeeping::{WorkspaceEntry, forget, workspaces};
pub use left_out::IgnoringRule;
pub use locate::{Location, OptionsOf, Start, locate};
pub use model::{
    Attachment, Change, ChangeStatus, Checkpoint, CheckpointId, Conflict, ContentId, Context, Dropped, FeatureState,
    GitState, InvalidId, InvalidPath, Kind, Mode, Reason, Scope, Side, Skipped, UnknownKind, WorkspacePath,
};
pub use moment::{RULE_OF_SINCE, parse_since, problem_of_since};
pub use ownership::Adopted;
pub use precious::Precious;
pub use restore::{Only, Recovered, Recovery, RestoreOutcome, RestorePlan, RestoreRequest, TakenBack, Way};
pub use retention::{ClockDoubt, Loss, NotApplied, PrunePlan, Pruned, Verdict};
pub use save::{SaveRequest, Saved, StillCaptured};
pub use settings::Settings;
pub use show::{ListFilter, Shown};
pub use status::Status;
pub use step::{StepRequest, Stepped};
pub use store::{Direction, OpenStores};
pub use user_repository::{GitEnvironment, GitPosition};
pub use verify::{Damage, Verification};
pub use workspace::{Options, Workspace};
