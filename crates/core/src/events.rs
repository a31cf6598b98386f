//! What an operation tells while it works and when it is done.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jiff::Timestamp;

use crate::model::{CheckpointId, Conflict};

/// Something that happened. Kept in the store's `events.jsonl` and passed to the workspace's observer.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A store was made.
    Initialized,
    /// A checkpoint was published.
    CheckpointCreated {
        /// Which.
        checkpoint: CheckpointId,
        /// Its kind.
        kind: String,
        /// Its message.
        message: String,
    },
    /// A restore was applied.
    CheckpointRestored {
        /// To which.
        checkpoint: CheckpointId,
        /// What the workspace was before.
        safety: Option<CheckpointId>,
    },
    /// A checkpoint was deleted on request.
    CheckpointDeleted {
        /// Which.
        checkpoint: CheckpointId,
    },
    /// Retention took checkpoints.
    CheckpointsPruned {
        /// Which.
        checkpoints: Vec<CheckpointId>,
    },
    /// An interrupted restore was finished or taken back.
    Recovered {
        /// Which of both.
        outcome: String,
        /// What somebody else got in the way of, the first hundred.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        conflicts: Vec<Conflict>,
    },
    /// An operation failed.
    Error {
        /// The stable word of the error.
        code: String,
        /// What it said.
        message: String,
    },
}

/// An event with its time, as it is kept.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TimedEvent {
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
    /// When.
    pub time: Timestamp,
}

/// How far a scan or a restore is; the front end looks whenever it likes, and may ask it to stop.
#[derive(Debug, Default)]
pub struct Progress {
    entries: AtomicU64,
    bytes: AtomicU64,
    is_stopped: AtomicBool,
}

impl Progress {
    /// Entries looked at so far.
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Asks the operation to stop. It does as long as nothing was published or written; from then on it finishes.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }

    /// Was it asked to stop?
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
