//! Finds the objects that checkpoints need: everything that can be reached from their refs.

use std::collections::HashSet;

use gix_hash::ObjectId;
use gix_object::tree::EntryKind;

use super::{
    Store, Timeline,
    objects::{ObjectKind, ObjectProblem, ObjectReader, object_id},
    snapshot::{MAX_DEPTH, too_deep},
};
use crate::threads;

/// The length to which names are cut. More bytes do not help to find versions of the same object.
const NAME_BYTES: usize = 512;

/// An object that a checkpoint needs.
pub(super) struct Needed {
    pub(super) id: ObjectId,
    pub(super) kind: ObjectKind,
    /// The sort key that brings versions of the same object together.
    pub(super) name: Vec<u8>,
}

/// Returns every object that these checkpoints need, those of the newest checkpoint first, and those of checkpoints in
/// the bin last. Fails if a commit or a tree
/// can't be read.
pub(super) fn reachable(store: &Store, timeline: &Timeline) -> Result<Vec<Needed>, ObjectProblem> {
    if let Some(id) = timeline.unreadable.first() {
        return Err(ObjectProblem::Missing(object_id(id.as_bytes())));
    }
    let mut walk = ReachableWalk::new(store);
    for entry in timeline.entries().iter().rev() {
        walk.commit(object_id(entry.id.as_bytes()), b"commit")?;
    }
    for id in &timeline.binned {
        walk.commit(object_id(id.as_bytes()), b"commit")?;
    }
    Ok(walk.found)
}

/// Finds the objects that checkpoints need, each object once.
pub(super) struct ReachableWalk {
    reader: ObjectReader,
    seen: HashSet<ObjectId>,
    /// The objects found so far.
    pub(super) found: Vec<Needed>,
}

impl ReachableWalk {
    pub(super) fn new(store: &Store) -> Self {
        Self { reader: store.reader(), seen: HashSet::new(), found: Vec::new() }
    }

    /// Adds a commit and the objects that it needs.
    pub(super) fn commit(&mut self, id: ObjectId, name: &[u8]) -> Result<(), ObjectProblem> {
        if !self.add(id, ObjectKind::Commit, name.to_vec()) {
            return Ok(());
        }
        let (tree, state) = super::store::read_commit(&self.reader, &id)?;
        self.tree(tree, Vec::new(), 0)?;
        state.map_or(Ok(()), |state| self.commit(state, b"state"))
    }

    fn tree(&mut self, id: ObjectId, at: Vec<u8>, depth: u16) -> Result<(), ObjectProblem> {
        if !self.add(id, ObjectKind::Tree, at.clone()) {
            return Ok(());
        }
        if depth > MAX_DEPTH {
            return Err(too_deep(id));
        }
        let bytes = self.reader.read(&id, ObjectKind::Tree)?;
        for entry in gix_object::TreeRefIter::from_bytes(&bytes, gix_hash::Kind::Sha1) {
            let entry = entry.map_err(|error| ObjectProblem::Damaged(id, error.to_string()))?;
            // The name comes before its directory: files with the same name are often similar.
            let mut name = [entry.filename.as_ref() as &[u8], b"/", &at].concat();
            name.truncate(NAME_BYTES);
            match entry.mode.kind() {
                EntryKind::Tree => {
                    threads::with_room(usize::from(depth), || self.tree(entry.oid.to_owned(), name, depth + 1))?;
                }
                _ => drop(self.add(entry.oid.to_owned(), ObjectKind::Blob, name)),
            }
        }
        Ok(())
    }

    fn add(&mut self, id: ObjectId, kind: ObjectKind, name: Vec<u8>) -> bool {
        let is_new = self.seen.insert(id);
        if is_new {
            self.found.push(Needed { id, kind, name });
        }
        is_new
    }
}
