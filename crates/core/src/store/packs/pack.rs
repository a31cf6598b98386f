//! Writes all new objects of a save into one pack, or into two if the first is large (see [`PackWriter::settle`]).
//!
//! Workers hash and compress in parallel; only appending is serialized. Without `settle`, nothing is visible before
//! [`PackWriter::finish`]. A dead process leaves behind a file with a temporary name.

use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    ops::Range,
    os::unix::fs::FileExt,
    panic,
    path::PathBuf,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    thread::{self, JoinHandle},
};

use gix_hash::ObjectId;
use gix_hashtable::{HashMap, HashSet};
use gix_pack::data::entry::Header;

use super::index::{KnownObjects, PackIndexEntry, encode_index, sort_entries};
use crate::store::{
    Layout,
    compress::{compress, compress_well, stream_level},
    objects::{ObjectKind, bytes_of, finish_hash, hash_object, hash_stream, start_hash, stream_file},
};
use crate::{
    disk::private,
    model::{ContentId, ContentSink, Contents},
    text, threads,
};

/// The size up to which a pack is built in memory and written in one piece.
const MEMORY_BYTES: usize = 4 << 20;
const HEADER_BYTES: u64 = 12;

/// A pack that is being written.
pub(crate) struct PackWriter {
    layout: Layout,
    known: OnceLock<KnownObjects>,
    seen: Mutex<HashSet<ObjectId>>,
    body: Mutex<Body>,
    /// The first objects, if [`PackWriter::settle`] has started to finish them as a pack of their own.
    settled: OnceLock<Body>,
    settling: Mutex<Option<JoinHandle<io::Result<PathBuf>>>>,
}

struct Body {
    packs: PathBuf,
    memory: Vec<u8>,
    file: Option<(File, PathBuf)>,
    length: u64,
    entries: Vec<PackIndexEntry>,
    positions: HashMap<ObjectId, usize>,
    /// The number of lines of each entry; `None` if they were not counted, because it is not text or too large.
    lines: Vec<Option<u64>>,
}

impl PackWriter {
    pub(in crate::store) fn new(layout: &Layout) -> Self {
        Self {
            layout: layout.clone(),
            known: OnceLock::new(),
            seen: Mutex::default(),
            body: Mutex::new(Body::in_directory(layout.packs())),
            settled: OnceLock::new(),
            settling: Mutex::default(),
        }
    }

    /// Finishes the objects so far as a pack of their own on a background thread, if they are too large for memory. The
    /// checksum takes a while to compute. It begins with the number of objects, so it can't be started while objects
    /// are still added. Returns whether a pack was started.
    pub(crate) fn settle(&self) -> io::Result<bool> {
        let mut body = self.body();
        if body.file.is_none() || self.settled.get().is_some() {
            return Ok(false);
        }
        body.spill()?;
        // Without another file handle or thread, the pack stays as it is and is finished at the end.
        let Ok(own) = body.for_finishing() else { return Ok(false) };
        let thread = thread::Builder::new().name("pack".into()).spawn(move || own.finish());
        let Ok(thread) = thread else { return Ok(false) };
        *self.settling() = Some(thread);
        let rest = Body::in_directory(self.layout.packs());
        self.settled.get_or_init(|| std::mem::replace(&mut *body, rest));
        Ok(true)
    }

    fn settling(&self) -> MutexGuard<'_, Option<JoinHandle<io::Result<PathBuf>>>> {
        self.settling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a pack that takes objects whether the store has them or not.
    pub(in crate::store) fn anew(layout: &Layout) -> Self {
        let writer = Self::new(layout);
        writer.known.get_or_init(KnownObjects::none);
        writer
    }

    /// Adds an object unless the store has it. Returns its id.
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

    /// Returns the number of lines of a blob in this pack. Returns `None` if the blob is not in this pack, and
    /// `Some(None)` if it is not text or too large to count.
    pub(crate) fn lines_of(&self, content: &ContentId) -> Option<Option<u64>> {
        let id = crate::store::objects::object_id(content.as_bytes());
        self.settled.get().and_then(|settled| settled.lines_of(&id)).or_else(|| self.body().lines_of(&id))
    }

    /// Returns whether an object is neither in this pack nor in an earlier one. Marks it as added.
    fn is_new(&self, id: ObjectId) -> io::Result<bool> {
        Ok(!self.known_objects()?.contains(&id) && self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(id))
    }

    fn known_objects(&self) -> io::Result<&KnownObjects> {
        match self.known.get() {
            Some(known) => Ok(known),
            None => {
                // Two workers may both read the indices; both get the same result.
                let found = KnownObjects::of(&self.layout.objects())?;
                Ok(self.known.get_or_init(|| found))
            }
        }
    }

    /// Returns whether an object is in this pack, or undamaged in the store.
    pub(crate) fn holds(&self, id: &[u8; 20]) -> io::Result<bool> {
        let id = crate::store::objects::object_id(id);
        let is_here = self.seen.lock().unwrap_or_else(PoisonError::into_inner).contains(&id);
        Ok(is_here || self.known_objects()?.contains(&id))
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

    /// Returns the bytes of a blob that was added. Returns `None` if it is not in this pack.
    pub(crate) fn read_back(&self, content: &ContentId) -> io::Result<Option<Vec<u8>>> {
        let id = crate::store::objects::object_id(content.as_bytes());
        match self.settled.get().filter(|settled| settled.positions.contains_key(&id)) {
            Some(settled) => settled.read_back(&id),
            None => {
                let mut body = self.body();
                body.complete_file()?;
                body.read_back(&id)
            }
        }
    }

    fn body(&self) -> MutexGuard<'_, Body> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an object with this id, compressed as well as possible.
    pub(in crate::store) fn put_small(&self, id: ObjectId, kind: ObjectKind, bytes: &[u8]) -> io::Result<()> {
        let compressed = compress_well(bytes)?;
        self.body().append(id, header_of(kind), bytes.len() as u64, None, &compressed)
    }

    /// Adds an object as a delta of another object in this pack.
    pub(in crate::store) fn put_delta(&self, id: ObjectId, base: ObjectId, delta: &[u8]) -> io::Result<()> {
        let compressed = compress_well(delta)?;
        let mut body = self.body();
        let position = body.positions.get(&base).ok_or(io::ErrorKind::NotFound)?;
        let base_distance = body.length - body.entries[*position].offset;
        body.append(id, Header::OfsDelta { base_distance }, delta.len() as u64, None, &compressed)
    }

    /// Adds an object exactly as another pack stores it, including its header.
    pub(in crate::store) fn put_raw(&self, id: ObjectId, raw: &[u8], crc32: u32) -> io::Result<()> {
        let mut body = self.body();
        body.push_entry(id, crc32, None);
        raw.chunks(1 << 20).try_for_each(|piece| body.push_bytes(piece))
    }

    /// Makes the pack durable and visible, and returns its path. Returns `None` and writes nothing if it is empty.
    pub(in crate::store) fn finish(self) -> io::Result<Option<PathBuf>> {
        if let Some(settling) = self.settling().take() {
            settling.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked))?;
        }
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
        // Nothing may be written after the store's lock is released.
        if let Some(settling) = self.settling().take() {
            drop(settling.join());
        }
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
            positions: HashMap::default(),
            lines: Vec::new(),
        }
    }

    /// Returns a copy of this pack for another thread to finish, without the data that only lookups need.
    fn for_finishing(&self) -> io::Result<Self> {
        let file = self.file.as_ref().map(|(file, path)| io::Result::Ok((file.try_clone()?, path.clone())));
        Ok(Self {
            file: file.transpose()?,
            length: self.length,
            entries: self.entries.clone(),
            ..Self::in_directory(self.packs.clone())
        })
    }

    fn lines_of(&self, id: &ObjectId) -> Option<Option<u64>> {
        self.positions.get(id).map(|position| self.lines[*position])
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

    /// Compresses a large file into the pack. Returns `false` and leaves no trace of the file if its bytes are no
    /// longer those that were hashed.
    fn append_stream(&mut self, id: ObjectId, file: &File, length: u64) -> io::Result<bool> {
        self.spill()?;
        let start = self.length;
        let result = self.stream_into(file, length);
        match result {
            Ok((crc32, actual)) if actual == Some(id) => {
                let end = std::mem::replace(&mut self.length, start);
                // Lines are not counted: a file of this size is compared as a whole.
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
        self.entries.push(PackIndexEntry { id, crc32, offset: self.length });
    }

    fn push_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.memory.extend_from_slice(bytes);
        self.length += bytes.len() as u64;
        if self.memory.len() > MEMORY_BYTES { self.spill() } else { Ok(()) }
    }

    /// Moves the bytes in memory to a temporary file.
    fn spill(&mut self) -> io::Result<()> {
        let (file, _) = match &mut self.file {
            Some(file) => file,
            none => {
                let mut made = private::create_temporary(&self.packs, "pack")?;
                // Space for the header. It contains the number of objects, so it is written last.
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

    /// Moves everything to the file, if there is one.
    fn complete_file(&mut self) -> io::Result<()> {
        if self.file.is_some() && !self.memory.is_empty() { self.spill() } else { Ok(()) }
    }

    /// Returns the bytes of a blob, or `None` if it is not here. If there is a file, it must contain everything.
    fn read_back(&self, id: &ObjectId) -> io::Result<Option<Vec<u8>>> {
        let Some(position) = self.positions.get(id).copied() else { return Ok(None) };
        let start = self.entries[position].offset;
        let end = self.entries.get(position + 1).map_or(self.length, |next| next.offset);
        let bytes = self.bytes(start..end)?;
        let entry = gix_pack::data::Entry::from_bytes(&bytes, start, gix_hash::Kind::Sha1)
            .map_err(|error| io::Error::other(error.to_string()))?;
        let mut content = Vec::new();
        flate2::read::ZlibDecoder::new(&bytes[entry.header_size()..]).read_to_end(&mut content)?;
        Ok(Some(content))
    }

    fn bytes(&self, range: Range<u64>) -> io::Result<Cow<'_, [u8]>> {
        let Some((file, _)) = &self.file else {
            let within = (range.start - HEADER_BYTES) as usize..(range.end - HEADER_BYTES) as usize;
            return self.memory.get(within).map(Cow::Borrowed).ok_or_else(|| io::ErrorKind::UnexpectedEof.into());
        };
        let mut bytes = vec![0; (range.end - range.start) as usize];
        file.read_exact_at(&mut bytes, range.start)?;
        Ok(Cow::Owned(bytes))
    }

    fn finish(mut self) -> io::Result<PathBuf> {
        let packs = std::mem::take(&mut self.packs);
        let spilled = self.file.take();
        let is_spilled = spilled.is_some();
        let (mut file, path) = match spilled {
            Some(spilled) => spilled,
            None => private::create_temporary(&packs, "pack")?,
        };
        let result = (|| {
            let header = gix_pack::data::header::encode(gix_pack::data::Version::V2, self.entries.len() as u32);
            let checksum = if is_spilled {
                private::write_all(&mut file, &self.memory)?;
                private::write_at(&file, &header, 0)?;
                self.checksum_of_file(&file, &header)?
            } else {
                private::write_all(&mut file, &[&header[..], &self.memory].concat())?;
                checksum_of(&header, |hasher| {
                    hasher.update(&self.memory);
                    Ok(())
                })?
            };
            private::write_all(&mut file, checksum.as_slice())?;
            private::check_length(&file, self.length + checksum.as_slice().len() as u64)?;
            private::sync_file(&file)?;
            let index = encode_index(self.entries, &checksum)?;
            let name = packs.join(format!("pack-{checksum}"));
            // Git and gitoxide see a pack once its index exists, so the index gets its name last.
            private::rename(&path, &name.with_extension("pack"))?;
            private::replace(&name.with_extension("idx"), &index, private::Durability::Synced)?;
            Ok(name.with_extension("pack"))
        })();
        result.inspect_err(|_| private::remove_leftover(&path))
    }

    /// Reads the file back to compute its checksum. Meanwhile, another thread sorts the entries and syncs the file.
    fn checksum_of_file(&mut self, file: &File, header: &[u8]) -> io::Result<ObjectId> {
        let (entries, length) = (&mut self.entries, self.length);
        let (checksum, synced) = threads::beside(
            || checksum_of(header, |hasher| hash_range(file, HEADER_BYTES..length, hasher)),
            || {
                sort_entries(entries);
                private::sync_file(file)
            },
        );
        // The kernel reports a failed sync only once: the next sync would not fail again.
        synced?;
        checksum
    }
}

/// Returns the checksum of a pack: of its header and of the bytes that `add` adds.
fn checksum_of(header: &[u8], add: impl FnOnce(&mut gix_hash::Hasher) -> io::Result<()>) -> io::Result<ObjectId> {
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(header);
    add(&mut hasher)?;
    finish_hash(hasher)
}

/// Hashes a part of a file.
pub(in crate::store) fn hash_range(file: &File, range: Range<u64>, hasher: &mut gix_hash::Hasher) -> io::Result<()> {
    read_range(file, range, |piece| hasher.update(piece))
}

/// Passes a part of a file to `take`, piece by piece.
pub(in crate::store) fn read_range(file: &File, range: Range<u64>, mut take: impl FnMut(&[u8])) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 20];
    let mut offset = range.start;
    while offset < range.end {
        let wanted = buffer.len().min(usize::try_from(range.end - offset).unwrap_or(usize::MAX));
        match file.read_at(&mut buffer[..wanted], offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                take(&buffer[..read]);
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
