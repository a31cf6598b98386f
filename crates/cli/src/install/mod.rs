//! Installs the hooks and the MCP server in an agent's own configuration files, and removes them again.

mod config_file;
mod existing_entry;
mod json;
mod lock;
mod manifest;
mod plan;
mod planner;
mod receipts;
mod rehearsal;
mod text_edits;
mod toml;
mod toml_hooks;

#[cfg(test)]
#[path = "../../tests/it/install_samples.rs"]
mod samples;

pub(crate) use {
    lock::InstallLock,
    manifest::{Places, Program, Reach, Wanted, has_uncommitted_files, wanted},
    plan::{FileChange, FilePlan, Plan},
    planner::InstallPlanner,
    receipts::Receipts,
    rehearsal::{Rehearsal, rehearse},
    text_edits::AddedText,
};
