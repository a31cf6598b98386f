//! Lists the restores and deletions in the log of operations.

use jiff::Timestamp;

use crate::{
    error::Result,
    model::CheckpointId,
    store::{Direction, Operation, Timeline},
    workspace::Workspace,
};

/// One entry of the log of operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedOperation {
    /// The operation: restore, undo, redo or delete.
    pub name: &'static str,
    /// Its number in the timeline, or that of the deleted checkpoint.
    pub sequence: u64,
    /// The checkpoint that was restored or deleted.
    pub checkpoint: CheckpointId,
    /// The safety checkpoint of a restore. `None` if nothing had to change.
    pub safety: Option<CheckpointId>,
    /// The number of paths that a restore was limited to. `None` if it concerned the whole workspace.
    pub paths: Option<usize>,
    /// The time of a restore. `None` if its safety checkpoint is gone, and for a deletion.
    pub time: Option<Timestamp>,
}

/// The log of operations, as it is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OperationLog {
    /// The entries, oldest first.
    pub operations: Vec<LoggedOperation>,
    /// Set if there are lines that could not be read.
    pub has_damage: bool,
}

impl Workspace {
    /// Returns the log of operations. Only reads.
    pub fn operation_log(&self) -> Result<OperationLog> {
        let Some(store) = self.store()? else { return Ok(OperationLog::default()) };
        let timeline = store.timeline()?;
        let operations =
            timeline.operations.entries.iter().flat_map(|operation| logged(operation, &timeline)).collect();
        Ok(OperationLog { operations, has_damage: timeline.operations.has_damage })
    }
}

fn logged(operation: &Operation, timeline: &Timeline) -> Vec<LoggedOperation> {
    match operation {
        Operation::Restored(done) => vec![LoggedOperation {
            name: match done.direction {
                Direction::Forward => "restore",
                Direction::Undo => "undo",
                Direction::Redo => "redo",
            },
            sequence: done.sequence,
            checkpoint: done.target,
            safety: done.safety,
            paths: done.scope.paths().map(<[_]>::len),
            time: done.time(timeline),
        }],
        Operation::Deleted { id, sequence, .. } => vec![of_bin("delete", *sequence, *id, None)],
        Operation::Binned(binned) => {
            let time = Timestamp::from_millisecond(binned.time).ok();
            binned.ids().map(|id| of_bin("delete", binned.sequence, id, time)).collect()
        }
        Operation::Unbinned(unbinned) => {
            let time = Timestamp::from_millisecond(unbinned.time).ok();
            unbinned.ids.iter().map(|id| of_bin("undelete", unbinned.sequence, *id, time)).collect()
        }
        Operation::Emptied { .. } => Vec::new(),
    }
}

fn of_bin(name: &'static str, sequence: u64, checkpoint: CheckpointId, time: Option<Timestamp>) -> LoggedOperation {
    LoggedOperation { name, sequence, checkpoint, safety: None, paths: None, time }
}
