//! The `backtrail` command, run inside the interpreter.

use std::ffi::OsString;

use backtrail_cli::StartedBy;
use pyo3::prelude::*;

/// Runs one command line and returns its exit status. `starts` are the words that start the command again.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, words: Vec<OsString>, starts: Vec<OsString>) -> u8 {
    py.detach(|| backtrail_cli::main(&words, StartedBy::Words(starts)))
}
