//! What is wrong with a pipeline, and where.

/// What is wrong with a pipeline.
#[derive(Debug)]
pub(crate) struct Problem {
    /// The line of the file, from 1; none where it is not one line's.
    pub(crate) line: Option<u64>,
    /// What is wrong, with its key.
    pub(crate) message: String,
    /// What to do about it.
    pub(crate) hint: Option<String>,
}

impl Problem {
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

pub(super) type Result<T> = std::result::Result<T, Problem>;
