//! Merges many small packs into one, before their number makes every lookup slow.
//!
//! Entries are copied as they are. Packs with deltas, which `prune` and plain git write, stay beside the merged one.

use std::{
    collections::HashSet,
    io,
    path::{Path, PathBuf},
};

use gix_hash::ObjectId;

use super::{
    index::{PackIndexEntry, encode_index},
    pack::PackWriter,
};
use crate::disk::private;
use crate::store::{Layout, Store, objects::finish_hash};

/// The number of packs at which they are merged.
const MANY: usize = 50;

/// Returns whether there are so many packs that they should be merged.
pub(in crate::store) fn are_many(layout: &Layout) -> io::Result<bool> {
    Ok(candidates(layout)?.len() >= MANY)
}

/// Returns all packs except those that the user asked git to keep.
pub(in crate::store) fn own_packs(layout: &Layout) -> io::Result<Vec<PathBuf>> {
    Ok(candidates(layout)?.into_iter().map(|candidate| candidate.pack).collect())
}

/// Returns the objects in the packs that the user asked git to keep.
pub(in crate::store) fn kept_objects(layout: &Layout) -> io::Result<HashSet<ObjectId>> {
    let indices = super::index::open_indices(&layout.packs())?;
    let kept = indices.iter().filter(|index| private::exists(&index.path().with_extension("keep")));
    Ok(kept.flat_map(|index| index.iter().map(|entry| entry.oid)).collect())
}

/// Returns whether any object of this pack is a delta.
pub(in crate::store) fn has_deltas(pack: &Path) -> bool {
    let Some((data, index)) = open(pack) else { return false };
    index.iter().any(|entry| data.entry(entry.pack_offset).is_ok_and(|entry| entry.header.is_delta()))
}

/// Returns the number of objects in this pack, or `None` if it can't be read.
pub(in crate::store) fn count(pack: &Path) -> Option<usize> {
    open(pack).map(|(_, index)| index.num_objects() as usize)
}

/// Opens a pack and its index. Returns `None` if they can't be read.
pub(in crate::store) fn open(pack: &Path) -> Option<(gix_pack::data::File, gix_pack::index::File)> {
    let data = gix_pack::data::File::at(pack, gix_hash::Kind::Sha1).ok()?;
    let index = gix_pack::index::File::at(pack.with_extension("idx"), gix_hash::Kind::Sha1).ok()?;
    Some((data, index))
}

/// An object as its pack stores it.
pub(in crate::store) struct RawEntry {
    data: gix_pack::data::File,
    range: std::ops::Range<u64>,
    crc32: u32,
}

impl RawEntry {
    pub(in crate::store) fn find(pack: &Path, id: &ObjectId) -> Option<Self> {
        let (data, index) = open(pack)?;
        let position = index.lookup(id)?;
        let start = index.pack_offset_at_index(position);
        let end = index.iter().map(|entry| entry.pack_offset).filter(|offset| *offset > start).min();
        let range = start..end.unwrap_or(data.pack_end() as u64);
        let crc32 = index.crc32_at_index(position)?;
        Some(Self { data, range, crc32 })
    }

    /// Returns the bytes with their checksum. Returns `None` if the entry is a delta or damaged.
    pub(in crate::store) fn bytes(&self) -> Option<(&[u8], u32)> {
        let entry = self.data.entry(self.range.start).ok()?;
        let bytes = self.data.entry_slice(self.range.clone())?;
        (!entry.header.is_delta() && crc32fast::hash(bytes) == self.crc32).then_some((bytes, self.crc32))
    }
}

/// Merges the smaller packs. A crash leaves the old packs, the new one, or both: each is whole.
pub(in crate::store) fn merge_packs(layout: &Layout) -> io::Result<()> {
    let chosen = choose(candidates(layout)?);
    merge(layout, &chosen, None).map(drop)
}

/// Rewrites these packs with only the objects that are needed.
pub(in crate::store) fn rewrite(store: &Store, packs: &[PathBuf], needed: &HashSet<ObjectId>) -> io::Result<()> {
    let layout = store.layout();
    let untouched = merge(layout, packs, Some(needed))?;
    if untouched.is_empty() {
        return Ok(());
    }
    // Packs with deltas: their objects are read and added one by one.
    for pack in &untouched {
        let writer = PackWriter::anew(layout);
        if copy_needed(store, pack, needed, &writer)? {
            writer.finish()?;
            remove_pack(pack)?;
        }
    }
    Ok(())
}

/// Copies the needed objects of a pack. Returns `false` if one of them can't be read: the pack then stays as it is, and
/// `verify` names the damage.
fn copy_needed(store: &Store, pack: &Path, needed: &HashSet<ObjectId>, writer: &PackWriter) -> io::Result<bool> {
    let Ok(index) = gix_pack::index::File::at(pack.with_extension("idx"), gix_hash::Kind::Sha1) else {
        return Ok(false);
    };
    let reader = store.reader();
    for entry in index.iter().filter(|entry| needed.contains(&entry.oid)) {
        let Ok((kind, bytes)) = reader.read_any(&entry.oid) else { return Ok(false) };
        writer.put_object(kind, &bytes)?;
    }
    Ok(true)
}

struct MergeCandidate {
    pack: PathBuf,
    bytes: u64,
}

fn candidates(layout: &Layout) -> io::Result<Vec<MergeCandidate>> {
    let directory = layout.packs();
    let mut packs = Vec::new();
    for name in private::names(&directory)? {
        let pack = directory.join(&name).with_extension("pack");
        let is_index = directory.join(&name).extension().is_some_and(|extension| extension == "idx");
        // A pack that the user asked git to keep belongs to the user.
        if is_index
            && !private::exists(&pack.with_extension("keep"))
            && let Some(bytes) = private::size(&pack)?
        {
            packs.push(MergeCandidate { pack, bytes });
        }
    }
    packs.sort_by_key(|candidate| candidate.bytes);
    Ok(packs)
}

/// Returns the smaller packs. A large pack is copied again only when as many bytes have accumulated beside it.
fn choose(packs: Vec<MergeCandidate>) -> Vec<PathBuf> {
    let mut chosen = Vec::new();
    let mut total = 0;
    for candidate in packs {
        if chosen.len() >= MANY / 2 && candidate.bytes > total {
            break;
        }
        total += candidate.bytes;
        chosen.push(candidate.pack);
    }
    chosen
}

/// Merges packs into one. Returns those that could not be copied as they are.
fn merge(layout: &Layout, packs: &[PathBuf], needed: Option<&HashSet<ObjectId>>) -> io::Result<Vec<PathBuf>> {
    let mut body = Vec::new();
    let mut entries = Vec::new();
    let mut seen = HashSet::new();
    let mut merged = Vec::new();
    let mut untouched = Vec::new();
    let directory = layout.packs();
    let (mut file, path) = private::create_temporary(&directory, "merged")?;
    let mut length = 12;
    let result = (|| -> io::Result<Option<PathBuf>> {
        private::write_all(&mut file, &[0; 12])?;
        for pack in packs {
            let Some(copied) = copy_entries(pack, length, needed, &mut seen, &mut entries, &mut body)? else {
                untouched.push(pack.clone());
                continue;
            };
            length += copied;
            merged.push(pack);
            if body.len() > 4 << 20 {
                private::write_all(&mut file, &body)?;
                body.clear();
            }
        }
        if entries.is_empty() {
            return Ok(None);
        }
        private::write_all(&mut file, &body)?;
        let header = gix_pack::data::header::encode(gix_pack::data::Version::V2, entries.len() as u32);
        private::write_at(&file, &header, 0)?;
        let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
        super::pack::hash_range(&file, 0..length, &mut hasher)?;
        let checksum = finish_hash(hasher)?;
        private::write_all(&mut file, checksum.as_slice())?;
        private::check_length(&file, length + checksum.as_slice().len() as u64)?;
        private::sync_file(&file)?;
        let name = directory.join(format!("pack-{checksum}"));
        private::rename(&path, &name.with_extension("pack"))?;
        let index = encode_index(std::mem::take(&mut entries), &checksum)?;
        private::replace(&name.with_extension("idx"), &index, private::Durability::Synced)?;
        Ok(Some(name))
    })();
    let name = result.inspect_err(|_| private::remove_leftover(&path))?;
    if name.is_none() {
        private::remove_leftover(&path);
    }
    for pack in merged.into_iter().filter(|pack| Some(pack.with_extension("")) != name) {
        remove_pack(pack)?;
    }
    Ok(untouched)
}

/// Removes a pack with its other files. The index goes first, because readers ignore a pack without one.
pub(in crate::store) fn remove_pack(pack: &Path) -> io::Result<()> {
    private::remove(&pack.with_extension("idx"))?;
    for extension in ["rev", "bitmap", "mtimes", "pack"] {
        if private::exists(&pack.with_extension(extension)) {
            private::remove(&pack.with_extension(extension))?;
        }
    }
    Ok(())
}

/// Copies the entries of one pack and returns their length. Returns `None` and copies nothing if the pack holds deltas
/// or is damaged.
fn copy_entries(
    pack: &Path,
    start: u64,
    needed: Option<&HashSet<ObjectId>>,
    seen: &mut HashSet<gix_hash::ObjectId>,
    entries: &mut Vec<PackIndexEntry>,
    body: &mut Vec<u8>,
) -> io::Result<Option<u64>> {
    let Some((data, index)) = open(pack) else { return Ok(None) };
    let mut places: Vec<(u64, gix_hash::ObjectId, Option<u32>)> =
        index.iter().map(|entry| (entry.pack_offset, entry.oid, entry.crc32)).collect();
    places.sort_unstable();
    let ends = places.iter().skip(1).map(|place| place.0).chain([data.pack_end() as u64]);
    let mut copies = Vec::with_capacity(places.len());
    for (&(offset, id, crc32), end) in places.iter().zip(ends) {
        let (Ok(entry), Some(bytes), Some(crc32)) = (data.entry(offset), data.entry_slice(offset..end), crc32) else {
            return Ok(None);
        };
        // The new checksum would fit a copy of a damaged entry, and the damage would look sound.
        if entry.header.is_delta() || crc32fast::hash(bytes) != crc32 {
            return Ok(None);
        }
        copies.push((id, crc32, bytes));
    }
    let mut length = 0;
    for (id, crc32, bytes) in copies {
        if needed.is_none_or(|needed| needed.contains(&id)) && seen.insert(id) {
            entries.push(PackIndexEntry { id, crc32, offset: start + length });
            body.extend_from_slice(bytes);
            length += bytes.len() as u64;
        }
    }
    Ok(Some(length))
}
