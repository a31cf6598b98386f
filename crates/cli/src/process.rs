//! The process's own limits, and how to start another like it.

use std::{
    ffi::OsString,
    io,
    process::Command,
    sync::{Arc, OnceLock},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::SIGXFSZ;

static USUAL_OPEN_FILES: OnceLock<Rlimit> = OnceLock::new();

/// Lets this process keep as many files open as the system allows it: a deep tree holds a handle per level.
pub(crate) fn raise_open_files() {
    let mut limit = *USUAL_OPEN_FILES.get_or_init(|| getrlimit(Resource::Nofile));
    limit.current = limit.maximum;
    // A refusal leaves the smaller limit, which most workspaces never reach.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Has a file that reaches the limit of `ulimit -f` fail to be written, which can be told, where it would end this
/// process without a word.
pub(crate) fn outlive_file_size_limit() {
    // Noted, not ignored: programs that are started from here are then ended by it as usual. Without it, it is as before.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// While this lives, the limits are those that the process was started with: its children have them, too.
pub(crate) struct UsualLimits;

impl UsualLimits {
    pub(crate) fn for_children() -> Self {
        if let Some(usual) = USUAL_OPEN_FILES.get() {
            let _ = setrlimit(Resource::Nofile, *usual);
        }
        Self
    }
}

impl Drop for UsualLimits {
    fn drop(&mut self) {
        raise_open_files();
    }
}

/// How the command came to run, which says how to start it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartedBy {
    /// By a program of its own.
    OwnProgram,
    /// By another program that these words make run it: an interpreter, for instance.
    Words(Vec<OsString>),
}

static STARTED_BY: OnceLock<StartedBy> = OnceLock::new();

/// Keeps how the command came to run; the first call counts, because a process starts once.
pub(crate) fn remember(started_by: StartedBy) {
    STARTED_BY.get_or_init(|| started_by);
}

/// The words that start this program again, to put a command line behind.
pub(crate) fn own_words() -> io::Result<Vec<OsString>> {
    match STARTED_BY.get() {
        Some(StartedBy::Words(words)) => Ok(words.clone()),
        _ => Ok(vec![std::env::current_exe()?.into_os_string()]),
    }
}

/// A process of this same program, to put a command line behind.
pub(crate) fn own_command() -> io::Result<Command> {
    let words = own_words()?;
    let (program, rest) = words.split_first().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(rest);
    Ok(command)
}
