//! Refs: a checkpoint exists from the moment that its ref does.
//!
//! A ref's name ends in the id that it holds, so a set of ids describes all refs. Loose refs are separate files. From
//! time to time they are packed into `packed-refs`, as git does.

use std::{
    collections::{BTreeMap, HashSet},
    io,
    path::Path,
};

use super::Layout;
use crate::{
    disk::private::{self, Durability},
    model::CheckpointId,
};

const CHECKPOINTS: &str = "refs/checkpoints/";
const PINNED: &str = "refs/pinned/";
const DELETED: &str = "refs/deleted/";

/// All refs of a store at one moment.
#[derive(Debug, Default)]
pub(crate) struct Refs {
    pub(crate) checkpoints: HashSet<CheckpointId>,
    pub(crate) pinned: HashSet<CheckpointId>,
    /// The checkpoints in the bin.
    pub(crate) deleted: HashSet<CheckpointId>,
    /// The number of loose refs.
    pub(crate) loose: usize,
}

impl Refs {
    /// Reads the refs. A ref that does not name its own id is skipped.
    pub(super) fn read(layout: &Layout) -> io::Result<Self> {
        let mut refs = Self::default();
        // Loose refs first: a ref that is packed in between is then found in `packed-refs`, which is read later.
        refs.loose += read_loose(&layout.checkpoint_refs(), &mut refs.checkpoints)?;
        refs.loose += read_loose(&layout.pinned_refs(), &mut refs.pinned)?;
        refs.loose += read_loose(&layout.deleted_refs(), &mut refs.deleted)?;
        for (name, id) in read_packed(layout)? {
            let kinds =
                [(CHECKPOINTS, &mut refs.checkpoints), (PINNED, &mut refs.pinned), (DELETED, &mut refs.deleted)];
            for (prefix, ids) in kinds {
                if name.strip_prefix(prefix) == Some(id.as_str())
                    && let Ok(id) = id.parse()
                {
                    ids.insert(id);
                }
            }
        }
        Ok(refs)
    }
}

/// Returns whether there is any checkpoint, in the bin or not.
pub(super) fn has_checkpoint(layout: &Layout) -> io::Result<bool> {
    let refs = Refs::read(layout)?;
    Ok(!refs.checkpoints.is_empty() || !refs.deleted.is_empty())
}

/// Returns whether there is any checkpoint in the bin.
pub(super) fn has_deleted(layout: &Layout) -> io::Result<bool> {
    let mut found = HashSet::new();
    read_loose(&layout.deleted_refs(), &mut found)?;
    Ok(!found.is_empty() || read_packed(layout)?.keys().any(|name| name.starts_with(DELETED)))
}

/// Removes the refs of all checkpoints. Called when the whole store is removed.
pub(super) fn remove_all(layout: &Layout) -> io::Result<()> {
    private::remove(&layout.packed_refs())?;
    for directory in [layout.checkpoint_refs(), layout.deleted_refs()] {
        let mut loose = HashSet::new();
        read_loose(&directory, &mut loose)?;
        loose.iter().try_for_each(|id| private::remove(&directory.join(id.to_string())))?;
    }
    Ok(())
}

fn read_loose(directory: &Path, ids: &mut HashSet<CheckpointId>) -> io::Result<usize> {
    let mut count = 0;
    for name in private::names(directory)? {
        // The name is the id. Reading a thousand files to learn their own names would be a waste. `verify` reads them.
        if let Some(id) = name.to_str().and_then(|name| name.parse().ok()) {
            ids.insert(id);
            count += 1;
        }
    }
    Ok(count)
}

fn read_packed(layout: &Layout) -> io::Result<BTreeMap<String, String>> {
    let bytes = private::read(&layout.packed_refs())?.unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().filter(|line| !line.starts_with(['#', '^']));
    Ok(lines.filter_map(|line| line.split_once(' ')).map(|(id, name)| (name.to_owned(), id.to_owned())).collect())
}

/// Returns whether this checkpoint has a loose ref. If not, it may still have a packed one.
pub(super) fn is_loose(layout: &Layout, id: &CheckpointId) -> bool {
    private::exists(&layout.checkpoint_refs().join(id.to_string()))
}

/// Publishes a checkpoint. It is durable when this returns.
pub(super) fn publish(layout: &Layout, id: &CheckpointId) -> io::Result<()> {
    write_loose(&layout.checkpoint_refs(), id)
}

fn write_loose(directory: &Path, id: &CheckpointId) -> io::Result<()> {
    private::replace(&directory.join(id.to_string()), format!("{id}\n").as_bytes(), Durability::Synced)
}

/// Pins a checkpoint.
pub(super) fn pin(layout: &Layout, id: &CheckpointId) -> io::Result<()> {
    write_loose(&layout.pinned_refs(), id)
}

/// Puts a checkpoint into the bin.
pub(super) fn put_into_bin(layout: &Layout, id: &CheckpointId) -> io::Result<()> {
    write_loose(&layout.deleted_refs(), id)
}

/// Removes the refs of checkpoints with their pins, or only the pins, or those in the bin.
pub(super) fn remove(layout: &Layout, ids: &[CheckpointId], which: Removed) -> io::Result<()> {
    let checkpoints = (CHECKPOINTS, layout.checkpoint_refs());
    let pins = (PINNED, layout.pinned_refs());
    let places = &match which {
        Removed::Checkpoints => vec![checkpoints, pins],
        Removed::Pins => vec![pins],
        Removed::Bin => vec![(DELETED, layout.deleted_refs())],
    };
    let mut packed = read_packed(layout)?;
    let before = packed.len();
    for id in ids {
        for (prefix, _) in places {
            packed.remove(&format!("{prefix}{id}"));
        }
    }
    // Packed refs first: a loose ref that is left would still count, but a packed ref behind a removed loose one would
    // come back.
    if packed.len() != before {
        write_packed(layout, &packed)?;
    }
    for (_, directory) in places {
        for id in ids {
            let path = directory.join(id.to_string());
            if private::exists(&path) {
                private::remove(&path)?;
            }
        }
        private::sync_directory(directory)?;
    }
    Ok(())
}

/// The refs to remove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Removed {
    /// The refs of checkpoints, and their pins.
    Checkpoints,
    /// Only the pins.
    Pins,
    /// The refs of checkpoints in the bin.
    Bin,
}

fn write_packed(layout: &Layout, refs: &BTreeMap<String, String>) -> io::Result<()> {
    let mut text = String::from("# pack-refs with: peeled fully-peeled sorted \n");
    for (name, id) in refs {
        text.push_str(&format!("{id} {name}\n"));
    }
    private::replace(&layout.packed_refs(), text.as_bytes(), Durability::Synced)
}

/// Returns the ids of loose refs whose files do not hold that id.
pub(super) fn damaged_loose(layout: &Layout) -> io::Result<Vec<CheckpointId>> {
    let mut damaged = Vec::new();
    for directory in [layout.checkpoint_refs(), layout.pinned_refs(), layout.deleted_refs()] {
        for name in private::names(&directory)? {
            let Some(id) = name.to_str().and_then(|name| name.parse::<CheckpointId>().ok()) else { continue };
            let held = private::read(&directory.join(&name))?;
            if held.is_some_and(|held| held != format!("{id}\n").into_bytes()) {
                damaged.push(id);
            }
        }
    }
    Ok(damaged)
}

/// Packs all refs into `packed-refs`, then removes the loose ones.
pub(super) fn pack(layout: &Layout) -> io::Result<()> {
    let mut all = read_packed(layout)?;
    let mut loose = Vec::new();
    let kinds =
        [(layout.checkpoint_refs(), CHECKPOINTS), (layout.pinned_refs(), PINNED), (layout.deleted_refs(), DELETED)];
    for (directory, prefix) in kinds {
        let mut ids = HashSet::new();
        read_loose(&directory, &mut ids)?;
        for id in ids {
            all.insert(format!("{prefix}{id}"), id.to_string());
            loose.push(directory.join(id.to_string()));
        }
    }
    write_packed(layout, &all)?;
    loose.iter().try_for_each(|path| private::remove(path))
}
