//! Converts failures into exceptions. The exception classes are written in Python, in `backtrail/errors.py`.

use std::io;

use backtrail::Error;
use backtrail_cli::Failure;
use pyo3::{prelude::*, sync::PyOnceLock, types::PyDict};

/// Converts a failed operation into the exception for its code.
pub(crate) fn exception(py: Python<'_>, error: &Error) -> PyErr {
    let details = PyDict::new(py);
    let filled = fill(&details, error);
    filled.and_then(|()| make(py, error.code().as_str(), &error.to_string(), &details)).unwrap_or_else(|broken| broken)
}

/// Converts a failure of the command line crate into an exception.
pub(crate) fn failure(py: Python<'_>, failure: &Failure) -> PyErr {
    match failure {
        Failure::Operation(error) => exception(py, error),
        _ => {
            let made = make(py, failure.code().as_str(), &failure.message(), &PyDict::new(py));
            made.unwrap_or_else(|broken| broken)
        }
    }
}

fn make(py: Python<'_>, code: &str, message: &str, details: &Bound<'_, PyDict>) -> PyResult<PyErr> {
    static MAKE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let make = MAKE.import(py, "backtrail.errors", "from_code")?;
    Ok(PyErr::from_value(make.call1((code, message, details))?))
}

/// Adds the details of an error that become attributes of the exception.
fn fill(details: &Bound<'_, PyDict>, error: &Error) -> PyResult<()> {
    match error {
        Error::Io { path, source, .. } | Error::StagingArea { path, source } | Error::NoWorkspace { path, source } => {
            details.set_item("filename", path.as_os_str())?;
            details.set_item("errno", error_number(source))
        }
        Error::NotADirectory { path }
        | Error::ProtectedDirectory { path }
        | Error::NotEmpty { path }
        | Error::PathOutsideWorkspace { path, .. } => details.set_item("filename", path.as_os_str()),
        Error::UnknownCheckpoint { nearest, .. } => details.set_item("nearest", nearest),
        Error::AmbiguousCheckpoint { candidates, .. } => {
            details.set_item("candidates", candidates.iter().map(ToString::to_string).collect::<Vec<_>>())
        }
        _ => Ok(()),
    }
}

fn error_number(error: &io::Error) -> Option<i32> {
    error.raw_os_error()
}
