//! Reclaiming the space of objects that no checkpoint needs.
//!
//! What is needed is found by walking from the refs. A pack that holds anything else is written again without it: the new
//! pack is durable before the old one goes, so that a crash leaves both or the new one.

use std::{collections::HashSet, io};

use gix_hash::ObjectId;
use gix_object::tree::EntryKind;

use super::{
    Store,
    objects::{ObjectKind, ObjectProblem, ObjectReader, object_id},
    pack_index, repack,
};
use crate::disk::private;

/// Temporary files of git's own are left to a git that may be running, until they are this old.
const FOREIGN_TEMPORARY_SECONDS: u64 = 3_600;

/// Drops what no checkpoint needs; where an object that is needed can't be read, nothing is dropped.
pub(super) fn compact(store: &Store) -> io::Result<()> {
    sweep_foreign_leftovers(store)?;
    let Ok(needed) = reachable(store) else { return Ok(()) };
    let packs = store.layout().packs();
    let mut wasteful = Vec::new();
    for index in pack_index::open_indices(&packs)? {
        let pack = index.path().with_extension("pack");
        let waste = index.iter().filter(|entry| !needed.contains(&entry.oid)).count();
        // What `prune` made small would become large again: that is worth it only where much goes.
        let is_worth_it = waste > 0 && (waste * 2 > index.num_objects() as usize || !repack::has_deltas(&pack));
        if is_worth_it && !private::exists(&pack.with_extension("keep")) {
            wasteful.push(pack);
        }
    }
    if !wasteful.is_empty() {
        repack::rewrite(store, &wasteful, &needed)?;
    }
    drop_loose(store, &needed)
}

/// Every object that a checkpoint needs.
pub(super) fn reachable(store: &Store) -> Result<HashSet<ObjectId>, ObjectProblem> {
    let unreadable = |error: String| ObjectProblem::Damaged(ObjectId::null(gix_hash::Kind::Sha1), error);
    let timeline = store.timeline().map_err(|error| unreadable(error.to_string()))?;
    let mut walk = Walk { reader: store.reader(), seen: HashSet::new() };
    if let Some(id) = timeline.unreadable.first() {
        return Err(ObjectProblem::Missing(object_id(id.as_bytes())));
    }
    for entry in timeline.entries() {
        let id = object_id(entry.id.as_bytes());
        let (tree, state) = super::store::read_commit(&walk.reader, &id)?;
        walk.seen.insert(id);
        walk.tree(tree)?;
        if let Some(state) = state {
            let (tree, _) = super::store::read_commit(&walk.reader, &state)?;
            walk.seen.insert(state);
            walk.tree(tree)?;
        }
    }
    Ok(walk.seen)
}

struct Walk {
    reader: ObjectReader,
    seen: HashSet<ObjectId>,
}

impl Walk {
    fn tree(&mut self, id: ObjectId) -> Result<(), ObjectProblem> {
        if !self.seen.insert(id) {
            return Ok(());
        }
        let bytes = self.reader.read(&id, ObjectKind::Tree)?;
        for entry in gix_object::TreeRefIter::from_bytes(&bytes, gix_hash::Kind::Sha1) {
            let entry = entry.map_err(|error| ObjectProblem::Damaged(id, error.to_string()))?;
            if entry.mode.kind() == EntryKind::Tree {
                self.tree(entry.oid.to_owned())?;
            } else {
                self.seen.insert(entry.oid.to_owned());
            }
        }
        Ok(())
    }
}

/// Objects that plain git wrote one by one go when nothing needs them.
fn drop_loose(store: &Store, needed: &HashSet<ObjectId>) -> io::Result<()> {
    let objects = store.layout().objects();
    for fan_out in private::names(&objects)?.into_iter().filter(|name| name.len() == 2) {
        for name in private::names(&objects.join(&fan_out))? {
            let text = format!("{}{}", fan_out.to_string_lossy(), name.to_string_lossy());
            if let Ok(id) = ObjectId::from_hex(text.as_bytes())
                && !needed.contains(&id)
            {
                private::remove(&objects.join(&fan_out).join(&name))?;
            }
        }
    }
    Ok(())
}

/// Removes what a killed git left: the names are git's, and old.
fn sweep_foreign_leftovers(store: &Store) -> io::Result<()> {
    for directory in [store.layout().objects(), store.layout().packs()] {
        for name in private::names(&directory)? {
            let text = name.to_string_lossy();
            let path = directory.join(&name);
            let is_temporary = text.starts_with("tmp_") || text.starts_with(".tmp-");
            if is_temporary && private::age(&path)?.as_secs() > FOREIGN_TEMPORARY_SECONDS {
                private::remove(&path)?;
            }
        }
    }
    Ok(())
}
