//! Types that every part of the engine shares: ids, paths, entries, changes, checkpoints, scopes.
//!
//! They are plain values. Nothing here reads a disk or a clock.

mod change;
mod checkpoint;
mod conflict;
mod contents;
mod entry;
mod hunk;
mod ids;
mod path;
mod rules;
mod scope;
mod watch;

pub use change::{Change, ChangeStatus, Side};
pub use checkpoint::{
    Attachment, Author, Checkpoint, Context, FeatureState, GitState, Kind, Origin, UnknownAuthor, UnknownKind,
    WorkTotals,
};
pub(crate) use checkpoint::{CallBeside, GitChanges};
pub use conflict::Conflict;
pub(crate) use contents::{ContentSink, Contents, Unreadable, Unwritable, is_shortage};
pub(crate) use entry::{
    Directory, DirectoryIds, Entry, Exception, FileEntry, Memory, ModeDefaults, Node, Stamp, Summary,
};
pub use entry::{Dropped, Mode, Reason, Skipped};
pub use hunk::Hunk;
pub use ids::{CheckpointId, ContentId, InvalidId};
pub(crate) use ids::{ModesId, TreeId};
pub(crate) use path::is_safe_name;
pub use path::{InvalidPath, WorkspacePath};
pub(crate) use rules::{MAX_RULE_BYTES, OutsideRules};
pub use scope::Scope;
pub(crate) use watch::CacheFile;
pub use watch::{ChangeAnswer, ChangeSource, ChangedDirectories, WatchToken};
