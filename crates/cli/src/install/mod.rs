//! Installs the hooks and the MCP server in an agent's own configuration files, and removes them again.

mod config_file;
mod draft;
mod json;
mod lock;
mod look;
mod plan;
mod planner;
mod receipts;
mod rehearsal;
mod toml;
mod wanted;

#[cfg(test)]
#[path = "../../tests/it/install_samples.rs"]
mod samples;

pub(crate) use {
    draft::Piece,
    lock::InstallLock,
    plan::{FileChange, FilePlan, Plan},
    planner::Planner,
    receipts::Receipts,
    rehearsal::{Rehearsal, rehearse},
    wanted::{Places, Program, Reach, Wanted, has_uncommitted_files, wanted},
};
