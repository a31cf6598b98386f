//! What was done to the timeline: restores, which `undo` walks back through, and deletions, which leave a trace.

use std::{collections::HashSet, io};

use super::{Layout, lines};
use crate::{
    disk::private::{self, Durability},
    model::{CheckpointId, Scope},
};

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum Operation {
    /// A restore, an undo or a redo was done.
    Restored(Restored),
    /// A checkpoint was deleted; what it followed is still known.
    Deleted {
        /// Its id.
        id: CheckpointId,
        /// Its place in the order.
        sequence: u64,
        /// The one that it followed.
        parent: Option<CheckpointId>,
    },
}

/// A restore that was done.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Restored {
    /// Its place in the order of the timeline.
    pub(crate) sequence: u64,
    /// What was restored.
    pub(crate) target: CheckpointId,
    /// What the workspace was before; none where nothing had to change.
    pub(crate) safety: Option<CheckpointId>,
    /// What part of the workspace.
    pub(crate) scope: Scope,
    /// Where the workspace stood before.
    pub(crate) before: Option<CheckpointId>,
    /// Where it stands now.
    pub(crate) after: Option<CheckpointId>,
    /// What this was: a restore of its own, or a step along the two stacks.
    pub(crate) direction: Direction,
}

/// How a restore came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Somebody asked for it.
    Forward,
    /// It took back the last one.
    Undo,
    /// It took back an undo.
    Redo,
}

/// The log as it was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Operations {
    pub(crate) entries: Vec<Operation>,
    /// Lines that could not be read: what they said is not known.
    pub(crate) has_damage: bool,
}

impl Operations {
    pub(super) fn read(layout: &Layout) -> io::Result<Self> {
        let bytes = private::read(&layout.operations())?.unwrap_or_default();
        let entries = lines::sound_lines(&bytes).filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Self { entries, has_damage: lines::damaged_lines(&bytes) > 0 })
    }

    /// The restores, oldest first.
    pub(crate) fn restores(&self) -> impl DoubleEndedIterator<Item = &Restored> {
        self.entries.iter().filter_map(|operation| match operation {
            Operation::Restored(restored) => Some(restored),
            Operation::Deleted { .. } => None,
        })
    }

    /// What a deleted checkpoint followed; none where this one was not deleted.
    pub(crate) fn parent_of_deleted(&self, id: &CheckpointId) -> Option<Option<CheckpointId>> {
        self.entries.iter().rev().find_map(|operation| match operation {
            Operation::Deleted { id: deleted, parent, .. } if deleted == id => Some(*parent),
            _ => None,
        })
    }

    /// Which of these were never deleted; none where the log can't tell.
    pub(super) fn never_deleted(&self, mut ids: HashSet<CheckpointId>) -> Vec<CheckpointId> {
        if self.has_damage {
            return Vec::new();
        }
        for operation in &self.entries {
            if let Operation::Deleted { id, .. } = operation {
                ids.remove(id);
            }
        }
        let mut ids: Vec<CheckpointId> = ids.into_iter().collect();
        ids.sort();
        ids
    }

    /// The highest number that the log has seen.
    pub(crate) fn last_sequence(&self) -> u64 {
        let numbers = self.entries.iter().map(|operation| match operation {
            Operation::Restored(restored) => restored.sequence,
            Operation::Deleted { sequence, .. } => *sequence,
        });
        numbers.max().unwrap_or(0)
    }
}

/// Adds entries, durably. A line that a crash tore is closed first, so that it can't swallow the new one.
pub(super) fn append(layout: &Layout, operations: &[Operation]) -> io::Result<()> {
    let path = layout.operations();
    let mut text = String::new();
    if private::read(&path)?.is_some_and(|bytes| bytes.last().is_some_and(|last| *last != b'\n')) {
        text.push('\n');
    }
    for operation in operations {
        let json = serde_json::to_string(operation).map_err(io::Error::other)?;
        text.push_str(&lines::seal(&json));
    }
    private::append(&path, text.as_bytes(), Durability::Synced)
}
