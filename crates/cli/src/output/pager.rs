//! Shows long output in a pager.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Seek, Write},
    os::unix::process::CommandExt,
    process::Command,
};

/// Replaces this process with the pager, which reads the text. Returns only if that fails.
///
/// A process that waited for the pager would be ended by a Ctrl-C that is meant for the pager, and the pager would lose
/// the terminal.
pub(crate) fn become_pager(pager: &OsStr, text: &str) -> io::Error {
    match input(text) {
        Ok(input) => command(pager).stdin(input).exec(),
        Err(error) => error,
    }
}

fn input(text: &str) -> io::Result<std::fs::File> {
    let mut file = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

fn command(pager: &OsStr) -> Command {
    // The shell survives Ctrl-C, so that only the pager reacts to it. The options of `less` are those that git uses:
    // exit if the text fits on one screen, pass colours through, and leave the text on the screen.
    let mut script = OsString::from("trap : INT; : ${LESS=FRX}; export LESS\n");
    script.push(pager);
    // A shell returns 127 if it does not find the pager. Then nothing was read.
    script.push("\n[ $? -ne 127 ] || cat");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script);
    command
}
