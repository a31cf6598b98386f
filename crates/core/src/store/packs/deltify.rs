//! Repacks all objects into one pack, as small as possible: versions of a file are stored as deltas of one another.
//!
//! This takes seconds, while a save takes milliseconds, so only `prune` does it. The new pack is durable, and every
//! object in it was read back, before an old pack is removed: a crash leaves both, or the new one.

use std::{
    io,
    path::{Path, PathBuf},
};

use gix_hash::ObjectId;
use rayon::prelude::*;

use super::{delta::Base, merge, pack::PackWriter, reindex::EntryReader};
use crate::store::{
    Store,
    objects::{ObjectKind, ObjectProblem},
    reachable::{Needed, reachable},
};
use crate::threads;

/// Blobs larger than this are copied as they are.
const LARGE: u64 = 4 << 20;
/// The number of earlier objects that each object is compared with.
const WINDOW: usize = 10;
/// The maximum number of deltas that have to be applied to read one object.
const MAX_DEPTH: u32 = 10;
/// The number of objects in the share of one worker. Objects are compared only within a share.
const SHARE: usize = 256;

/// Writes all objects that checkpoints need into one pack. Does nothing if one of them can't be read.
pub(in crate::store) fn condense(store: &Store) -> io::Result<()> {
    let old = merge::own_packs(store.layout())?;
    let Ok(timeline) = store.whole_timeline() else { return Ok(()) };
    let Ok(mut needed) = reachable(store, &timeline) else { return Ok(()) };
    // A pack that the user asked git to keep stays, so its objects need no second copy.
    let kept = merge::kept_objects(store.layout())?;
    needed.retain(|object| !kept.contains(&object.id));
    // A checkpoint that lost its ref is about to get it back, with all objects that it needs.
    if needed.is_empty() || !timeline.lost.is_empty() || is_condensed(&old, needed.len()) {
        return Ok(());
    }
    needed.sort_by(|a, b| (a.kind as u8, &a.name).cmp(&(b.kind as u8, &b.name)));
    let writer = PackWriter::anew(store.layout());
    let shares = needed.par_chunks(SHARE).map(|share| put_share(store, share, &old, &writer));
    if let Err(problem) = threads::shared(|| shares.collect::<Result<(), Problem>>()) {
        return match problem {
            Problem::Object => Ok(()),
            Problem::Io(error) => Err(error),
        };
    }
    let Some(new) = writer.finish()? else { return Ok(()) };
    if let Err(error) = check(&new, needed.len()) {
        merge::remove_pack(&new)?;
        return Err(error);
    }
    old.iter().filter(|pack| **pack != new).try_for_each(|pack| merge::remove_pack(pack))
}

enum Problem {
    /// An object is damaged or missing. This is no time to repack.
    Object,
    Io(io::Error),
}

impl From<ObjectProblem> for Problem {
    fn from(_: ObjectProblem) -> Self {
        Self::Object
    }
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Returns whether there is only one pack, with deltas and the needed number of objects. That is what this module
/// makes.
fn is_condensed(packs: &[PathBuf], needed: usize) -> bool {
    match packs {
        [one] => merge::has_deltas(one) && merge::count(one) == Some(needed),
        _ => false,
    }
}

struct DeltaCandidate {
    id: ObjectId,
    kind: ObjectKind,
    bytes: Vec<u8>,
    depth: u32,
}

fn put_share(store: &Store, share: &[Needed], packs: &[PathBuf], writer: &PackWriter) -> Result<(), Problem> {
    let reader = store.reader();
    let mut window: Vec<DeltaCandidate> = Vec::new();
    for object in share {
        if object.kind == ObjectKind::Blob && reader.size(&object.id)? > LARGE && put_as_it_is(object, packs, writer)? {
            continue;
        }
        let bytes = reader.read(&object.id, object.kind)?;
        let depth = match best_delta(&window, object.kind, &bytes) {
            Some((base, delta)) => {
                writer.put_delta(object.id, base.id, &delta)?;
                base.depth + 1
            }
            None => {
                writer.put_small(object.id, object.kind, &bytes)?;
                0
            }
        };
        if window.len() == WINDOW {
            window.remove(0);
        }
        window.push(DeltaCandidate { id: object.id, kind: object.kind, bytes, depth });
    }
    Ok(())
}

/// Returns the smallest delta that is worth it, with its base.
fn best_delta<'a>(
    window: &'a [DeltaCandidate],
    kind: ObjectKind,
    bytes: &[u8],
) -> Option<(&'a DeltaCandidate, Vec<u8>)> {
    let mut best: Option<(&DeltaCandidate, Vec<u8>)> = None;
    for base in window.iter().rev().filter(|base| base.kind == kind && base.depth < MAX_DEPTH) {
        let most = best.as_ref().map_or((bytes.len() / 2).saturating_sub(20), |(_, delta)| delta.len() - 1);
        // A base that is so much longer or shorter has too little in common.
        if base.bytes.len() < bytes.len() / 32 || base.bytes.len() / 32 > bytes.len() {
            continue;
        }
        if let Some(delta) = Base::new(&base.bytes).delta(bytes, most) {
            best = Some((base, delta));
        }
    }
    best
}

/// Copies a large object as its pack stores it. Returns `false` if it is a delta there, is damaged, or is in none of
/// the packs.
fn put_as_it_is(object: &Needed, packs: &[PathBuf], writer: &PackWriter) -> Result<bool, Problem> {
    for pack in packs {
        if let Some(raw) = merge::RawEntry::find(pack, &object.id) {
            return Ok(match raw.bytes() {
                Some((bytes, crc32)) => {
                    writer.put_raw(object.id, bytes, crc32)?;
                    true
                }
                None => false,
            });
        }
    }
    Ok(false)
}

/// Reads every object of a new pack from the pack alone, as readers do once the old packs are gone.
fn check(pack: &Path, expected: usize) -> io::Result<()> {
    let wrong = || io::Error::other(format!("{} can't be read back", pack.display()));
    let data = gix_pack::data::File::at(pack, gix_hash::Kind::Sha1).map_err(|_| wrong())?;
    let index = gix_pack::index::File::at(pack.with_extension("idx"), gix_hash::Kind::Sha1).map_err(|_| wrong())?;
    let entries: Vec<(u64, ObjectId)> = index.iter().map(|entry| (entry.pack_offset, entry.oid)).collect();
    if entries.len() != expected {
        return Err(wrong());
    }
    let check_share = |share: &[(u64, ObjectId)]| {
        let mut reader = EntryReader::new(&data);
        share.iter().try_for_each(|(offset, id)| match reader.id_at(*offset)? {
            Some(found) if found == *id => Ok(()),
            _ => Err(wrong()),
        })
    };
    threads::shared(|| entries.par_chunks(SHARE).try_for_each(check_share))
}
