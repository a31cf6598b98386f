//! The operations: one file or folder for each. All are methods of [`Workspace`](crate::Workspace).

pub(crate) mod adopt_store;
pub(crate) mod bisect;
pub(crate) mod blame;
pub(crate) mod captured_later;
pub(crate) mod cat;
pub(crate) mod diff;
pub(crate) mod exclude;
mod export;
pub(crate) mod fork;
pub(crate) mod history;
mod locked;
mod merge;
mod new_directory;
mod not_taken_back;
pub(crate) mod operation_log;
pub(crate) mod restore;
pub(crate) mod retention;
pub(crate) mod revert;
pub(crate) mod save;
pub(crate) mod show;
mod skipped_directory;
pub(crate) mod status;
pub(crate) mod step;
pub(crate) mod turns;
mod undo;
pub(crate) mod verify;
pub(crate) mod workspaces;
