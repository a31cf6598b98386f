//! The JSON answers for programs, with the keys that `docs/json.md` defines.
//!
//! All front ends share these types. The caller prints them.

mod answers;
mod bisect;
mod blame;
mod change;
mod checkpoint;
mod fork;
mod workspaces;

pub use crate::text::start_of;
pub use answers::{
    AdoptJson, CapturedLaterJson, ConflictJson, DiffJson, HistoryJson, MovedFileJson, MovedJson, RestoreJson,
    RevertJson, SavedJson, ShownJson, StatusJson, SteppedJson, TimelineJson, VersionJson,
};
pub use bisect::{BisectJson, TestedJson};
pub use blame::{BlameJson, BlameRangeJson};
pub use change::{ChangeJson, SkippedJson};
pub use checkpoint::{AttachmentJson, CheckpointJson, ContextJson, FeatureStateJson, GitJson, timestamp};
pub use fork::{ForkJson, ForksJson};
pub use workspaces::{WorkspaceJson, WorkspacesJson};
