//! The store of one workspace: a bare git repository, with additional files for what git has no place for.
//!
//! Only this module knows git's object formats. `docs/store-format.md` describes what is written, in which order, and
//! what a crash at each point leaves behind.

mod attachments;
mod compact;
mod compress;
mod condense;
mod confirmed_excludes;
mod contents;
mod delta;
mod exact;
mod format;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod identity;
mod journal;
mod layout;
mod lines;
mod objects;
mod open_stores;
mod operations;
mod pack;
mod pack_index;
mod packed_sizes;
mod reachable;
mod record;
mod refs;
mod reindex;
mod repack;
mod retention_notes;
mod snapshot;
mod state;
mod steps;
#[expect(clippy::module_inception, reason = "the store is the noun of this folder, and this file holds it")]
mod store;
mod timeline;
mod verify;
mod writer;

pub(crate) use attachments::{NewAttachment, Pieces};
pub(crate) use contents::{HeldContents, is_held_nearby};
pub(crate) use exact::ExactText;
pub(crate) use format::is_store;
pub(crate) use identity::{FoundDirectory, IdentityFile, Likeness};
pub(crate) use journal::{Area, Found as FoundJournal, GitStep, Journal, Step};
pub(crate) use layout::Layout;
pub(crate) use objects::{HashOnly, ObjectReader, content_id};
pub use open_stores::OpenStores;
pub use operations::Direction;
pub(crate) use operations::{Operation, Operations, Restored};
pub(crate) use pack::PackWriter;
pub(crate) use packed_sizes::PackedSizes;
pub(crate) use record::{Record, RecordedGit, RecordedPaths};
pub(crate) use retention_notes::{ClockNote, LimitNote, RetentionNotes};
pub(crate) use snapshot::{Snapshot, StoredEntry, StoredNode};
pub(crate) use state::{NewGitFile, State};
pub(crate) use store::Store;
pub(crate) use timeline::{Timeline, TimelineEntry};
pub(crate) use verify::verify;
pub(crate) use writer::Writer;
