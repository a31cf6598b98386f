//! All new objects of a save in one pack.
//!
//! Workers hash and compress side by side; only appending is one at a time. Nothing is visible before
//! [`PackWriter::finish`], and what a dead process leaves behind has a temporary name.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    ops::Range,
    os::unix::fs::FileExt,
    path::PathBuf,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
};

use gix_hash::ObjectId;
use gix_pack::data::entry::Header;

use super::{
    Layout,
    objects::{ObjectKind, bytes_of, finish_hash, hash_object, hash_stream, start_hash, stream_file},
    pack_index::{IndexEntry, KnownObjects, encode_index},
};
use crate::{
    disk::private,
    model::{ContentId, ContentSink, Contents},
    text,
};

/// Up to this size a pack is built in memory and written in one piece.
const MEMORY_BYTES: usize = 4 << 20;
/// Where a sample of this size does not shrink, the rest will not either.
const SAMPLE_BYTES: usize = 8 << 10;
const HEADER_BYTES: u64 = 12;

/// A pack that is being written.
pub(crate) struct PackWriter {
    layout: Layout,
    known: OnceLock<KnownObjects>,
    seen: Mutex<HashSet<ObjectId>>,
    body: Mutex<Body>,
}

struct Body {
    packs: PathBuf,
    memory: Vec<u8>,
    file: Option<(File, PathBuf)>,
    length: u64,
    entries: Vec<IndexEntry>,
    positions: HashMap<ObjectId, usize>,
    /// Per entry: how many lines it has; none where it is no text.
    lines: Vec<Option<u64>>,
}

impl PackWriter {
    pub(super) fn new(layout: &Layout) -> Self {
        Self {
            layout: layout.clone(),
            known: OnceLock::new(),
            seen: Mutex::default(),
            body: Mutex::new(Body::in_directory(layout.packs())),
        }
    }

    /// A pack that takes its objects whether the store has them or not.
    pub(super) fn anew(layout: &Layout) -> Self {
        let writer = Self::new(layout);
        writer.known.get_or_init(KnownObjects::none);
        writer
    }

    /// Puts an object in, unless the store has it.
    pub(crate) fn put_object(&self, kind: ObjectKind, bytes: &[u8]) -> io::Result<ObjectId> {
        let id = hash_object(kind, bytes)?;
        if self.is_new(id)? {
            let lines = (kind == ObjectKind::Blob && !text::is_binary(bytes)).then(|| text::line_count(bytes));
            compress(bytes, |compressed| {
                self.body().append(id, header_of(kind), bytes.len() as u64, lines, compressed)
            })?;
        }
        Ok(id)
    }

    /// The lines of a blob that was put in, none for one that is no text; none at all where it is not in this pack.
    pub(crate) fn lines_of(&self, content: &ContentId) -> Option<Option<u64>> {
        let body = self.body();
        let position = body.positions.get(&super::objects::object_id(content.as_bytes()))?;
        Some(body.lines[*position])
    }

    /// Has nobody put it in before, here or in an earlier pack?
    fn is_new(&self, id: ObjectId) -> io::Result<bool> {
        Ok(!self.known()?.contains(&id) && self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(id))
    }

    fn known(&self) -> io::Result<&KnownObjects> {
        match self.known.get() {
            Some(known) => Ok(known),
            None => {
                // Two workers may both look; both see the same.
                let found = KnownObjects::of(&self.layout.objects())?;
                Ok(self.known.get_or_init(|| found))
            }
        }
    }

    /// Is an object in this pack, or soundly in the store?
    pub(crate) fn holds(&self, id: &[u8; 20]) -> io::Result<bool> {
        let id = super::objects::object_id(id);
        let is_here = self.seen.lock().unwrap_or_else(PoisonError::into_inner).contains(&id);
        Ok(is_here || self.known()?.contains(&id))
    }

    fn put_stream(&self, file: &File, length: u64) -> io::Result<Option<ObjectId>> {
        let Some(id) = hash_stream(file, length)? else { return Ok(None) };
        if !self.is_new(id)? {
            return Ok(Some(id));
        }
        let written = self.body().append_stream(id, file, length);
        if !matches!(written, Ok(true)) {
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        }
        written.map(|written| written.then_some(id))
    }

    /// The bytes of a blob that was put in; none where it is not in this pack.
    pub(crate) fn read_back(&self, content: &ContentId) -> io::Result<Option<Vec<u8>>> {
        self.body().read_back(&super::objects::object_id(content.as_bytes()))
    }

    fn body(&self) -> MutexGuard<'_, Body> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an object of this id in, compressed as well as it gets.
    pub(super) fn put_small(&self, id: ObjectId, kind: ObjectKind, bytes: &[u8]) -> io::Result<()> {
        let compressed = compress_well(bytes)?;
        self.body().append(id, header_of(kind), bytes.len() as u64, None, &compressed)
    }

    /// Puts an object in that is told by another one of this pack.
    pub(super) fn put_delta(&self, id: ObjectId, base: ObjectId, delta: &[u8]) -> io::Result<()> {
        let compressed = compress_well(delta)?;
        let mut body = self.body();
        let position = body.positions.get(&base).ok_or(io::ErrorKind::NotFound)?;
        let base_distance = body.length - body.entries[*position].offset;
        body.append(id, Header::OfsDelta { base_distance }, delta.len() as u64, None, &compressed)
    }

    /// Puts an object in as another pack has it, header and all.
    pub(super) fn put_raw(&self, id: ObjectId, raw: &[u8], crc32: u32) -> io::Result<()> {
        let mut body = self.body();
        body.push_entry(id, crc32, None);
        raw.chunks(1 << 20).try_for_each(|piece| body.push_bytes(piece))
    }

    /// Makes the pack durable and visible, and says where it is; nothing happens where it is empty.
    pub(super) fn finish(self) -> io::Result<Option<PathBuf>> {
        let body = std::mem::replace(&mut *self.body(), Body::in_directory(PathBuf::new()));
        if body.entries.is_empty() { Ok(None) } else { body.finish().map(Some) }
    }
}

impl ContentSink for PackWriter {
    fn put(&self, contents: Contents<'_>) -> io::Result<Option<ContentId>> {
        let id = match contents {
            Contents::Whole(bytes) => Some(self.put_object(ObjectKind::Blob, bytes)?),
            Contents::Stream { file, bytes } => self.put_stream(file, bytes)?,
        };
        Ok(id.map(|id| ContentId(bytes_of(&id))))
    }
}

impl Drop for PackWriter {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.body().file {
            private::remove_leftover(path);
        }
    }
}

fn header_of(kind: ObjectKind) -> Header {
    match kind {
        ObjectKind::Blob => Header::Blob,
        ObjectKind::Tree => Header::Tree,
        ObjectKind::Commit => Header::Commit,
    }
}

impl Body {
    fn in_directory(packs: PathBuf) -> Self {
        Self {
            packs,
            memory: Vec::new(),
            file: None,
            length: HEADER_BYTES,
            entries: Vec::new(),
            positions: HashMap::new(),
            lines: Vec::new(),
        }
    }

    fn append(
        &mut self,
        id: ObjectId,
        header: Header,
        length: u64,
        lines: Option<u64>,
        compressed: &[u8],
    ) -> io::Result<()> {
        let mut head = Vec::with_capacity(12);
        header.write_to(length, &mut head)?;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head);
        crc.update(compressed);
        self.push_entry(id, crc.finalize(), lines);
        self.push_bytes(&head)?;
        self.push_bytes(compressed)
    }

    /// Compresses a large file into the pack; false, and no trace of it, where it is no longer what was hashed.
    fn append_stream(&mut self, id: ObjectId, file: &File, length: u64) -> io::Result<bool> {
        self.spill()?;
        let start = self.length;
        let result = self.stream_into(file, length);
        match result {
            Ok((crc32, actual)) if actual == Some(id) => {
                let end = std::mem::replace(&mut self.length, start);
                // So large a file is compared as a whole.
                self.push_entry(id, crc32, None);
                self.length = end;
                Ok(true)
            }
            Ok(_) => self.cut(start).map(|()| false),
            Err(error) => self.cut(start).and(Err(error)),
        }
    }

    fn stream_into(&mut self, file: &File, length: u64) -> io::Result<(u32, Option<ObjectId>)> {
        let mut head = Vec::with_capacity(12);
        Header::Blob.write_to(length, &mut head)?;
        let mut out = CountingWriter { body: self, crc: crc32fast::Hasher::new() };
        out.write_all(&head)?;
        let level = stream_level(file)?;
        let mut encoder = flate2::write::ZlibEncoder::new(out, level);
        let mut hasher = start_hash(ObjectKind::Blob, length);
        let whole = stream_file(file, length, |piece| {
            hasher.update(piece);
            encoder.write_all(piece)
        })?;
        let crc = encoder.finish()?.crc.finalize();
        Ok((crc, if whole { Some(finish_hash(hasher)?) } else { None }))
    }

    fn push_entry(&mut self, id: ObjectId, crc32: u32, lines: Option<u64>) {
        self.lines.push(lines);
        self.positions.insert(id, self.entries.len());
        self.entries.push(IndexEntry { id, crc32, offset: self.length });
    }

    fn push_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.memory.extend_from_slice(bytes);
        self.length += bytes.len() as u64;
        if self.memory.len() > MEMORY_BYTES { self.spill() } else { Ok(()) }
    }

    /// Moves what is in memory into a temporary file.
    fn spill(&mut self) -> io::Result<()> {
        let (file, _) = match &mut self.file {
            Some(file) => file,
            none => {
                let mut made = private::create_temporary(&self.packs, "pack")?;
                // Room for the header, which says how many objects there are and so comes last.
                private::write_all(&mut made.0, &[0; HEADER_BYTES as usize])?;
                none.insert(made)
            }
        };
        private::write_all(file, &self.memory)?;
        self.memory.clear();
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.spill()?;
        if let Some((file, _)) = &mut self.file {
            file.set_len(length)?;
            file.seek(SeekFrom::End(0))?;
        }
        self.length = length;
        Ok(())
    }

    fn read_back(&mut self, id: &ObjectId) -> io::Result<Option<Vec<u8>>> {
        let Some(position) = self.positions.get(id).copied() else { return Ok(None) };
        let start = self.entries[position].offset;
        let end = self.entries.get(position + 1).map_or(self.length, |next| next.offset);
        let bytes = self.bytes(start, end)?;
        let entry = gix_pack::data::Entry::from_bytes(&bytes, start, gix_hash::Kind::Sha1)
            .map_err(|error| io::Error::other(error.to_string()))?;
        let mut content = Vec::new();
        flate2::read::ZlibDecoder::new(&bytes[entry.header_size()..]).read_to_end(&mut content)?;
        Ok(Some(content))
    }

    fn bytes(&mut self, start: u64, end: u64) -> io::Result<Vec<u8>> {
        let in_memory_from = self.length - self.memory.len() as u64;
        if start >= in_memory_from {
            let range = (start - in_memory_from) as usize..(end - in_memory_from) as usize;
            return Ok(self.memory[range].to_vec());
        }
        self.spill()?;
        let mut bytes = vec![0; (end - start) as usize];
        match &self.file {
            Some((file, _)) => file.read_exact_at(&mut bytes, start)?,
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(bytes)
    }

    fn finish(mut self) -> io::Result<PathBuf> {
        let packs = std::mem::take(&mut self.packs);
        let header = gix_pack::data::header::encode(gix_pack::data::Version::V2, self.entries.len() as u32);
        let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
        hasher.update(&header);
        let (mut file, path) = match self.file.take() {
            Some((mut file, path)) => {
                private::write_all(&mut file, &self.memory)?;
                private::write_at(&file, &header, 0)?;
                hash_range(&file, HEADER_BYTES..self.length, &mut hasher)?;
                (file, path)
            }
            None => {
                hasher.update(&self.memory);
                let (mut file, path) = private::create_temporary(&packs, "pack")?;
                let whole = [&header[..], &self.memory].concat();
                private::write_all(&mut file, &whole).inspect_err(|_| private::remove_leftover(&path))?;
                (file, path)
            }
        };
        let result = (|| {
            let checksum = finish_hash(hasher)?;
            private::write_all(&mut file, checksum.as_slice())?;
            private::check_length(&file, self.length + checksum.as_slice().len() as u64)?;
            private::sync_file(&file)?;
            let index = encode_index(self.entries, &checksum)?;
            let name = packs.join(format!("pack-{checksum}"));
            // Git and gitoxide take a pack for there when its index is: so the index gets its name last.
            private::rename(&path, &name.with_extension("pack"))?;
            private::replace(&name.with_extension("idx"), &index, private::Durability::Synced)?;
            Ok(name.with_extension("pack"))
        })();
        result.inspect_err(|_| private::remove_leftover(&path))
    }
}

/// Hashes a part of a file.
pub(super) fn hash_range(file: &File, range: Range<u64>, hasher: &mut gix_hash::Hasher) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut offset = range.start;
    while offset < range.end {
        let wanted = buffer.len().min(usize::try_from(range.end - offset).unwrap_or(usize::MAX));
        match file.read_at(&mut buffer[..wanted], offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                offset += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

struct CountingWriter<'a> {
    body: &'a mut Body,
    crc: crc32fast::Hasher,
}

impl Write for CountingWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.crc.update(bytes);
        self.body.push_bytes(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Compressors {
    fast: libdeflater::Compressor,
    stored: libdeflater::Compressor,
    buffer: Vec<u8>,
}

fn compressor(level: i32) -> libdeflater::Compressor {
    libdeflater::Compressor::new(libdeflater::CompressionLvl::new(level).unwrap_or_default())
}

thread_local! {
    static COMPRESSORS: RefCell<Compressors> =
        RefCell::new(Compressors { fast: compressor(1), stored: compressor(0), buffer: Vec::new() });
}

/// Compresses quickly, or just wraps what would not shrink.
fn compress<T>(bytes: &[u8], then: impl FnOnce(&[u8]) -> io::Result<T>) -> io::Result<T> {
    COMPRESSORS.with_borrow_mut(|Compressors { fast, stored, buffer }| {
        let mut run = |compressor: &mut libdeflater::Compressor, input: &[u8]| {
            let bound = compressor.zlib_compress_bound(input.len());
            if buffer.len() < bound {
                buffer.resize(bound, 0);
            }
            compressor.zlib_compress(input, buffer).map_err(io::Error::other)
        };
        let is_worth_it = bytes.len() < 4 * SAMPLE_BYTES || {
            let sample = &bytes[bytes.len() / 2..][..SAMPLE_BYTES];
            run(fast, sample)? < SAMPLE_BYTES - SAMPLE_BYTES / 32
        };
        let length = run(if is_worth_it { fast } else { stored }, bytes)?;
        then(&buffer[..length])
    })
}

/// Compresses with patience.
fn compress_well(bytes: &[u8]) -> io::Result<Vec<u8>> {
    thread_local! {
        static PATIENT: RefCell<libdeflater::Compressor> = RefCell::new(compressor(7));
    }
    PATIENT.with_borrow_mut(|compressor| {
        let mut out = vec![0; compressor.zlib_compress_bound(bytes.len())];
        let length = compressor.zlib_compress(bytes, &mut out).map_err(io::Error::other)?;
        out.truncate(length);
        Ok(out)
    })
}

/// The level for a large file, by a sample from its middle.
fn stream_level(file: &File) -> io::Result<flate2::Compression> {
    let mut sample = vec![0; SAMPLE_BYTES];
    let middle = file.metadata()?.len() / 2;
    let read = file.read_at(&mut sample, middle).map_err(crate::model::Unreadable::mark)?;
    let shrinks = compress(&sample[..read], |compressed| Ok(compressed.len() < read - read / 32))?;
    Ok(if shrinks { flate2::Compression::fast() } else { flate2::Compression::none() })
}
