//! The disk space that checkpoints take: the bytes of their objects in the packs, and their refs.

use std::{
    collections::{HashMap, HashSet},
    io,
};

use gix_hash::ObjectId;
use gix_pack::data::entry::Header;

use super::merge;
use crate::store::{Store, objects::object_id, reachable::ReachableWalk};
use crate::{
    disk::private,
    error::{Result, While},
    model::CheckpointId,
};

/// The bytes of each object in an index.
const INDEX_BYTES: u64 = 28;
/// The bytes of a pack and its index apart from their objects, including what the file system rounds up.
const PACK_BYTES: u64 = 12 + 20 + 8 + 1024 + 40 + 2 * 4096;

struct Packed {
    bytes: u64,
    /// The delta base, if the object is a delta.
    base: Option<ObjectId>,
}

/// Adds up the disk space that checkpoints take, each object once.
pub(crate) struct PackedSizes<'s> {
    store: &'s Store,
    packed: HashMap<ObjectId, Packed>,
    /// Objects in packs that the user asked git to keep. They take their space in any case.
    kept: HashSet<ObjectId>,
    counted: HashSet<ObjectId>,
    walk: ReachableWalk,
    bytes: u64,
}

impl<'s> PackedSizes<'s> {
    /// Starts with the space that the store takes apart from its checkpoints.
    pub(crate) fn of(store: &'s Store) -> Result<Self> {
        let read = || -> io::Result<Self> {
            let mut packed = HashMap::new();
            let mut of_checkpoints = private::room_of(&store.layout().checkpoint_refs())?;
            for pack in merge::own_packs(store.layout())? {
                of_checkpoints += private::room_of(&pack)? + private::room_of(&pack.with_extension("idx"))?;
                read_pack(&pack, &mut packed);
            }
            let bytes = private::bytes_below(store.layout().root())?.saturating_sub(of_checkpoints) + PACK_BYTES;
            let kept = merge::kept_objects(store.layout())?;
            Ok(Self { store, packed, kept, counted: HashSet::new(), walk: ReachableWalk::new(store), bytes })
        };
        read().or_fail("measure", store.layout().root())
    }

    /// Adds the objects that a checkpoint needs and that were not added before. Returns the total number of bytes.
    pub(crate) fn add(&mut self, id: &CheckpointId) -> Result<u64> {
        let walked = self.walk.commit(object_id(id.as_bytes()), b"commit");
        walked.map_err(|problem| self.store.damaged(problem))?;
        for needed in std::mem::take(&mut self.walk.found) {
            self.count(needed.id);
        }
        let loose = self.store.layout().checkpoint_refs().join(id.to_string());
        self.bytes += private::room_of(&loose).or_fail("measure", &loose)?;
        Ok(self.bytes)
    }

    fn count(&mut self, object: ObjectId) {
        let mut next = Some(object);
        // A delta needs its base, or is larger without it.
        while let Some(object) = next.take() {
            if self.kept.contains(&object) || !self.counted.insert(object) {
                return;
            }
            if let Some(packed) = self.packed.get(&object) {
                self.bytes += packed.bytes + INDEX_BYTES;
                next = packed.base;
            }
        }
    }
}

/// Reads the sizes of all objects in a pack. A pack that can't be read is skipped.
fn read_pack(pack: &std::path::Path, packed: &mut HashMap<ObjectId, Packed>) {
    let Some((data, index)) = merge::open(pack) else { return };
    let mut entries: Vec<(u64, ObjectId)> = index.iter().map(|entry| (entry.pack_offset, entry.oid)).collect();
    entries.sort_unstable();
    let at = |offset: u64| entries.binary_search_by_key(&offset, |(offset, _)| *offset).ok();
    for (position, (start, id)) in entries.iter().enumerate() {
        let end = entries.get(position + 1).map_or(data.pack_end() as u64, |(next, _)| *next);
        let base = match data.entry(*start).map(|entry| entry.header) {
            Ok(Header::RefDelta { base_id }) => Some(base_id),
            Ok(Header::OfsDelta { base_distance }) => {
                start.checked_sub(base_distance).and_then(at).map(|position| entries[position].1)
            }
            _ => None,
        };
        packed.insert(*id, Packed { bytes: end.saturating_sub(*start), base });
    }
}
