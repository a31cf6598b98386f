//! The nouns that every part of the engine shares: ids, paths, entries, changes, checkpoints, scopes.
//!
//! Plain values. Nothing here reads a disk or a clock.

mod change;
mod checkpoint;
mod contents;
mod entry;
mod ids;
mod path;
mod rules;
mod scope;

pub use change::{Change, ChangeStatus, Side};
pub use checkpoint::{Attachment, Checkpoint, Context, FeatureState, GitChanges, GitState, Kind, UnknownKind};
pub use contents::{ContentSink, Contents, Unreadable, Unwritable, is_shortage};
pub use entry::{
    Directory, DirectoryIds, Entry, Exception, FileEntry, Memory, Mode, ModeDefaults, Node, Reason, Skipped, Stamp,
    Summary,
};
pub use ids::{CheckpointId, ContentId, InvalidId, ModesId, TreeId};
pub use path::{InvalidPath, WorkspacePath, is_safe_name};
pub use rules::OutsideRules;
pub use scope::Scope;
