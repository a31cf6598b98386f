//! What was done to the timeline: restores, which `undo` walks back through, and deletions, which leave a trace.

use std::{
    collections::{HashMap, HashSet},
    io,
};

use super::{
    Layout, Timeline,
    lines::{self, Lines},
};
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
    /// What of it was named, where directories above that had to be made: of those, taking it back concerns nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) named: Option<Scope>,
    /// Where the workspace stood before.
    pub(crate) before: Option<CheckpointId>,
    /// Where it stands now.
    pub(crate) after: Option<CheckpointId>,
    /// What this was: a restore of its own, or a step along the two stacks.
    pub(crate) direction: Direction,
}

impl Restored {
    /// Is what taking it back needs still there? Retention bounds how far back undo reaches.
    pub(crate) fn is_reachable(&self, timeline: &Timeline) -> bool {
        let needed = self.safety.or(self.before);
        needed.is_some_and(|needed| timeline.get(&needed).is_some())
    }
}

/// The log replayed: what `undo` and `redo` would take back.
#[derive(Debug, Default)]
pub(crate) struct Stacks<'a> {
    pub(crate) undo: Vec<&'a Restored>,
    pub(crate) redo: Vec<&'a Restored>,
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
        let Lines { sound, damaged } = Lines::of(&bytes);
        let entries = sound.into_iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        Ok(Self { entries, has_damage: damaged > 0 })
    }

    /// The restores, oldest first.
    pub(crate) fn restores(&self) -> impl DoubleEndedIterator<Item = &Restored> {
        self.entries.iter().filter_map(|operation| match operation {
            Operation::Restored(restored) => Some(restored),
            Operation::Deleted { .. } => None,
        })
    }

    /// The restores that can be taken back and the undos that can, the next one last in both; retention may have taken
    /// what they need.
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

    /// Is it worth a look whether all of it is still needed?
    pub(super) fn is_long(&self) -> bool {
        self.entries.len() > MANY_SPARE
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

/// Undo reaches no further back than this, whatever retention keeps.
const MAX_TAKEABLE: usize = 200;

/// So many entries that nothing needs are left in the log before it is written again.
const MANY_SPARE: usize = 100;

/// The log without what nothing needs any more; none while that is little.
///
/// Restores go from the front: what is left gives the same stacks, as far as they can be walked. Of a row of deleted
/// checkpoints, the one that something refers to stays, and leads right to the next one that is still there.
pub(super) fn shortened(timeline: &Timeline) -> Option<Vec<Operation>> {
    let log = &timeline.operations;
    // What can't be read may be needed.
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
        // As many steps as there are deletions: a damaged log could lead in a circle.
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
                // The highest number is kept from being given twice.
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

/// The number of the oldest restore that undo or redo can still come to; the last one says where the workspace stands.
fn first_needed_restore(timeline: &Timeline) -> u64 {
    let stacks = timeline.operations.stacks();
    let walkable = [&stacks.undo, &stacks.redo].into_iter().flat_map(|stack| {
        let from_top = stack.iter().rev().take(MAX_TAKEABLE);
        from_top.take_while(|done| done.is_reachable(timeline)).map(|done| done.sequence)
    });
    let last = timeline.operations.restores().next_back().map(|done| done.sequence);
    walkable.chain(last).min().unwrap_or(u64::MAX)
}

/// Do two logs of the same checkpoints say the same to whoever asks?
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

/// Puts a shorter log in the place of the one that is there, in one step.
pub(super) fn replace(layout: &Layout, operations: &[Operation]) -> io::Result<()> {
    let mut text = String::new();
    for operation in operations {
        text.push_str(&lines::seal(&serde_json::to_string(operation).map_err(io::Error::other)?));
    }
    private::replace(&layout.operations(), text.as_bytes(), Durability::Synced)
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
