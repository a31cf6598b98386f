//! An error in a pipeline, with its location.

/// An error in a pipeline.
#[derive(Debug)]
pub(crate) struct PipelineProblem {
    /// The line of the file, counted from 1. `None` if the error is not in one line.
    pub(crate) line: Option<u64>,
    /// The message, with the key.
    pub(crate) message: String,
    /// The suggested fix.
    pub(crate) hint: Option<String>,
}

impl PipelineProblem {
    pub(super) fn at(line: u64, message: impl Into<String>) -> Self {
        Self { line: Some(line), message: message.into(), hint: None }
    }

    pub(super) fn anywhere(message: impl Into<String>) -> Self {
        Self { line: None, message: message.into(), hint: None }
    }

    pub(super) fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

pub(super) type Result<T> = std::result::Result<T, PipelineProblem>;
