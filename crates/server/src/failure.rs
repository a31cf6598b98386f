//! Failures of a call: a code from `docs/json.md`, a message, and a hint that names the next tool to use.

use backtrail::{Error, ErrorCode};
use serde::Serialize;

/// The reason why a call failed.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Failure {
    code: &'static str,
    message: String,
    hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code: code.as_str(), message: message.into(), hint: None }
    }

    /// Returns the failure for invalid arguments.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Usage, message)
    }

    /// Returns the failure for a bug.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Internal, message)
    }

    /// Returns the failure for a call that the client cancelled, or that the end of the server cut off.
    pub(crate) fn stopped() -> Self {
        Error::Stopped.into()
    }

    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        self.hint = Some(hint.to_owned());
        self
    }

    pub(crate) fn is(&self, code: ErrorCode) -> bool {
        self.code == code.as_str()
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the JSON of `docs/json.md`: `{"error": {"code", "message", "hint"}}`.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        serde_json::json!({ "error": self })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let hint = hint_at(&error);
        Self { code: error.code().as_str(), message: error.to_string(), hint }
    }
}

fn hint_at(error: &Error) -> Option<String> {
    let hint = match error {
        Error::UnknownCheckpoint { .. } | Error::MalformedAddress { .. } | Error::NoEarlierCheckpoint { .. } => {
            "list the checkpoints with checkpoint_list"
        }
        Error::BeforeTheFirst { oldest, .. } => {
            return Some(format!("use the id of the oldest, {}, or list all with checkpoint_list", oldest.short()));
        }
        Error::AmbiguousCheckpoint { .. } => "give more characters of the id",
        Error::UnknownPath { .. } => "paths are relative to the workspace; workspace_status shows its changes",
        Error::PathOutsideWorkspace { .. } | Error::InvalidPath(_) => "this server serves only one workspace",
        Error::ProtectedDirectory { .. } => "ask the user to start the server in a directory inside it",
        Error::InvalidName { .. } => backtrail::RULE_OF_NAMES,
        Error::PlanChanged => "make a new plan, with restore_plan, revert_plan or adopt",
        Error::HunkChanged { .. } => "list the present hunks with hunks",
        Error::NotAFork { .. } => "give the path that fork answered with",
        Error::ParentDeleted { .. } => "take back a range instead: FROM..TO",
        Error::Conflict { .. } => "plan again with skip_conflicts, or for a revert with markers, or move the file away",
        Error::Unfinished { .. } => "the next call that writes continues it",
        Error::NotAStore { .. } => {
            "ask the user to start the server with --store DIR: a store, or a directory that is new or empty"
        }
        Error::StoreDamaged { .. } => "ask the user to run: backtrail verify",
        Error::JournalDamaged { .. } => "ask the user to run: backtrail recover --abort",
        Error::StoreTooNew { .. } => "ask the user to update Backtrail",
        Error::Busy { .. } => "try again",
        Error::Settings { .. } => "fix the settings file",
        Error::Io { source, .. } | Error::StagingArea { source, .. }
            if source.kind() == std::io::ErrorKind::FileTooLarge =>
        {
            "ask the user to allow larger files, with: ulimit -f"
        }
        Error::Io { .. } | Error::StagingArea { .. } if error.code() == ErrorCode::NoSpace => {
            "free some space on the disk"
        }
        Error::Internal(_) => "please report this bug, with the calls that led to it",
        _ => return None,
    };
    Some(hint.to_owned())
}
