//! Notes that retention keeps between commands, so that a save need not find them out again.
//!
//! The file can be deleted at any time. Each line only ever makes retention keep more.

use std::{
    collections::{BTreeMap, HashSet},
    io,
};

use super::{
    Layout,
    checksummed_lines::{self, Lines},
};
use crate::{
    disk::private::{self, Durability},
    model::CheckpointId,
};

/// The contents of the file.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RetentionNotes {
    /// The wall clock compared with the boot-time clock, as first seen in a boot.
    pub(crate) clock: Option<ClockNote>,
    /// Safety checkpoints that were found to hold contents that no other checkpoint holds.
    pub(crate) unsaved: HashSet<CheckpointId>,
    /// The times of checkpoints that were taken while the wall clock was set back, by the boot-time clock. Milliseconds
    /// since 1970.
    pub(crate) times: BTreeMap<CheckpointId, i64>,
    /// A `max_bytes` limit that could not be met.
    pub(crate) limit: Option<LimitNote>,
}

/// The wall clock and the boot-time clock at one moment.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct ClockNote {
    pub(crate) boot: String,
    /// Wall clock at the time of the boot, in milliseconds since 1970.
    pub(crate) booted: i64,
}

/// A limit that is lower than the bytes needed by the checkpoints that must stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct LimitNote {
    pub(crate) max_bytes: u64,
    pub(crate) needed: u64,
    /// Milliseconds since 1970.
    pub(crate) time: i64,
}

#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Clock(ClockNote),
    Unsaved(CheckpointId),
    Limit(LimitNote),
    Time(CheckpointId, i64),
}

impl RetentionNotes {
    /// Reads the file. Lines that are damaged or unknown are skipped.
    pub(crate) fn read(layout: &Layout) -> io::Result<Self> {
        let bytes = private::read(&layout.retention_notes())?.unwrap_or_default();
        let mut notes = Self::default();
        for line in Lines::of(&bytes).sound.into_iter().filter_map(|line| serde_json::from_str(line).ok()) {
            match line {
                Line::Clock(clock) => notes.clock = Some(clock),
                Line::Unsaved(id) => drop(notes.unsaved.insert(id)),
                Line::Limit(limit) => notes.limit = Some(limit),
                Line::Time(id, time) => drop(notes.times.insert(id, time)),
            }
        }
        Ok(notes)
    }

    /// Replaces the file.
    pub(super) fn write(&self, layout: &Layout) -> io::Result<()> {
        let mut unsaved: Vec<CheckpointId> = self.unsaved.iter().copied().collect();
        unsaved.sort();
        let all = (self.clock.iter().cloned().map(Line::Clock))
            .chain(self.limit.map(Line::Limit))
            .chain(self.times.iter().map(|(id, time)| Line::Time(*id, *time)))
            .chain(unsaved.into_iter().map(Line::Unsaved));
        let mut text = String::new();
        for line in all {
            text.push_str(&checksummed_lines::seal(&serde_json::to_string(&line)?));
        }
        private::replace(&layout.retention_notes(), text.as_bytes(), Durability::Unsynced)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_and_a_damaged_line_costs_itself_alone() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::new(directory.path());
        std::fs::create_dir_all(layout.own()).unwrap();
        assert_eq!(RetentionNotes::read(&layout).unwrap(), RetentionNotes::default());
        let notes = RetentionNotes {
            clock: Some(ClockNote { boot: "b".into(), booted: 5 }),
            unsaved: HashSet::from([CheckpointId([7; 20]), CheckpointId([8; 20])]),
            times: BTreeMap::from([(CheckpointId([9; 20]), 11)]),
            limit: Some(LimitNote { max_bytes: 1, needed: 2, time: 3 }),
        };
        notes.write(&layout).unwrap();
        assert_eq!(RetentionNotes::read(&layout).unwrap(), notes);
        let mut bytes = std::fs::read(layout.retention_notes()).unwrap();
        let last = bytes.len() - 3;
        bytes[last] ^= 1;
        std::fs::write(layout.retention_notes(), bytes).unwrap();
        assert_eq!(RetentionNotes::read(&layout).unwrap().unsaved.len(), 1);
    }
}
