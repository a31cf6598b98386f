//! Tests of the built program: stdout, stderr and exit status of every command.
//!
//! `SNAPSHOTS=overwrite cargo test -p backtrail-cli` rewrites the expected text. Review the difference afterwards.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod answers;
mod bad_input;
mod bisect;
mod blame;
mod cat;
mod completion;
mod conversation;
mod delete;
mod demo;
mod diff;
mod doctor;
mod dropped;
mod environment;
mod events;
mod examples;
mod exclude;
mod export;
mod git;
mod history;
mod hooks;
mod hooks_dropped;
mod hooks_in_trouble;
mod hunk_picker;
mod init;
mod install;
mod install_samples;
mod integrations;
mod list;
mod logging;
mod mcp;
mod namespaces;
mod not_taken_back;
mod overview;
mod owners;
mod pages;
mod pin;
mod pipeline;
mod place;
mod prune;
mod ranges;
mod reference;
mod report;
mod restore;
mod revert;
mod save;
mod seeds;
mod show;
mod status;
mod step;
mod strace;
mod terminal;
mod threads;
mod try_run;
mod ui;
mod usage;
mod verify;
#[cfg(target_os = "linux")]
mod watch;
mod which_workspace;
mod whole_prompts;
mod workspaces;
mod wrap;
