//! Merges a change into the files on disk, three ways and path by path.
//!
//! The base is the state after the change, one side is the files on disk, the other side is the state before the
//! change. Only reads: the result is a map from paths to their new sides, which a restore plan carries out. Nothing
//! here guesses where a directory was moved.

mod clash;
mod lines;
mod overlay;
mod path;
mod renames;
mod stretch;
mod tree;

pub(crate) use clash::Purpose;
pub(crate) use lines::Labels;
pub(crate) use renames::{Moves, find_moves};
pub(crate) use stretch::Stretch;
pub(crate) use tree::{MergeResult, Merger, Overlaps};
