//! Refs: a checkpoint exists from the moment that its ref does.
//!
//! A ref's name ends in the id that it holds, so a set of ids describes all refs. Loose refs are separate files. From
//! time to time they are packed into `packed-refs`, as git does.

use std::{collections::HashSet, io, path::Path};

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
    /// The checkpoints with a loose ref.
    pub(super) loose_checkpoints: HashSet<CheckpointId>,
    /// Set if plain git packed refs of the bin.
    pub(super) has_packed_bin: bool,
    /// The checkpoints with a loose pin.
    pub(super) loose_pins: HashSet<CheckpointId>,
}

impl Refs {
    /// Reads the refs. A ref that does not name its own id is skipped.
    pub(super) fn read(layout: &Layout) -> io::Result<Self> {
        // Loose refs first: a ref that is packed in between is then found in `packed-refs`, which is read later.
        let mut refs = Self::read_loose(layout)?;
        for (name, id) in PackedRefs::read(layout)?.iter() {
            let kinds =
                [(CHECKPOINTS, &mut refs.checkpoints), (PINNED, &mut refs.pinned), (DELETED, &mut refs.deleted)];
            for (prefix, ids) in kinds {
                if name.strip_prefix(prefix) == Some(id)
                    && let Ok(id) = id.parse()
                {
                    ids.insert(id);
                    refs.has_packed_bin |= prefix == DELETED;
                }
            }
        }
        Ok(refs)
    }

    /// Reads the loose refs only.
    pub(super) fn read_loose(layout: &Layout) -> io::Result<Self> {
        let mut refs = Self::default();
        refs.loose += read_loose(&layout.checkpoint_refs(), &mut refs.checkpoints)?;
        refs.loose += read_loose(&layout.pinned_refs(), &mut refs.pinned)?;
        // These are never packed: they do not stay for long.
        read_loose(&layout.deleted_refs(), &mut refs.deleted)?;
        refs.loose_checkpoints = refs.checkpoints.clone();
        refs.loose_pins = refs.pinned.clone();
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
    Ok(!found.is_empty() || PackedRefs::read(layout)?.iter().any(|(name, _)| name.starts_with(DELETED)))
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

/// The refs of `packed-refs`.
struct PackedRefs {
    text: String,
}

impl PackedRefs {
    fn read(layout: &Layout) -> io::Result<Self> {
        let bytes = private::read(&layout.packed_refs())?.unwrap_or_default();
        let text = String::from_utf8(bytes).unwrap_or_else(|bytes| String::from_utf8_lossy(bytes.as_bytes()).into());
        Ok(Self { text })
    }

    /// Returns the name and the id of each ref.
    fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let lines = self.text.lines().filter(|line| !line.starts_with(['#', '^']));
        lines.filter_map(|line| line.split_once(' ')).map(|(id, name)| (name, id))
    }
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
    let gone: HashSet<String> =
        ids.iter().flat_map(|id| places.iter().map(move |(prefix, _)| format!("{prefix}{id}"))).collect();
    let packed = PackedRefs::read(layout)?;
    // Packed refs first: a loose ref that is left would still count, but a packed ref behind a removed loose one would
    // come back.
    if packed.iter().any(|(name, _)| gone.contains(name)) {
        write_packed(layout, packed.iter().filter(|(name, _)| !gone.contains(*name)).collect())?;
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

fn write_packed(layout: &Layout, mut refs: Vec<(&str, &str)>) -> io::Result<()> {
    // The order is nearly always right already.
    refs.sort();
    refs.dedup();
    let mut text = String::from("# pack-refs with: peeled fully-peeled sorted \n");
    for (name, id) in refs {
        text.push_str(id);
        text.push(' ');
        text.push_str(name);
        text.push('\n');
    }
    // The index of the timeline belongs to the file that is replaced here.
    private::remove(&layout.timeline_index())?;
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
    let packed = PackedRefs::read(layout)?;
    let mut loose = Vec::new();
    for (directory, prefix) in [(layout.checkpoint_refs(), CHECKPOINTS), (layout.pinned_refs(), PINNED)] {
        let mut ids = HashSet::new();
        read_loose(&directory, &mut ids)?;
        let named = ids.into_iter().map(|id| (format!("{prefix}{id}"), id.to_string()));
        loose.extend(named.map(|(name, id)| (name, directory.join(&id), id)));
    }
    let new = loose.iter().map(|(name, _, id)| (name.as_str(), id.as_str()));
    write_packed(layout, packed.iter().chain(new).collect())?;
    loose.iter().try_for_each(|(_, path, _)| private::remove(path))
}
