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
    /// Checkpoints were moved to the bin.
    Binned(Binned),
    /// Checkpoints were taken out of the bin again.
    Unbinned(Unbinned),
    /// Checkpoints were removed from the bin for good.
    Emptied {
        /// Their ids.
        ids: Vec<CheckpointId>,
    },
}

/// A deletion whose checkpoints went to the bin. All of them are deleted once this entry is durable.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Binned {
    /// Its sequence number in the timeline.
    pub(crate) sequence: u64,
    /// The checkpoints.
    pub(crate) checkpoints: Vec<BinnedCheckpoint>,
    /// The time, in milliseconds since 1970.
    pub(crate) time: i64,
    /// A new deletion, or a redo of one.
    pub(crate) direction: Direction,
}

/// A checkpoint in the bin.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct BinnedCheckpoint {
    pub(crate) id: CheckpointId,
    pub(crate) sequence: u64,
    /// The checkpoint that it followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<CheckpointId>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) pinned: bool,
}

impl Binned {
    /// Returns the ids of the checkpoints.
    pub(crate) fn ids(&self) -> impl Iterator<Item = CheckpointId> {
        self.checkpoints.iter().map(|checkpoint| checkpoint.id)
    }
}

/// An undo of a deletion. All of the checkpoints exist again once this entry is durable.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Unbinned {
    /// Its sequence number in the timeline.
    pub(crate) sequence: u64,
    /// The checkpoints.
    pub(crate) ids: Vec<CheckpointId>,
    /// The time, in milliseconds since 1970.
    pub(crate) time: i64,
}

/// What the log says last about a checkpoint that was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was deleted for good.
    Deleted,
    /// It was moved to the bin, at this time in milliseconds since 1970.
    Binned(i64),
    /// It was taken out of the bin again.
    Back,
}

/// An operation that undo or redo takes back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Done<'a> {
    Restored(&'a Restored),
    Binned(&'a Binned),
}

impl<'a> Done<'a> {
    /// Returns the restore. Returns `None` for a deletion.
    pub(crate) fn restored(self) -> Option<&'a Restored> {
        match self {
            Self::Restored(restored) => Some(restored),
            Self::Binned(_) => None,
        }
    }

    /// Returns its sequence number.
    pub(crate) fn sequence(self) -> u64 {
        match self {
            Self::Restored(restored) => restored.sequence,
            Self::Binned(binned) => binned.sequence,
        }
    }

    /// Returns whether what is needed to take this back, or to do it again, still exists.
    pub(crate) fn is_reachable(self, timeline: &Timeline) -> bool {
        match self {
            Self::Restored(restored) => restored.is_reachable(timeline),
            Self::Binned(binned) => binned.ids().any(|id| timeline.is_binned(&id) || timeline.get(&id).is_some()),
        }
    }
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
    pub(crate) undo: Vec<Done<'a>>,
    pub(crate) redo: Vec<Done<'a>>,
}

impl<'a> Stacks<'a> {
    /// Returns the restores that can be taken back, the next one last.
    pub(crate) fn undoable_restores(&self) -> impl DoubleEndedIterator<Item = &'a Restored> {
        self.undo.iter().filter_map(|done| done.restored())
    }

    fn add(&mut self, done: Done<'a>, direction: Direction) {
        match direction {
            Direction::Forward => {
                self.undo.push(done);
                self.redo.clear();
            }
            Direction::Undo => {
                self.undo.pop();
                self.redo.push(done);
            }
            Direction::Redo => {
                self.redo.pop();
                self.undo.push(done);
            }
        }
    }

    /// Takes the deletion of these checkpoints from the stack of undo to that of redo.
    fn unbin(&mut self, ids: &[CheckpointId]) {
        if let Some(Done::Binned(binned)) = self.undo.last().copied()
            && binned.ids().any(|id| ids.contains(&id))
        {
            self.undo.pop();
            self.redo.push(Done::Binned(binned));
        }
    }

    /// Removes deletions of which no checkpoint is left.
    fn drop_gone(&mut self, fates: &HashMap<CheckpointId, Fate>) {
        let is_left = |done: &Done<'_>| match done {
            Done::Restored(_) => true,
            Done::Binned(binned) => binned.ids().any(|id| fates.get(&id) != Some(&Fate::Deleted)),
        };
        self.undo.retain(is_left);
        self.redo.retain(is_left);
    }
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
            _ => None,
        })
    }

    /// Returns the last fate of every checkpoint that was deleted at any time.
    pub(crate) fn fates(&self) -> HashMap<CheckpointId, Fate> {
        let mut fates = HashMap::new();
        self.entries.iter().for_each(|operation| operation.note_fates(&mut fates));
        fates
    }

    /// Returns the restores that can be taken back and the undos that can be taken back, the next one last in both.
    /// Retention may have deleted checkpoints that they need.
    pub(crate) fn stacks(&self) -> Stacks<'_> {
        let mut stacks = Stacks::default();
        let mut fates = HashMap::new();
        for operation in &self.entries {
            operation.note_fates(&mut fates);
            match operation {
                Operation::Restored(done) => stacks.add(Done::Restored(done), done.direction),
                Operation::Binned(binned) => stacks.add(Done::Binned(binned), binned.direction),
                Operation::Unbinned(unbinned) => stacks.unbin(&unbinned.ids),
                Operation::Deleted { .. } | Operation::Emptied { .. } => stacks.drop_gone(&fates),
            }
        }
        stacks
    }

    /// Returns the checkpoint that a deleted one followed. Returns `None` if `id` was not deleted, and `Some(None)` if
    /// it followed no other.
    pub(crate) fn parent_of_deleted(&self, id: &CheckpointId) -> Option<Option<CheckpointId>> {
        self.entries.iter().rev().find_map(|operation| match operation {
            Operation::Deleted { id: deleted, parent, .. } if deleted == id => Some(*parent),
            Operation::Binned(binned) => {
                binned.checkpoints.iter().find(|binned| binned.id == *id).map(|binned| binned.parent)
            }
            _ => None,
        })
    }

    /// Returns the ids that are not deleted. The result is empty if the log is damaged, because then it can't tell.
    pub(super) fn not_deleted(&self, ids: HashSet<CheckpointId>) -> Vec<CheckpointId> {
        if self.has_damage {
            return Vec::new();
        }
        let fates = self.fates();
        let is_there = |id: &CheckpointId| matches!(fates.get(id), None | Some(Fate::Back));
        let mut ids: Vec<CheckpointId> = ids.into_iter().filter(is_there).collect();
        ids.sort();
        ids
    }

    /// Returns whether the log is so long that it is worth checking whether all of it is still needed.
    pub(super) fn is_long(&self) -> bool {
        self.entries.len() > MANY_SPARE
    }

    /// Returns the highest sequence number in the log.
    pub(crate) fn last_sequence(&self) -> u64 {
        let of_operations = self.entries.iter().filter_map(Operation::sequence);
        let of_deleted = self.entries.iter().flat_map(Operation::traces).map(|(_, sequence, _)| sequence);
        of_operations.chain(of_deleted).max().unwrap_or(0)
    }
}

impl Operation {
    fn note_fates(&self, fates: &mut HashMap<CheckpointId, Fate>) {
        match self {
            Self::Restored(_) => {}
            Self::Deleted { id, .. } => drop(fates.insert(*id, Fate::Deleted)),
            Self::Binned(binned) => fates.extend(binned.ids().map(|id| (id, Fate::Binned(binned.time)))),
            Self::Unbinned(unbinned) => fates.extend(unbinned.ids.iter().map(|id| (*id, Fate::Back))),
            Self::Emptied { ids } => fates.extend(ids.iter().map(|id| (*id, Fate::Deleted))),
        }
    }

    /// Returns its own sequence number, if it has one.
    fn sequence(&self) -> Option<u64> {
        match self {
            Self::Restored(restored) => Some(restored.sequence),
            Self::Binned(binned) => Some(binned.sequence),
            Self::Unbinned(unbinned) => Some(unbinned.sequence),
            Self::Deleted { .. } | Self::Emptied { .. } => None,
        }
    }

    /// Returns the traces of the deleted checkpoints: id, sequence number, and the checkpoint that each followed.
    fn traces(&self) -> Vec<(CheckpointId, u64, Option<CheckpointId>)> {
        match self {
            Self::Deleted { id, sequence, parent } => vec![(*id, *sequence, *parent)],
            Self::Binned(binned) => binned.checkpoints.iter().map(|one| (one.id, one.sequence, one.parent)).collect(),
            _ => Vec::new(),
        }
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
    let traces = log.entries.iter().flat_map(Operation::traces);
    let deleted: HashMap<CheckpointId, Option<CheckpointId>> = traces.map(|(id, _, parent)| (id, parent)).collect();
    let is_kept = |id: &CheckpointId| timeline.get(id).is_some() || timeline.is_binned(id);
    let nearest_living = |from: Option<CheckpointId>| {
        let mut present = from;
        // At most as many steps as there are deletions: a damaged log could contain a cycle.
        for _ in 0..=deleted.len() {
            match present {
                Some(id) if !is_kept(&id) => present = deleted.get(&id).copied().flatten(),
                _ => break,
            }
        }
        present.filter(is_kept)
    };
    let first_needed = first_needed(timeline);
    let last_sequence = log.last_sequence();
    let restores: Vec<&Restored> = log.restores().filter(|done| done.sequence >= first_needed).collect();
    let living = timeline.entries().iter().filter_map(|entry| entry.parent);
    let still_binned = log.entries.iter().filter(|entry| entry.is_needed_from(first_needed));
    let still_binned: Vec<_> = still_binned.flat_map(Operation::traces).collect();
    let binned = still_binned.iter().flat_map(|(id, _, parent)| [Some(*id), *parent]).flatten();
    let named = restores.iter().flat_map(|done| [done.before, done.after, Some(done.target), done.safety]);
    let referred: HashSet<CheckpointId> = living.chain(named.flatten()).chain(binned).collect();
    let trace = |(id, sequence, parent): (CheckpointId, u64, Option<CheckpointId>)| {
        // The entry with the highest sequence number stays, so that the number is not given twice.
        let is_needed = referred.contains(&id) || sequence == last_sequence;
        is_needed.then(|| Operation::Deleted { id, sequence, parent: nearest_living(parent) })
    };
    let shorten = |operation: &Operation| match operation {
        operation if operation.is_needed_from(first_needed) => vec![operation.clone()],
        Operation::Emptied { ids } => {
            let is_binned = |id: &CheckpointId| still_binned.iter().any(|(binned, ..)| binned == id);
            let ids: Vec<CheckpointId> = ids.iter().copied().filter(is_binned).collect();
            if ids.is_empty() { Vec::new() } else { vec![Operation::Emptied { ids }] }
        }
        // One of its checkpoints may have been taken out of the bin again.
        operation => {
            let traces = operation.traces().into_iter().filter(|(id, ..)| timeline.get(id).is_none());
            traces.filter_map(trace).collect()
        }
    };
    let shortened: Vec<Operation> = log.entries.iter().flat_map(shorten).collect();
    (log.entries.len() > 2 * shortened.len() + MANY_SPARE).then_some(shortened)
}

impl Operation {
    /// Returns whether the stacks or the bin need the entry, if they need what was done from this sequence number on.
    fn is_needed_from(&self, first: u64) -> bool {
        self.sequence().is_some_and(|sequence| sequence >= first)
    }
}

/// Returns the sequence number of the oldest operation that undo or redo can still reach, or that moved a checkpoint to
/// the bin that is still there. The last restore always counts: it says which checkpoint the workspace stands on.
fn first_needed(timeline: &Timeline) -> u64 {
    let log = &timeline.operations;
    let stacks = log.stacks();
    let walkable = [&stacks.undo, &stacks.redo].into_iter().flat_map(|stack| {
        let from_top = stack.iter().rev().take(MAX_TAKEABLE);
        from_top.take_while(|done| done.is_reachable(timeline)).map(|done| done.sequence())
    });
    let last = log.restores().next_back().map(|done| done.sequence);
    let in_bin = log.entries.iter().filter_map(|operation| match operation {
        Operation::Binned(binned) if binned.ids().any(|id| timeline.is_binned(&id)) => Some(binned.sequence),
        _ => None,
    });
    // The operation with the highest sequence number stays, so that the number is not given twice.
    let newest = log.entries.iter().filter_map(Operation::sequence).max();
    walkable.chain(last).chain(in_bin).chain(newest).min().unwrap_or(u64::MAX)
}

/// Returns whether two logs of the same checkpoints give the same answers.
pub(super) fn mean_the_same(one: &Timeline, other: &Timeline) -> bool {
    let walkable = |timeline: &Timeline| {
        let stacks = timeline.operations.stacks();
        [stacks.undo, stacks.redo].map(|stack| {
            let from_top = stack.into_iter().rev().take(MAX_TAKEABLE);
            from_top.take_while(|done| done.is_reachable(timeline)).map(|done| format!("{done:?}")).collect::<Vec<_>>()
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
        && one.binned == other.binned
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
