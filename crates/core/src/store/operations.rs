//! The log of operations on the timeline: restores, which `undo` takes back, and deletions, which leave a trace.

use std::{
    collections::{HashMap, HashSet},
    io,
};

use jiff::Timestamp;

use super::{
    ExactText, Layout, Timeline,
    checksummed_lines::{self, Lines},
};
use crate::{
    disk::private::{self, Durability},
    model::{CheckpointId, Scope, WorkspacePath},
};

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum Operation {
    /// A restore, an undo or a redo was done.
    Restored(Restored),
    /// A checkpoint was deleted. The checkpoint that it followed is still known.
    Deleted {
        /// The id of the deleted checkpoint.
        id: CheckpointId,
        /// Its sequence number.
        sequence: u64,
        /// The checkpoint that it followed.
        parent: Option<CheckpointId>,
    },
}

/// A restore that was done.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Restored {
    /// Its sequence number in the timeline.
    pub(crate) sequence: u64,
    /// The checkpoint that was restored.
    pub(crate) target: CheckpointId,
    /// The safety checkpoint. `None` if nothing had to change.
    pub(crate) safety: Option<CheckpointId>,
    /// The part of the workspace that was restored.
    pub(crate) scope: Scope,
    /// The paths in the scope that were asked for, set if directories above them had to be created. Taking the restore
    /// back touches nothing else in those directories.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) named: Option<Scope>,
    /// The exact paths that were changed, if that is less than everything in the scope. Taking the operation back touches
    /// no other path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exact: Option<Vec<WorkspacePath>>,
    /// The checkpoints whose changes were taken back, if this is a revert, or an undo or redo of one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reverted: Vec<CheckpointId>,
    /// Set if a revert took back only a part: some paths, some hunks, or all but the conflicts.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) partial: bool,
    /// The fork whose changes were brought in, if this is an adoption, or an undo or redo of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) adopted: Option<ExactText>,
    /// The later checkpoints from which files came that the target lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) also_from: Vec<CheckpointId>,
    /// The checkpoint that the workspace stood on before.
    pub(crate) before: Option<CheckpointId>,
    /// The checkpoint that the workspace stands on afterwards.
    pub(crate) after: Option<CheckpointId>,
    /// The kind of operation: a new restore, an undo or a redo.
    pub(crate) direction: Direction,
}

impl Restored {
    /// Returns the time of the restore, which is that of its safety checkpoint. Returns `None` if that one is gone.
    pub(crate) fn time(&self, timeline: &Timeline) -> Option<Timestamp> {
        let taken = timeline.get(&self.safety?)?;
        Timestamp::from_millisecond(taken.time).ok()
    }

    /// Returns whether the checkpoint that is needed to take this restore back still exists. Retention limits how far
    /// back undo reaches.
    pub(crate) fn is_reachable(&self, timeline: &Timeline) -> bool {
        let needed = self.safety.or(self.before);
        needed.is_some_and(|needed| timeline.get(&needed).is_some())
    }
}

/// The stacks of `undo` and `redo`, replayed from the log.
#[derive(Debug, Default)]
pub(crate) struct Stacks<'a> {
    pub(crate) undo: Vec<&'a Restored>,
    pub(crate) redo: Vec<&'a Restored>,
}

/// The kind of a restore: a new one, an undo or a redo.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The caller asked for a restore.
    Forward,
    /// It took back the last restore.
    Undo,
    /// It took back the last undo.
    Redo,
}

/// The log of operations as it was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct Operations {
    pub(crate) entries: Vec<Operation>,
    /// Set if there are lines that could not be read. Their contents are unknown.
    pub(crate) has_damage: bool,
}

impl Operations {
    pub(super) fn read(layout: &Layout) -> io::Result<Self> {
        let bytes = private::read(&layout.operations())?.unwrap_or_default();
        let Lines { sound, damaged } = Lines::of(&bytes);
        let entries = sound.into_iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Self { entries, has_damage: damaged > 0 })
    }

    /// Returns the restores, oldest first.
    pub(crate) fn restores(&self) -> impl DoubleEndedIterator<Item = &Restored> {
        self.entries.iter().filter_map(|operation| match operation {
            Operation::Restored(restored) => Some(restored),
            Operation::Deleted { .. } => None,
        })
    }

    /// Returns the restores that can be taken back and the undos that can be taken back, the next one last in both.
    /// Retention may have deleted checkpoints that they need.
    pub(crate) fn stacks(&self) -> Stacks<'_> {
        let mut stacks = Stacks::default();
        for done in self.restores() {
            match done.direction {
                Direction::Forward => {
                    stacks.undo.push(done);
                    stacks.redo.clear();
                }
                Direction::Undo => {
                    stacks.undo.pop();
                    stacks.redo.push(done);
                }
                Direction::Redo => {
                    stacks.redo.pop();
                    stacks.undo.push(done);
                }
            }
        }
        stacks
    }

    /// Returns the checkpoint that a deleted one followed. Returns `None` if `id` was not deleted, and `Some(None)` if
    /// it followed no other.
    pub(crate) fn parent_of_deleted(&self, id: &CheckpointId) -> Option<Option<CheckpointId>> {
        self.entries.iter().rev().find_map(|operation| match operation {
            Operation::Deleted { id: deleted, parent, .. } if deleted == id => Some(*parent),
            _ => None,
        })
    }

    /// Returns the ids that were never deleted. The result is empty if the log is damaged, because then it can't tell.
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

    /// Returns whether the log is so long that it is worth checking whether all of it is still needed.
    pub(super) fn is_long(&self) -> bool {
        self.entries.len() > MANY_SPARE
    }

    /// Returns the highest sequence number in the log.
    pub(crate) fn last_sequence(&self) -> u64 {
        let numbers = self.entries.iter().map(|operation| match operation {
            Operation::Restored(restored) => restored.sequence,
            Operation::Deleted { sequence, .. } => *sequence,
        });
        numbers.max().unwrap_or(0)
    }
}

/// The maximum number of restores that undo can take back, whatever retention keeps.
const MAX_TAKEABLE: usize = 200;

/// The number of unneeded entries that stay in the log before it is rewritten.
const MANY_SPARE: usize = 100;

/// Returns the log without the entries that nothing needs any more. Returns `None` if these are few, or if the log is
/// damaged.
///
/// Restores are removed from the front: the rest gives the same stacks, as far as undo and redo can walk them. Of a
/// chain of deleted checkpoints, those that something refers to stay, and each leads directly to the next checkpoint
/// that still exists.
pub(super) fn shortened(timeline: &Timeline) -> Option<Vec<Operation>> {
    let log = &timeline.operations;
    // An entry that can't be read may be needed.
    if log.has_damage {
        return None;
    }
    let deleted: HashMap<CheckpointId, Option<CheckpointId>> = log
        .entries
        .iter()
        .filter_map(|operation| match operation {
            Operation::Deleted { id, parent, .. } => Some((*id, *parent)),
            Operation::Restored(_) => None,
        })
        .collect();
    let nearest_living = |from: Option<CheckpointId>| {
        let mut present = from;
        // At most as many steps as there are deletions: a damaged log could contain a cycle.
        for _ in 0..=deleted.len() {
            match present {
                Some(id) if timeline.get(&id).is_none() => present = deleted.get(&id).copied().flatten(),
                _ => break,
            }
        }
        present.filter(|id| timeline.get(id).is_some())
    };
    let first_needed = first_needed_restore(timeline);
    let last_sequence = log.last_sequence();
    let restores: Vec<&Restored> = log.restores().filter(|done| done.sequence >= first_needed).collect();
    let living = timeline.entries().iter().filter_map(|entry| entry.parent);
    let named = restores.iter().flat_map(|done| [done.before, done.after, Some(done.target), done.safety]);
    let referred: HashSet<CheckpointId> = living.chain(named.flatten()).collect();
    let shortened: Vec<Operation> = log
        .entries
        .iter()
        .filter_map(|operation| match operation {
            Operation::Restored(done) => (done.sequence >= first_needed).then(|| operation.clone()),
            Operation::Deleted { id, sequence, parent } => {
                // The entry with the highest sequence number stays, so that the number is not given twice.
                let is_needed = referred.contains(id) || *sequence == last_sequence;
                is_needed.then(|| {
                    let parent = nearest_living(*parent);
                    Operation::Deleted { id: *id, sequence: *sequence, parent }
                })
            }
        })
        .collect();
    (log.entries.len() > 2 * shortened.len() + MANY_SPARE).then_some(shortened)
}

/// Returns the sequence number of the oldest restore that undo or redo can still reach. The last restore always counts:
/// it says which checkpoint the workspace stands on.
fn first_needed_restore(timeline: &Timeline) -> u64 {
    let stacks = timeline.operations.stacks();
    let walkable = [&stacks.undo, &stacks.redo].into_iter().flat_map(|stack| {
        let from_top = stack.iter().rev().take(MAX_TAKEABLE);
        from_top.take_while(|done| done.is_reachable(timeline)).map(|done| done.sequence)
    });
    let last = timeline.operations.restores().next_back().map(|done| done.sequence);
    walkable.chain(last).min().unwrap_or(u64::MAX)
}

/// Returns whether two logs of the same checkpoints give the same answers.
pub(super) fn mean_the_same(one: &Timeline, other: &Timeline) -> bool {
    let walkable = |timeline: &Timeline| {
        let stacks = timeline.operations.stacks();
        [stacks.undo, stacks.redo].map(|stack| {
            let from_top = stack.into_iter().rev().take(MAX_TAKEABLE);
            from_top.take_while(|done| done.is_reachable(timeline)).cloned().collect::<Vec<_>>()
        })
    };
    let parents = |timeline: &Timeline| {
        let nearest =
            |parent: Option<CheckpointId>| parent.and_then(|parent| timeline.nearest(parent)).map(|entry| entry.id);
        timeline.entries().iter().map(|entry| nearest(entry.parent)).collect::<Vec<_>>()
    };
    one.next_sequence() == other.next_sequence()
        && one.current().map(|entry| entry.id) == other.current().map(|entry| entry.id)
        && walkable(one) == walkable(other)
        && parents(one) == parents(other)
}

/// Replaces the log with a shorter one, in one step.
pub(super) fn replace(layout: &Layout, operations: &[Operation]) -> io::Result<()> {
    let mut text = String::new();
    for operation in operations {
        text.push_str(&checksummed_lines::seal(&serde_json::to_string(operation).map_err(io::Error::other)?));
    }
    private::replace(&layout.operations(), text.as_bytes(), Durability::Synced)
}

/// Appends entries durably. A line that a crash tore is ended first, so that the new entry does not become part of it.
pub(super) fn append(layout: &Layout, operations: &[Operation]) -> io::Result<()> {
    let path = layout.operations();
    let mut text = String::new();
    if private::read(&path)?.is_some_and(|bytes| bytes.last().is_some_and(|last| *last != b'\n')) {
        text.push('\n');
    }
    for operation in operations {
        let json = serde_json::to_string(operation).map_err(io::Error::other)?;
        text.push_str(&checksummed_lines::seal(&json));
    }
    private::append(&path, text.as_bytes(), Durability::Synced)
}
