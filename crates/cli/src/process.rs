//! The limits of this process, and the command that starts another process of the same program.

use std::{
    ffi::OsString,
    io,
    process::Command,
    sync::{Arc, OnceLock},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use signal_hook::consts::SIGXFSZ;

static USUAL_OPEN_FILES: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit of open files to the maximum: scanning a deep tree needs one handle per level.
pub(crate) fn raise_open_files() {
    let mut limit = *USUAL_OPEN_FILES.get_or_init(|| getrlimit(Resource::Nofile));
    limit.current = limit.maximum;
    // If this fails, the smaller limit remains, which most workspaces never reach.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Makes a write beyond the limit of `ulimit -f` fail with an error that can be reported. Otherwise SIGXFSZ would
/// silently kill this process.
pub(crate) fn outlive_file_size_limit() {
    // The signal is handled, not ignored, so that it still kills child programs as usual. If this fails, nothing
    // changes.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Restores the limits that the process was started with while this exists, so that children inherit them.
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

/// The way in which the command was started, which determines how to start it again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StartedBy {
    /// As a program of its own.
    OwnProgram,
    /// Inside another program, such as an interpreter. These words start it.
    Words(Vec<OsString>),
}

static STARTED_BY: OnceLock<StartedBy> = OnceLock::new();

/// Stores how the command was started. Only the first call has an effect, because a process starts once.
pub(crate) fn remember(started_by: StartedBy) {
    STARTED_BY.get_or_init(|| started_by);
}

/// Returns whether the command runs inside another program, such as an interpreter.
pub(crate) fn is_inside_another() -> bool {
    matches!(STARTED_BY.get(), Some(StartedBy::Words(_)))
}

/// Returns the words that start this program again. The caller appends the arguments.
pub(crate) fn own_words() -> io::Result<Vec<OsString>> {
    match STARTED_BY.get() {
        Some(StartedBy::Words(words)) => Ok(words.clone()),
        _ => Ok(vec![std::env::current_exe()?.into_os_string()]),
    }
}

/// Returns a command that starts this program again. The caller appends the arguments.
pub(crate) fn own_command() -> io::Result<Command> {
    let words = own_words()?;
    let (program, rest) = words.split_first().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(rest);
    Ok(command)
}
