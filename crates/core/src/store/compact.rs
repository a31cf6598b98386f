//! Reclaiming the space of objects that no checkpoint needs.
//!
//! What is needed is found by walking from the refs. A pack that holds anything else is written again without it: the new
//! pack is durable before the old one goes, so that a crash leaves both or the new one.

use std::{collections::HashSet, io, path::PathBuf};

use gix_hash::ObjectId;

use super::{Store, pack_index, reachable::reachable, repack};
use crate::{disk::private, error::is_no_space};

/// Temporary files of git's own are left to a git that may be running, until they are this old.
const FOREIGN_TEMPORARY_SECONDS: u64 = 3_600;

/// Drops what no checkpoint needs; where an object that is needed can't be read, nothing is dropped.
pub(super) fn compact(store: &Store) -> io::Result<()> {
    sweep_foreign_leftovers(store)?;
    let Ok(timeline) = store.timeline() else { return Ok(()) };
    let Ok(needed) = reachable(store, &timeline) else { return Ok(()) };
    let needed: HashSet<ObjectId> = needed.into_iter().map(|object| object.id).collect();
    // What only goes comes first: on a full disk it is what makes room for the rest.
    drop_loose(store, &needed)?;
    let packs = store.layout().packs();
    let mut wasteful = Vec::new();
    for index in pack_index::open_indices(&packs)? {
        let pack = index.path().with_extension("pack");
        let waste = index.iter().filter(|entry| !needed.contains(&entry.oid)).count();
        // What `prune` made small would become large again: that is worth it only where much goes.
        let is_worth_it = waste > 0 && (waste * 2 > index.num_objects() as usize || !repack::has_deltas(&pack));
        if !is_worth_it || private::exists(&pack.with_extension("keep")) {
            continue;
        }
        if waste == index.num_objects() as usize {
            repack::remove_pack(&pack)?;
        } else {
            wasteful.push(pack);
        }
    }
    rewrite(store, wasteful, &needed)
}

/// Writes packs again without what nothing needs: all of them into one, or one by one where there is no room for that.
fn rewrite(store: &Store, mut packs: Vec<PathBuf>, needed: &HashSet<ObjectId>) -> io::Result<()> {
    if packs.is_empty() {
        return Ok(());
    }
    match repack::rewrite(store, &packs, needed) {
        Err(error) if is_no_space(&error) => {}
        done => return done,
    }
    packs.sort_by_key(|pack| private::size(pack).ok().flatten());
    // The smallest first: each leaves more room for the next one.
    packs.into_iter().try_for_each(|pack| repack::rewrite(store, &[pack], needed))
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
