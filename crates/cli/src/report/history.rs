//! The history of a workspace as kinds, times, ids and counts, without messages and paths.

use backtrail::{CheckpointId, ErrorCode, Event, Kind, LoggedOperation, TimedEvent, Workspace, json::timestamp};
use serde::Serialize;

use super::last;
use crate::{
    hooks::{Agent, HookLine, Log, Sort},
    settings::Environment,
};

/// The word for a name that this version does not know.
const UNKNOWN: &str = "unknown";

/// A restore or a deletion.
#[derive(Debug, Serialize)]
pub(crate) struct OperationReported {
    pub(crate) operation: &'static str,
    pub(crate) time: Option<String>,
    pub(crate) sequence: u64,
    pub(crate) checkpoint: CheckpointId,
    pub(crate) safety: Option<CheckpointId>,
    /// The number of paths. `None` for the whole workspace.
    pub(crate) paths: Option<usize>,
}

/// An event of a workspace.
#[derive(Debug, Serialize)]
pub(crate) struct EventReported {
    pub(crate) event: &'static str,
    pub(crate) time: String,
    pub(crate) checkpoint: Option<CheckpointId>,
    pub(crate) safety: Option<CheckpointId>,
    /// The kind of a new checkpoint.
    pub(crate) kind: Option<&'static str>,
    /// The number of pruned checkpoints, or of conflicts.
    pub(crate) count: Option<usize>,
    /// The outcome of a recovery.
    pub(crate) outcome: Option<&'static str>,
    /// The code of an error.
    pub(crate) code: Option<&'static str>,
}

/// A line in the log of hooks.
#[derive(Debug, Serialize)]
pub(crate) struct HookReported {
    pub(crate) time: String,
    pub(crate) sort: Sort,
    pub(crate) agent: &'static str,
    pub(crate) event: String,
}

/// Returns the end of the log of operations. An unreadable log has none: the checks report why.
pub(super) fn operations(workspace: &Workspace) -> Vec<OperationReported> {
    let log = workspace.operation_log().unwrap_or_default();
    last(log.operations).into_iter().map(OperationReported::from).collect()
}

/// Returns the last events.
pub(super) fn events(workspace: &Workspace) -> Vec<EventReported> {
    let lines = last(workspace.events().unwrap_or_default());
    lines.iter().filter_map(|line| serde_json::from_str::<TimedEvent>(line).ok()).map(EventReported::from).collect()
}

/// Returns the last lines of the log of hooks that concern the workspace.
pub(super) fn hooks(workspace: &Workspace, environment: &Environment) -> Vec<HookReported> {
    let Ok(directory) = environment.own_file("log") else { return Vec::new() };
    let mut lines = Log::in_directory(&directory).lines();
    lines.retain(|line| line.workspace.as_ref().is_none_or(|place| place.starts_with(workspace.root())));
    last(lines).into_iter().map(HookReported::from).collect()
}

impl From<LoggedOperation> for OperationReported {
    fn from(logged: LoggedOperation) -> Self {
        Self {
            operation: logged.name,
            time: logged.time.map(timestamp),
            sequence: logged.sequence,
            checkpoint: logged.checkpoint,
            safety: logged.safety,
            paths: logged.paths,
        }
    }
}

impl From<TimedEvent> for EventReported {
    fn from(timed: TimedEvent) -> Self {
        let named = |event| Self {
            event,
            time: timestamp(timed.time),
            checkpoint: None,
            safety: None,
            kind: None,
            count: None,
            outcome: None,
            code: None,
        };
        match timed.event {
            Event::Initialized => named("initialized"),
            Event::CheckpointCreated { checkpoint, kind, .. } => Self {
                checkpoint: Some(checkpoint),
                kind: Some(known(&kind, Kind::ALL.map(Kind::as_str))),
                ..named("checkpoint_created")
            },
            Event::CheckpointRestored { checkpoint, safety } => {
                Self { checkpoint: Some(checkpoint), safety, ..named("checkpoint_restored") }
            }
            Event::Reverted { checkpoints, safety } => {
                Self { count: Some(checkpoints.len()), safety: Some(safety), ..named("reverted") }
            }
            Event::Adopted { safety, .. } => Self { safety: Some(safety), ..named("adopted") },
            Event::CheckpointDeleted { checkpoint } => {
                Self { checkpoint: Some(checkpoint), ..named("checkpoint_deleted") }
            }
            Event::CheckpointsUndeleted { checkpoints } => {
                Self { count: Some(checkpoints.len()), ..named("checkpoints_undeleted") }
            }
            Event::CheckpointsPruned { checkpoints } => {
                Self { count: Some(checkpoints.len()), ..named("checkpoints_pruned") }
            }
            Event::Recovered { outcome, conflicts } => Self {
                outcome: Some(known(&outcome, ["finished", "taken_back", "set_aside"])),
                count: Some(conflicts.len()),
                ..named("recovered")
            },
            Event::Error { code, .. } => {
                Self { code: Some(known(&code, ErrorCode::ALL.map(ErrorCode::as_str))), ..named("error") }
            }
        }
    }
}

impl From<HookLine> for HookReported {
    fn from(line: HookLine) -> Self {
        let agent = line.agent.parse::<Agent>().map_or(UNKNOWN, Agent::name);
        Self { time: timestamp(line.time), sort: line.sort, agent, event: line.event }
    }
}

/// Returns the word if it is among those that the program itself chose.
fn known(word: &str, words: impl IntoIterator<Item = &'static str>) -> &'static str {
    words.into_iter().find(|known| *known == word).unwrap_or(UNKNOWN)
}
