//! Reclaims the space of objects that no checkpoint needs.
//!
//! Needed objects are found by walking from the refs. A pack that holds other objects is rewritten without them. The
//! new pack is durable before the old one is removed, so a crash leaves both packs or the new one.

use std::{collections::HashSet, io, path::PathBuf};

use gix_hash::ObjectId;

use super::{index, merge};
use crate::store::{Store, reachable::reachable};
use crate::{disk::private, error::is_no_space};

/// The age at which git's own temporary files are removed. Younger ones may belong to a git that is running.
const FOREIGN_TEMPORARY_SECONDS: u64 = 3_600;

/// Removes objects that no checkpoint needs. Removes none if a commit or tree that is needed can't be read.
pub(in crate::store) fn compact(store: &Store) -> io::Result<()> {
    sweep_foreign_leftovers(store)?;
    let Ok(timeline) = store.whole_timeline() else { return Ok(()) };
    let Ok(needed) = reachable(store, &timeline) else { return Ok(()) };
    let needed: HashSet<ObjectId> = needed.into_iter().map(|object| object.id).collect();
    // Removals that write nothing come first: on a full disk they free the space that the rewrites need.
    drop_loose(store, &needed)?;
    let packs = store.layout().packs();
    let mut wasteful = Vec::new();
    for index in index::open_indices(&packs)? {
        let pack = index.path().with_extension("pack");
        let waste = index.iter().filter(|entry| !needed.contains(&entry.oid)).count();
        // Rewriting a pack that `prune` compressed with deltas makes it larger. That is worth it only if most of it
        // goes.
        let is_worth_it = waste > 0 && (waste * 2 > index.num_objects() as usize || !merge::has_deltas(&pack));
        if !is_worth_it || private::exists(&pack.with_extension("keep")) {
            continue;
        }
        if waste == index.num_objects() as usize {
            merge::remove_pack(&pack)?;
        } else {
            wasteful.push(pack);
        }
    }
    rewrite(store, wasteful, &needed)
}

/// Rewrites packs without the objects that nothing needs: all of them into one pack, or one by one if there is not
/// enough disk space for that.
fn rewrite(store: &Store, mut packs: Vec<PathBuf>, needed: &HashSet<ObjectId>) -> io::Result<()> {
    if packs.is_empty() {
        return Ok(());
    }
    match merge::rewrite(store, &packs, needed) {
        Err(error) if is_no_space(&error) => {}
        done => return done,
    }
    packs.sort_by_key(|pack| private::size(pack).ok().flatten());
    // The smallest pack first: each rewrite frees space for the next one.
    packs.into_iter().try_for_each(|pack| merge::rewrite(store, &[pack], needed))
}

/// Removes loose objects that no checkpoint needs. Only plain git writes loose objects.
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

/// Removes temporary files that a killed git left. They are recognized by git's names and by their age.
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
