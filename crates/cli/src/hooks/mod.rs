//! What agents say through their hooks, and what is done about it.
//!
//! `front` is what an agent starts. It reads an `event`, whose words one file for each shape of payload knows, and has a
//! `worker` take the checkpoint, once `claim` says that it is its turn. `session` remembers what must be known from one hook
//! to the next, and `queue` who comes first.

mod agent;
mod checkup;
mod claim;
mod claude;
mod cline;
pub(crate) mod conversation;
mod copilot;
mod cursor;
mod event;
mod front;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod gemini;
mod last_word;
mod late;
mod log;
mod news;
mod queue;
pub(crate) mod sample;
mod session;
mod shell_words;
mod surrogates;
mod tools;
mod worker;

pub(crate) use {
    agent::Agent,
    checkup::Checkup,
    front::{run, words_of_hook},
    late::{MEANING as MEANING_OF_LATE, is_late},
    log::Log,
    session::Sessions,
};
