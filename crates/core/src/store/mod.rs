//! The store of one workspace: a bare git repository, with additional files for what git has no place for.
//!
//! Only this module knows git's object formats. `docs/store-format.md` describes what is written, in which order, and
//! what a crash at each point leaves behind.

mod attachments;
mod bin;
mod checksummed_lines;
mod compress;
mod confirmed_excludes;
mod content_cuts;
mod contents;
mod fork_notes;
mod fork_origin;
mod format;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod identity;
mod journal;
mod json_bytes;
mod layout;
mod objects;
mod open_stores;
mod operations;
pub(crate) mod packs;
mod reachable;
mod record;
mod refs;
mod retention_notes;
mod shared_objects;
mod snapshot;
mod state;
mod step_counter;
#[expect(clippy::module_inception, reason = "the store is the noun of this folder, and this file holds it")]
mod store;
mod tidy_notes;
mod timeline;
mod timeline_index;
mod verify;
mod watch_note;
mod writer;

pub(crate) use attachments::{NewAttachment, Pieces};
pub(crate) use contents::{HeldContents, is_held_nearby};
pub(crate) use fork_notes::ForkNote;
pub(crate) use fork_origin::{ForkLink, ForkOrigin};
pub(crate) use format::is_store;
pub(crate) use identity::{FoundDirectory, IdentityFile, Likeness};
pub(crate) use journal::{Area, FoundJournal, GitStep, Journal, OpenJournal, SafetyCheckpoint, Step};
pub(crate) use json_bytes::ExactText;
pub(crate) use layout::Layout;
pub(crate) use objects::{HashOnly, ObjectReader, content_id};
pub use open_stores::OpenStores;
pub use operations::Direction;
pub(crate) use operations::{Binned, Done, Fate, Operation, Operations, Restored};
pub(crate) use packs::PackWriter;
pub(crate) use packs::PackedSizes;
pub(crate) use record::{Record, RecordedGit, RecordedPaths};
pub(crate) use retention_notes::{ClockNote, LimitNote, RetentionNotes};
pub(crate) use snapshot::{Snapshot, StoredEntry, StoredNode};
pub(crate) use state::{NewGitFile, State};
pub(crate) use step_counter::RunningCall;
pub(crate) use store::Store;
pub(crate) use timeline::{Timeline, TimelineEntry};
pub(crate) use verify::verify;
pub(crate) use watch_note::WatchNote;
pub(crate) use writer::Writer;
