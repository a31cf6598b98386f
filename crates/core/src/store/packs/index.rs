//! Pack indices: looking up which objects exist, and encoding the index of a new pack.

use std::{io, ops::Range, path::Path, sync::OnceLock};

use gix_hash::{ObjectId, oid};

use super::pack::read_range;
use crate::store::objects::STREAM_BYTES;

/// Returns the indices of all packs in a directory. Indices that can't be opened are skipped.
pub(in crate::store) fn open_indices(packs: &Path) -> io::Result<Vec<gix_pack::index::File>> {
    let mut indices = Vec::new();
    for name in crate::disk::private::names(packs)? {
        let path = packs.join(&name);
        if path.extension().is_some_and(|extension| extension == "idx") {
            match gix_pack::index::File::at(&path, gix_hash::Kind::Sha1) {
                Ok(index) => indices.push(index),
                // The index is damaged: its objects are written again if they are needed, and `verify` reports it.
                Err(_) => continue,
            }
        }
    }
    Ok(indices)
}

/// The objects that a store has, so that a writer writes none twice.
pub(in crate::store) struct KnownObjects {
    packs: Vec<KnownPack>,
    loose: Option<gix_odb::loose::Store>,
}

/// A pack with the data that is needed to check its entries, opened on first use.
struct KnownPack {
    index: gix_pack::index::File,
    data: OnceLock<Option<gix_pack::data::File>>,
    /// The offsets of all entries in order. Sorting them takes as long as the pack is large.
    offsets: OnceLock<Vec<u64>>,
}

/// Entries with contents up to this size are decompressed to find their end, which is quicker than sorting offsets.
const SMALL_BYTES: u64 = 64 << 10;

impl KnownPack {
    fn of(index: gix_pack::index::File) -> Self {
        Self { index, data: OnceLock::new(), offsets: OnceLock::new() }
    }

    /// Returns whether the pack holds this object undamaged. A damaged object has to be written again.
    fn contains(&self, id: &oid) -> bool {
        let Some(position) = self.index.lookup(id) else { return false };
        let open = || gix_pack::data::File::at(self.index.path().with_extension("pack"), gix_hash::Kind::Sha1).ok();
        let Some(data) = self.data.get_or_init(open) else { return false };
        let start = self.index.pack_offset_at_index(position);
        let Some(end) = self.end_of(data, start) else { return false };
        let crc32 = match end.checked_sub(start) {
            None | Some(0) => None,
            Some(length) if length > STREAM_BYTES => crc32_of(data.path(), start..end).ok(),
            Some(_) => data.entry_slice(start..end).map(crc32fast::hash),
        };
        crc32.is_some() && crc32 == self.index.crc32_at_index(position)
    }
}

impl KnownPack {
    /// Returns the end of the entry at this offset. Returns `None` if the entry is damaged.
    fn end_of(&self, data: &gix_pack::data::File, start: u64) -> Option<u64> {
        let entry = data.entry(start).ok()?;
        if entry.decompressed_size <= SMALL_BYTES {
            let compressed = data.entry_slice(entry.data_offset..data.pack_end() as u64)?;
            let length = compressed_length(compressed, entry.decompressed_size as usize)?;
            return Some(entry.data_offset + length);
        }
        let offsets = self.offsets.get_or_init(|| self.index.sorted_offsets());
        let next = offsets.partition_point(|offset| *offset <= start);
        Some(offsets.get(next).copied().unwrap_or(data.pack_end() as u64))
    }
}

/// Returns the length of the compressed data at the start of these bytes. Returns `None` if it is not `size` bytes
/// compressed.
fn compressed_length(compressed: &[u8], size: usize) -> Option<u64> {
    let mut out = vec![0; size + 1];
    let mut inflate = flate2::Decompress::new(true);
    let done = inflate.decompress(compressed, &mut out, flate2::FlushDecompress::Finish).ok()?;
    (done == flate2::Status::StreamEnd && inflate.total_out() == size as u64).then(|| inflate.total_in())
}

/// Returns the checksum of a part of a pack, without holding the part in memory.
fn crc32_of(pack: &Path, range: Range<u64>) -> io::Result<u32> {
    let mut crc32 = crc32fast::Hasher::new();
    read_range(&crate::disk::private::open_from(pack, 0)?, range, |piece| crc32.update(piece))?;
    Ok(crc32.finalize())
}

impl KnownObjects {
    pub(in crate::store) fn of(objects: &Path) -> io::Result<Self> {
        let is_fan_out = |name: &std::ffi::OsString| name.len() == 2;
        let has_loose = crate::disk::private::names(objects)?.iter().any(is_fan_out);
        Ok(Self {
            packs: open_indices(&objects.join("pack"))?.into_iter().map(KnownPack::of).collect(),
            loose: has_loose.then(|| gix_odb::loose::Store::at(objects, gix_hash::Kind::Sha1)),
        })
    }

    /// Returns an empty set, as if the store had no objects.
    pub(in crate::store) fn none() -> Self {
        Self { packs: Vec::new(), loose: None }
    }

    pub(in crate::store) fn contains(&self, id: &oid) -> bool {
        self.packs.iter().any(|pack| pack.contains(id)) || self.loose.as_ref().is_some_and(|loose| loose.contains(id))
    }
}

/// One object of a new pack.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) struct PackIndexEntry {
    pub(in crate::store) id: ObjectId,
    pub(super) crc32: u32,
    pub(in crate::store) offset: u64,
}

/// Sorts entries in the order of the index.
pub(in crate::store) fn sort_entries(entries: &mut [PackIndexEntry]) {
    // The first bytes nearly always decide the order.
    let start =
        |entry: &PackIndexEntry| entry.id.as_slice().first_chunk().map_or(0, |start| u64::from_be_bytes(*start));
    entries.sort_unstable_by(|a, b| start(a).cmp(&start(b)).then_with(|| a.id.cmp(&b.id)));
}

/// Returns the index, version 2, of a pack with these objects.
pub(in crate::store) fn encode_index(
    mut entries: Vec<PackIndexEntry>,
    pack_checksum: &ObjectId,
) -> io::Result<Vec<u8>> {
    sort_entries(&mut entries);
    let mut out = Vec::with_capacity(8 + 1024 + entries.len() * 28 + 40);
    out.extend_from_slice(b"\xfftOc\x00\x00\x00\x02");
    let mut position = 0;
    for first in 0..=255u8 {
        position += entries[position..].partition_point(|entry| entry.id.as_slice()[0] <= first);
        out.extend_from_slice(&(position as u32).to_be_bytes());
    }
    entries.iter().for_each(|entry| out.extend_from_slice(entry.id.as_slice()));
    entries.iter().for_each(|entry| out.extend_from_slice(&entry.crc32.to_be_bytes()));
    let mut large = Vec::new();
    for entry in &entries {
        // Offsets that need more than 31 bits are in a table of their own.
        let short = match u32::try_from(entry.offset) {
            Ok(offset) if offset < 1 << 31 => offset,
            _ => {
                large.push(entry.offset);
                1 << 31 | (large.len() - 1) as u32
            }
        };
        out.extend_from_slice(&short.to_be_bytes());
    }
    large.iter().for_each(|offset| out.extend_from_slice(&offset.to_be_bytes()));
    out.extend_from_slice(pack_checksum.as_slice());
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(&out);
    out.extend_from_slice(crate::store::objects::finish_hash(hasher)?.as_slice());
    Ok(out)
}
