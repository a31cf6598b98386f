//! The index of a pack that has none, or a damaged one, made again from the pack itself.
//!
//! A crash between a pack and its index leaves the first alone; a disk may lose the second. The pack has everything that
//! the index says.

use std::{
    io::{self, Read},
    path::Path,
};

use super::{
    Layout,
    objects::{ObjectKind, finish_hash, start_hash},
    pack_index::{IndexEntry, encode_index},
    verify::check_trailer,
};
use crate::disk::private;

/// Which indices are made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that are not there.
    Missing,
    /// Those that do not fit their checksum, too: all of them have to be read for that.
    Damaged,
}

/// Makes indices again where it can. A pack that is damaged itself, or holds deltas, stays as it is: `verify` names it.
pub(super) fn mend(layout: &Layout, which: Which) -> io::Result<()> {
    let directory = layout.packs();
    for name in private::names(&directory)? {
        let pack = directory.join(&name);
        if pack.extension().is_none_or(|extension| extension != "pack") {
            continue;
        }
        let index = pack.with_extension("idx");
        let is_sound = match private::exists(&index) {
            true if which == Which::Damaged => check_trailer(&index)?.is_ok(),
            is_there => is_there,
        };
        // Git gives a pack its name first, too: while it is at work, the index is about to come.
        if !is_sound && !name.to_string_lossy().starts_with("tmp_") && check_trailer(&pack)?.is_ok() {
            index_anew(&pack, &index)?;
        }
    }
    Ok(())
}

fn index_anew(pack: &Path, index: &Path) -> io::Result<()> {
    let Ok(data) = gix_pack::data::File::at(pack, gix_hash::Kind::Sha1) else { return Ok(()) };
    let mut entries = Vec::new();
    let (mut offset, end) = (12, data.pack_end() as u64);
    while offset < end {
        let Some((entry, length)) = read_entry(&data, offset, end)? else { return Ok(()) };
        entries.push(entry);
        offset += length;
    }
    if entries.len() != data.num_objects() as usize {
        return Ok(());
    }
    let bytes = encode_index(entries, &data.checksum())?;
    private::replace(index, &bytes, private::Durability::Synced)
}

/// One object of a pack and how long it is there; none where it is a delta or can't be read.
fn read_entry(data: &gix_pack::data::File, offset: u64, end: u64) -> io::Result<Option<(IndexEntry, u64)>> {
    use gix_pack::data::entry::Header;
    let Ok(entry) = data.entry(offset) else { return Ok(None) };
    let kind = match entry.header {
        Header::Blob => ObjectKind::Blob,
        Header::Tree => ObjectKind::Tree,
        Header::Commit => ObjectKind::Commit,
        _ => return Ok(None),
    };
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
    Ok(Some((IndexEntry { id: finish_hash(hasher)?, crc32: crc32fast::hash(raw), offset }, length)))
}
