//! Long output, a screen at a time.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Seek, Write},
    os::unix::process::CommandExt,
    process::Command,
};

/// Becomes the pager, with the text as its input; comes back only where that can't be done.
///
/// A process that waited for the pager would be ended by the Ctrl-C that is meant for it, and leave it without a
/// terminal.
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
    // A Ctrl-C is the pager's to handle. As git has it, less leaves when the text fits on a screen, passes colours on and keeps the text on the screen.
    let mut script = OsString::from("trap : INT; : ${LESS=FRX}; export LESS\n");
    script.push(pager);
    // A shell gives 127 where it does not find the pager: nobody has read anything then.
    script.push("\n[ $? -ne 127 ] || cat");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script);
    command
}
