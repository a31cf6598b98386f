//! The `backtrail` command, inside of the interpreter.

use std::ffi::OsString;

use backtrail_cli::StartedBy;
use pyo3::prelude::*;

/// Runs one command line and gives its exit status; `starts` are the words that make the interpreter run it again.
#[pyfunction]
pub(crate) fn run_command(py: Python<'_>, words: Vec<OsString>, starts: Vec<OsString>) -> u8 {
    py.detach(|| backtrail_cli::main(&words, StartedBy::Words(starts)))
}
