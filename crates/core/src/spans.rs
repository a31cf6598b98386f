//! The spans of operations, for a front end that installs a `tracing` subscriber.
//!
//! An operation that writes has a span at the level info, and one that only reads has a span at debug. The phases of an
//! operation are spans at debug. Fields hold counts, ids and error codes. Paths are only in events at debug and trace.
//! No field holds the contents of a file, a prompt, a message or a command line. No file has a span of its own.

use std::path::Path;

use tracing::{Span, debug, field::display, trace};

use crate::{
    error::{Error, Result},
    model::{Change, CheckpointId},
};

/// Returns the span of an operation that writes, with fields that are recorded later.
macro_rules! write_span {
    ($store:expr, $name:literal $(, $field:ident)* $(,)?) => {
        tracing::info_span!(
            $name,
            store = $crate::spans::directory_name($store),
            code = tracing::field::Empty,
            action = tracing::field::Empty,
            os_error = tracing::field::Empty,
            $($field = tracing::field::Empty,)*
        )
    };
}

/// Returns the span of an operation that only reads, with fields that are recorded later.
macro_rules! read_span {
    ($store:expr, $name:literal $(, $field:ident)* $(,)?) => {
        tracing::debug_span!(
            $name,
            store = $crate::spans::directory_name($store),
            code = tracing::field::Empty,
            action = tracing::field::Empty,
            os_error = tracing::field::Empty,
            $($field = tracing::field::Empty,)*
        )
    };
}

/// Returns the span of a phase of an operation, entered, with fields that are recorded later.
macro_rules! phase {
    ($name:literal $(, $field:ident)* $(,)?) => {
        tracing::debug_span!($name $(, $field = tracing::field::Empty)*).entered()
    };
}

pub(crate) use {phase, read_span, write_span};

/// Runs an operation in its span. Records the code of its error.
pub(crate) fn operation<T>(span: &Span, run: impl FnOnce() -> Result<T>) -> Result<T> {
    let done = span.in_scope(run);
    if let Err(error) = &done {
        note_error(span, error);
    }
    done
}

/// Records the outcome of an operation on its span. Takes numbers, ids and words of the program, and no other text.
#[derive(Clone, Copy)]
pub(crate) struct Outcome<'s> {
    span: &'s Span,
}

impl<'s> Outcome<'s> {
    pub(crate) fn on(span: &'s Span) -> Self {
        Self { span }
    }

    pub(crate) fn count(self, field: &'static str, count: usize) -> Self {
        self.number(field, count as u64)
    }

    pub(crate) fn number(self, field: &'static str, number: u64) -> Self {
        self.span.record(field, number);
        self
    }

    pub(crate) fn flag(self, field: &'static str, is_set: bool) -> Self {
        self.span.record(field, is_set);
        self
    }

    pub(crate) fn id(self, field: &'static str, id: Option<&CheckpointId>) -> Self {
        if let Some(id) = id.filter(|_| !self.span.is_disabled()) {
            self.span.record(field, display(id.short()));
        }
        self
    }

    pub(crate) fn word(self, field: &'static str, word: &'static str) -> Self {
        self.span.record(field, word);
        self
    }
}

fn note_error(span: &Span, error: &Error) {
    span.record("code", error.code().as_str());
    let error = match error {
        Error::Unfinished { source } => source,
        other => other,
    };
    if let Error::Io { action, path, source } = error {
        span.record("action", action);
        span.record("os_error", source.raw_os_error());
        span.in_scope(|| debug!(?path, action, "the operating system reported an error"));
    }
}

/// Returns the name of a directory without its parents. Returns `None` if it is not UTF-8.
pub(crate) fn directory_name(directory: &Path) -> Option<&str> {
    directory.file_name()?.to_str()
}

/// Traces each path that an operation found changed, or is about to change.
pub(crate) fn trace_changes(changes: &[Change]) {
    if !tracing::enabled!(tracing::Level::TRACE) {
        return;
    }
    for change in changes {
        trace!(path = ?change.path, status = change.status.as_str(), "changed");
    }
}
