//! Puts the hooks and the server into an agent's own files, and takes them out again.

mod config_file;
mod draft;
mod json;
mod plan;
mod receipts;
mod toml;
mod wanted;

pub(crate) use {
    plan::{FileChange, FilePlan, Plan, Planner},
    receipts::Receipts,
    wanted::{Places, Program, Reach, Wanted, has_uncommitted_files, wanted},
};
