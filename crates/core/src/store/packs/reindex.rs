//! Recreates the index of a pack from the pack itself, if the index is missing or damaged.
//!
//! A crash between writing a pack and its index leaves the pack alone, and a disk may lose the index. The pack has
//! everything that the index says.

use std::{
    io::{self, Read},
    path::Path,
};

use gix_hash::ObjectId;

use super::index::{PackIndexEntry, encode_index};
use crate::disk::private;
use crate::store::{
    Layout,
    objects::{ObjectKind, finish_hash, start_hash},
    verify::check_trailer,
};

/// The indices to recreate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Missing indices.
    Missing,
    /// Missing indices and those that do not match their checksum. All indices have to be read for that.
    Damaged,
}

/// Recreates indices if possible. A pack that is damaged itself stays as it is: `verify` reports it.
pub(in crate::store) fn mend(layout: &Layout, which: Which) -> io::Result<()> {
    let directory = layout.packs();
    for name in private::names(&directory)? {
        let pack = directory.join(&name);
        if pack.extension().is_none_or(|extension| extension != "pack") {
            continue;
        }
        let index = pack.with_extension("idx");
        let is_sound = match private::is_readable_by_owner(&index)? {
            true if which == Which::Damaged => check_trailer(&index)?.is_ok(),
            is_there => is_there,
        };
        // Git also names a pack before its index. While git is running, the index is about to follow.
        if !is_sound && !name.to_string_lossy().starts_with("tmp_") && check_trailer(&pack)?.is_ok() {
            index_anew(&pack, &index)?;
        }
    }
    Ok(())
}

fn index_anew(pack: &Path, index: &Path) -> io::Result<()> {
    let Ok(data) = gix_pack::data::File::at(pack, gix_hash::Kind::Sha1) else { return Ok(()) };
    let mut entries = Vec::new();
    let mut reader = EntryReader::new(&data);
    let (mut offset, end) = (12, data.pack_end() as u64);
    while offset < end {
        let Some((entry, length)) = reader.read(offset, end)? else { return Ok(()) };
        entries.push(entry);
        offset += length;
    }
    if entries.len() != data.num_objects() as usize {
        return Ok(());
    }
    let bytes = encode_index(entries, &data.checksum())?;
    private::replace(index, &bytes, private::Durability::Synced)
}

/// Reads the objects of a pack without its index.
pub(in crate::store) struct EntryReader<'a> {
    data: &'a gix_pack::data::File,
    inflate: gix_zlib::Inflate,
    bytes: Vec<u8>,
}

impl<'a> EntryReader<'a> {
    pub(in crate::store) fn new(data: &'a gix_pack::data::File) -> Self {
        Self { data, inflate: gix_zlib::Inflate::default(), bytes: Vec::new() }
    }

    /// Returns the id of the object at `offset`, or `None` if it can't be read.
    pub(in crate::store) fn id_at(&mut self, offset: u64) -> io::Result<Option<ObjectId>> {
        Ok(self.read(offset, self.data.pack_end() as u64)?.map(|(entry, _)| entry.id))
    }

    /// Returns the object at `offset` and the length of its entry. Returns `None` if it can't be read.
    fn read(&mut self, offset: u64, end: u64) -> io::Result<Option<(PackIndexEntry, u64)>> {
        use gix_pack::data::entry::Header;
        let Ok(entry) = self.data.entry(offset) else { return Ok(None) };
        match entry.header {
            Header::Blob => read_plain(self.data, &entry, ObjectKind::Blob, offset, end),
            Header::Tree => read_plain(self.data, &entry, ObjectKind::Tree, offset, end),
            Header::Commit => read_plain(self.data, &entry, ObjectKind::Commit, offset, end),
            Header::OfsDelta { .. } => self.read_delta(entry, offset),
            Header::Tag | Header::RefDelta { .. } => Ok(None),
        }
    }

    /// Reads an object that is a delta of others in the same pack.
    fn read_delta(&mut self, entry: gix_pack::data::Entry, offset: u64) -> io::Result<Option<(PackIndexEntry, u64)>> {
        let data_offset = entry.data_offset;
        let nothing_elsewhere = |_: &gix_hash::oid, _: &mut Vec<u8>| Ok(None);
        let cache = &mut gix_pack::cache::Never;
        let decoded = self.data.decode_entry(entry, &mut self.bytes, &mut self.inflate, &nothing_elsewhere, cache);
        let Ok(decoded) = decoded else { return Ok(None) };
        let Some(kind) = ObjectKind::of_git(decoded.kind) else { return Ok(None) };
        let length = data_offset - offset + decoded.compressed_size as u64;
        let Some(raw) = self.data.entry_slice(offset..offset + length) else { return Ok(None) };
        let mut hasher = start_hash(kind, self.bytes.len() as u64);
        hasher.update(&self.bytes);
        Ok(Some((PackIndexEntry { id: finish_hash(hasher)?, crc32: crc32fast::hash(raw), offset }, length)))
    }
}

fn read_plain(
    data: &gix_pack::data::File,
    entry: &gix_pack::data::Entry,
    kind: ObjectKind,
    offset: u64,
    end: u64,
) -> io::Result<Option<(PackIndexEntry, u64)>> {
    let Some(compressed) = data.entry_slice(entry.data_offset..end) else { return Ok(None) };
    let mut decoder = flate2::bufread::ZlibDecoder::new(compressed);
    let mut hasher = start_hash(kind, entry.decompressed_size);
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    loop {
        let Ok(read) = decoder.read(&mut buffer) else { return Ok(None) };
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        total += read as u64;
    }
    let length = entry.data_offset - offset + decoder.total_in();
    let Some(raw) = data.entry_slice(offset..offset + length).filter(|_| total == entry.decompressed_size) else {
        return Ok(None);
    };
    Ok(Some((PackIndexEntry { id: finish_hash(hasher)?, crc32: crc32fast::hash(raw), offset }, length)))
}
