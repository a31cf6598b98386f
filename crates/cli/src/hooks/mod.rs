//! Handles the hook events that agents send.
//!
//! `entry` is the process that an agent starts. It reads an `event`; one file for each payload format parses it. It
//! starts a `worker`, which takes the checkpoint once `claim` says that it is its turn. `session` stores the state that
//! one hook leaves for the next, and `queue` the order of the events.

mod agent;
mod checkup;
mod claim;
mod claude;
mod cline;
pub(crate) mod conversation;
mod copilot;
mod cursor;
mod entry;
mod event;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod gemini;
mod generic;
mod late_checkpoint;
mod log;
mod own_prompts;
mod panic_guard;
mod queue;
mod restore_notice;
pub(crate) mod sample;
mod session;
mod shell_commands;
mod surrogates;
mod tools;
mod transcripts;
mod worker;

pub(crate) use {
    agent::Agent,
    checkup::Checkup,
    entry::{run, words_of_hook},
    late_checkpoint::{MEANING as MEANING_OF_LATE, is_late},
    log::{Line as HookLine, Log, Sort},
    session::Sessions,
};
