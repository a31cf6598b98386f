//! Events and progress that operations report.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jiff::Timestamp;

use crate::model::{CheckpointId, Conflict};

/// An event. Kept in the store's `events.jsonl` and passed to the workspace's observer.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A store was created.
    Initialized,
    /// A checkpoint was published.
    CheckpointCreated {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// Its kind.
        kind: String,
        /// Its message.
        message: String,
    },
    /// A restore was applied.
    CheckpointRestored {
        /// The checkpoint that was restored.
        checkpoint: CheckpointId,
        /// The safety checkpoint that was taken before.
        safety: Option<CheckpointId>,
    },
    /// The changes of checkpoints were taken back.
    Reverted {
        /// The checkpoints, newest first.
        checkpoints: Vec<CheckpointId>,
        /// The safety checkpoint that was taken before.
        safety: CheckpointId,
    },
    /// The changes of a fork were brought in.
    Adopted {
        /// The directory of the fork.
        fork: String,
        /// The safety checkpoint that was taken before.
        safety: CheckpointId,
    },
    /// A checkpoint was deleted on request.
    CheckpointDeleted {
        /// The checkpoint.
        checkpoint: CheckpointId,
    },
    /// Deleted checkpoints were brought back.
    CheckpointsUndeleted {
        /// The checkpoints.
        checkpoints: Vec<CheckpointId>,
    },
    /// Retention deleted checkpoints.
    CheckpointsPruned {
        /// The checkpoints.
        checkpoints: Vec<CheckpointId>,
    },
    /// An interrupted restore was finished or taken back.
    Recovered {
        /// The outcome: finished, taken back or set aside.
        outcome: String,
        /// The first hundred conflicts: paths that were skipped, for instance because another process changed them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<Conflict>,
    },
    /// An operation failed.
    Error {
        /// The stable code of the error.
        code: String,
        /// The message of the error.
        message: String,
    },
}

/// An event with its time, as it is kept.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TimedEvent {
    /// The event.
    #[serde(flatten)]
    pub event: Event,
    /// The time.
    pub time: Timestamp,
}

/// The progress of a scan or a restore. The front end may read it at any time, and may ask the operation to stop.
#[derive(Debug, Default)]
pub struct Progress {
    entries: AtomicU64,
    bytes: AtomicU64,
    is_stopped: AtomicBool,
}

impl Progress {
    /// Returns the number of entries looked at so far.
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Asks the operation to stop. It stops only if nothing was published or written yet. Otherwise it finishes.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Returns whether the operation was asked to stop.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    pub(crate) fn add_entries(&self, count: u64) {
        self.entries.fetch_add(count, Ordering::Relaxed);
    }

    pub(crate) fn add_bytes(&self, count: u64) {
        self.bytes.fetch_add(count, Ordering::Relaxed);
    }
}
