//! The file in the store of a workspace that lists the forks that were made of it.

use std::io;

use super::{
    ExactText, Layout,
    checksummed_lines::{self, Lines},
};
use crate::{
    disk::private::{self, Durability},
    model::CheckpointId,
};

/// A fork that was made of the workspace, or was about to be made.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct ForkNote {
    /// The store of the fork.
    pub(crate) store: ExactText,
    /// The fork point.
    pub(crate) checkpoint: CheckpointId,
}

/// Returns the forks, oldest first.
pub(super) fn read(layout: &Layout) -> io::Result<Vec<ForkNote>> {
    let bytes = private::read(&layout.forks())?.unwrap_or_default();
    Ok(Lines::of(&bytes).sound.into_iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

/// Adds a fork durably. Drops the forks whose stores are gone.
pub(super) fn add(layout: &Layout, note: &ForkNote) -> io::Result<()> {
    let is_there = |known: &ForkNote| known.store.to_path().is_some_and(|store| private::exists(&store));
    let mut known = read(layout)?;
    known.retain(|known| known.store != note.store && is_there(known));
    known.push(note.clone());
    let mut text = String::new();
    for known in &known {
        text.push_str(&checksummed_lines::seal(&serde_json::to_string(known)?));
    }
    private::replace(&layout.forks(), text.as_bytes(), Durability::Synced)
}
