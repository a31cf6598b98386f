//! The report of `doctor --report`, to be attached to a bug report.
//!
//! It has versions, settings, counts, times, ids and words that the program itself chose. It has no contents of files,
//! prompts, messages, command lines and paths. Settings with text of the user are only named as set.

mod history;
mod system;

use std::collections::BTreeMap;

use backtrail::{Kind, ListFilter, Workspace};
use serde::Serialize;

pub(crate) use self::{
    history::{EventReported, HookReported, OperationReported},
    system::{ProgramVersion, System},
};
use crate::{
    file_system::FileSystem,
    invocation::{Invocation, Survey},
    logging::{CommandLog, LogEntry},
    output::{Check, SettingReported, settings_reported},
};

/// The maximum number of lines of each log.
const MAX_LINES: usize = 50;

/// The report.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) program: ProgramVersion,
    pub(crate) system: System,
    /// The environment variables that are set and that the program reads, without their values.
    pub(crate) variables: Vec<&'static str>,
    /// The code of the error because of which the rest is missing.
    pub(crate) problem: Option<&'static str>,
    pub(crate) workspace: Option<WorkspaceReported>,
    pub(crate) settings: Vec<SettingReported>,
    pub(crate) checks: Vec<CheckReported>,
    /// Restores and deletions, oldest first.
    pub(crate) operations: Vec<OperationReported>,
    /// Events of the workspace, oldest first.
    pub(crate) events: Vec<EventReported>,
    /// Problems of hooks in the workspace, oldest first.
    pub(crate) hooks: Vec<HookReported>,
    /// The end of the log file, oldest first: lines about this workspace, and about none.
    pub(crate) log: Vec<LogEntry>,
}

/// The workspace and its store, without their paths.
#[derive(Debug, Serialize)]
pub(crate) struct WorkspaceReported {
    /// The file system of the workspace. `None` if it can't be determined.
    pub(crate) file_system: Option<String>,
    /// The file system of the store.
    pub(crate) store_file_system: Option<String>,
    /// The name of the store's directory. `None` before the first checkpoint.
    pub(crate) store: Option<String>,
    pub(crate) store_bytes: Option<u64>,
    /// The number of checkpoints of each kind.
    pub(crate) checkpoints: BTreeMap<&'static str, usize>,
    /// Set if a restore was interrupted and is not finished.
    pub(crate) has_interrupted_restore: bool,
    /// Set if there is a git repository around the workspace.
    pub(crate) has_git: bool,
    /// Set if the log of operations has lines that can't be read.
    pub(crate) has_damaged_operations: bool,
}

/// The result of a check, without its text.
#[derive(Debug, Serialize)]
pub(crate) struct CheckReported {
    pub(crate) name: &'static str,
    pub(crate) ok: bool,
}

impl From<&Check> for CheckReported {
    fn from(check: &Check) -> Self {
        Self { name: check.name, ok: check.ok }
    }
}

impl Report {
    /// Returns the report. `checks` runs the usual checks. If the workspace can't be examined, the report says why, and
    /// has the rest.
    pub(crate) fn of(invocation: &Invocation, checks: impl FnOnce(&Survey) -> Vec<Check>) -> Self {
        let empty = Self::without_workspace(invocation);
        match invocation.survey() {
            Ok(survey) => Self::of_workspace(&survey, checks(&survey), invocation, empty),
            Err(failure) => Self { problem: Some(failure.code().as_str()), ..empty },
        }
    }

    fn without_workspace(invocation: &Invocation) -> Self {
        let environment = invocation.environment();
        Self {
            program: ProgramVersion::this(),
            system: System::this(environment),
            variables: environment.set_variables().to_vec(),
            problem: None,
            workspace: None,
            settings: Vec::new(),
            checks: Vec::new(),
            operations: Vec::new(),
            events: Vec::new(),
            hooks: Vec::new(),
            log: log_end(invocation, None),
        }
    }

    fn of_workspace(survey: &Survey, checks: Vec<Check>, invocation: &Invocation, rest: Self) -> Self {
        let workspace = &survey.workspace;
        let reported = WorkspaceReported::of(workspace);
        Self {
            settings: settings_reported(&survey.defaults, &survey.user, workspace.settings()),
            checks: checks.iter().map(CheckReported::from).collect(),
            operations: history::operations(workspace),
            events: history::events(workspace),
            hooks: history::hooks(workspace, invocation.environment()),
            log: log_end(invocation, store_name(workspace).as_deref()),
            workspace: Some(reported),
            ..rest
        }
    }
}

impl WorkspaceReported {
    /// Returns the facts about a workspace. Facts that can't be determined are left out: the checks report why.
    fn of(workspace: &Workspace) -> Self {
        let file_system = |path| FileSystem::of(path).ok().map(|found| found.name);
        let has_store = workspace.has_store().unwrap_or(false);
        Self {
            file_system: file_system(workspace.root()),
            store_file_system: file_system(workspace.store_directory()),
            store: store_name(workspace).filter(|_| has_store),
            store_bytes: workspace.store_bytes().ok(),
            checkpoints: checkpoints(workspace),
            has_interrupted_restore: workspace.has_interrupted_restore().unwrap_or(false),
            has_git: workspace.git_position().is_some(),
            has_damaged_operations: workspace.operation_log().is_ok_and(|log| log.has_damage),
        }
    }
}

fn store_name(workspace: &Workspace) -> Option<String> {
    Some(workspace.store_directory().file_name()?.to_string_lossy().into_owned())
}

fn checkpoints(workspace: &Workspace) -> BTreeMap<&'static str, usize> {
    let found = workspace.list(&ListFilter { brief: true, ..ListFilter::default() }).unwrap_or_default();
    let count = |kind: Kind| found.iter().filter(|checkpoint| checkpoint.kind == kind).count();
    Kind::ALL.into_iter().map(|kind| (kind.as_str(), count(kind))).filter(|(_, count)| *count > 0).collect()
}

/// Returns the last lines of the log file that concern a store or none.
fn log_end(invocation: &Invocation, store: Option<&str>) -> Vec<LogEntry> {
    let mut entries = CommandLog::entries(invocation.environment());
    entries.retain(|entry| entry.store.is_none() || entry.store.as_deref() == store);
    last(entries)
}

/// Returns the last lines of a log.
fn last<T>(mut lines: Vec<T>) -> Vec<T> {
    lines.drain(..lines.len().saturating_sub(MAX_LINES));
    lines
}
