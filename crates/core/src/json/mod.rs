//! The answers for programs, key by key as `docs/json.md` writes them down.
//!
//! Every front end that speaks JSON shares these shapes. Printing them is left to whoever asked.

mod answers;
mod change;
mod checkpoint;
mod text;

pub use answers::{
    ConflictJson, DiffJson, HistoryJson, MovedJson, RestoreJson, SavedJson, ShownJson, StatusJson, SteppedJson,
    TimelineJson, VersionJson,
};
pub use change::{ChangeJson, SkippedJson};
pub use checkpoint::{AttachmentJson, CheckpointJson, ContextJson, FeatureStateJson, GitJson, timestamp};
pub use text::start_of;
