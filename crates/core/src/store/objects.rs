//! Git objects: computing their ids and reading them.

use std::{
    fs::File,
    io::{self, Read, Seek},
    path::{Path, PathBuf},
    sync::Arc,
};

use gix_hash::{ObjectId, oid};
use gix_object::{Find, FindHeader, tree::EntryKind};

use crate::{
    disk::private,
    model::{ContentId, ContentSink, Contents, Unreadable},
};

/// Blobs larger than this are decompressed piece by piece.
pub(super) const STREAM_BYTES: u64 = 16 << 20;
/// The maximum number of packs that can be open. A store never has so many: they are merged long before.
const SLOTS: u16 = 4096;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Blob,
    Tree,
    Commit,
}

impl ObjectKind {
    pub(super) fn to_git(self) -> gix_object::Kind {
        match self {
            Self::Blob => gix_object::Kind::Blob,
            Self::Tree => gix_object::Kind::Tree,
            Self::Commit => gix_object::Kind::Commit,
        }
    }

    /// Converts git's kind. Returns `None` for a tag, because a store has no tags.
    pub(super) fn of_git(kind: gix_object::Kind) -> Option<Self> {
        match kind {
            gix_object::Kind::Blob => Some(Self::Blob),
            gix_object::Kind::Tree => Some(Self::Tree),
            gix_object::Kind::Commit => Some(Self::Commit),
            gix_object::Kind::Tag => None,
        }
    }
}

/// The reason why an object could not be read.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum ObjectProblem {
    /// The object is missing.
    #[error("object {0} is missing")]
    Missing(ObjectId),
    /// The object's bytes do not match its id, or can't be decoded.
    #[error("object {0} is damaged: {1}")]
    Damaged(ObjectId, String),
    /// The object may be in this file, but this process has no permission to read it.
    #[error("can't read {}: permission denied", .0.display())]
    Refused(PathBuf),
}

/// Returns the id of an object with these bytes.
pub(super) fn hash_object(kind: ObjectKind, bytes: &[u8]) -> io::Result<ObjectId> {
    let mut hasher = start_hash(kind, bytes.len() as u64);
    hasher.update(bytes);
    finish_hash(hasher)
}

pub(super) fn start_hash(kind: ObjectKind, length: u64) -> gix_hash::Hasher {
    let mut hasher = gix_hash::hasher(gix_hash::Kind::Sha1);
    hasher.update(&gix_object::encode::loose_header(kind.to_git(), length));
    hasher
}

pub(super) fn finish_hash(hasher: gix_hash::Hasher) -> io::Result<ObjectId> {
    // The only possible failure is an attack on SHA-1 that the hasher detected.
    hasher.try_finalize().map_err(|error| io::Error::other(error.to_string()))
}

pub(crate) fn bytes_of(id: &oid) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes.copy_from_slice(id.as_bytes());
    bytes
}

pub(crate) fn object_id(bytes: &[u8; 20]) -> ObjectId {
    ObjectId::from_bytes_or_panic(bytes)
}

/// Passes a file to `take` in pieces, from its start. Returns `false` if the file has another length than `length`.
pub(super) fn stream_file(
    mut file: &File,
    length: u64,
    mut take: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    file.rewind().map_err(Unreadable::mark)?;
    // One byte more than announced, so that a file that has grown is detected.
    let mut buffer = vec![0; length.saturating_add(1).min(256 << 10) as usize];
    let mut total = 0;
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => return Ok(total == length),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Unreadable::mark(error)),
        };
        total += read as u64;
        if total > length {
            return Ok(false);
        }
        take(&buffer[..read])?;
    }
}

/// Returns the id of a large file's current bytes. Returns `None` if the file has another length than `length`.
pub(super) fn hash_stream(file: &File, length: u64) -> io::Result<Option<ObjectId>> {
    let mut hasher = start_hash(ObjectKind::Blob, length);
    let whole = stream_file(file, length, |piece| {
        hasher.update(piece);
        Ok(())
    })?;
    if whole { finish_hash(hasher).map(Some) } else { Ok(None) }
}

/// Computes the ids of contents without storing them.
#[derive(Debug)]
pub(crate) struct HashOnly;

impl ContentSink for HashOnly {
    fn put(&self, contents: Contents<'_>) -> io::Result<Option<ContentId>> {
        let id = match contents {
            Contents::Whole(bytes) => Some(hash_object(ObjectKind::Blob, bytes)?),
            Contents::Stream { file, bytes } => hash_stream(file, bytes)?,
        };
        Ok(id.map(|id| ContentId(bytes_of(&id))))
    }
}

/// Returns the id of these bytes as the contents of a file. Returns `None` if they can't be hashed.
pub(crate) fn content_id(bytes: &[u8]) -> Option<ContentId> {
    hash_object(ObjectKind::Blob, bytes).ok().map(|id| ContentId(bytes_of(&id)))
}

/// The objects of a store.
#[derive(Clone)]
pub(crate) struct Objects {
    directory: PathBuf,
    odb: Arc<gix_odb::Store>,
    /// Another store, for objects that this one lacks.
    borrowed: Option<Arc<Objects>>,
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Objects").field("directory", &self.directory).finish_non_exhaustive()
    }
}

impl Objects {
    pub(super) fn at(directory: &Path) -> io::Result<Self> {
        let options = gix_odb::store::init::Options {
            slots: gix_odb::store::init::Slots::Given(SLOTS),
            use_multi_pack_index: true,
            current_dir: Some(directory.to_owned()),
            ..Default::default()
        };
        let odb =
            gix_odb::Store::at_opts(directory.to_owned(), gix_hash::Kind::Sha1, &mut std::iter::empty(), options)?;
        Ok(Self { directory: directory.to_owned(), odb: Arc::new(odb), borrowed: None })
    }

    /// Returns these objects together with those of another store.
    pub(super) fn borrowing(&self, other: &Self) -> Self {
        Self { borrowed: Some(Arc::new(other.clone())), ..self.clone() }
    }

    /// Returns a reader. Each thread has its own.
    pub(crate) fn reader(&self) -> ObjectReader {
        let borrowed = self.borrowed.as_ref().map(|borrowed| Box::new(borrowed.reader()));
        ObjectReader { handle: self.odb.to_handle_arc(), directory: self.directory.clone(), borrowed }
    }
}

/// Reads objects and checks that their bytes match their ids.
pub(crate) struct ObjectReader {
    handle: gix_odb::store::Handle<Arc<gix_odb::Store>>,
    directory: PathBuf,
    borrowed: Option<Box<ObjectReader>>,
}

impl ObjectReader {
    /// Returns the entry with this name in a tree, or `None` if there is none.
    pub(super) fn entry(&self, tree: &oid, name: &str) -> Result<Option<(EntryKind, ObjectId)>, ObjectProblem> {
        let bytes = self.read(tree, ObjectKind::Tree)?;
        for entry in gix_object::TreeRefIter::from_bytes(&bytes, gix_hash::Kind::Sha1) {
            let entry = entry.map_err(|error| ObjectProblem::Damaged(tree.to_owned(), error.to_string()))?;
            if entry.filename == name {
                return Ok(Some((entry.mode.kind(), entry.oid.to_owned())));
            }
        }
        Ok(None)
    }

    /// Returns the bytes of an object of this kind.
    pub(crate) fn read(&self, id: &oid, kind: ObjectKind) -> Result<Vec<u8>, ObjectProblem> {
        // An object that is damaged in one pack may have been written again since, into another pack.
        self.read_first(id, kind).or_else(|problem| match (self.read_elsewhere(id, kind), &self.borrowed) {
            (Some(bytes), _) => Ok(bytes),
            (None, Some(borrowed)) => borrowed.read(id, kind),
            (None, None) => Err(self.refused_or(problem)),
        })
    }

    /// Returns [`ObjectProblem::Refused`] instead of `problem` if there is a pack file that this process has no
    /// permission to read: then the object may be neither missing nor damaged.
    fn refused_or(&self, problem: ObjectProblem) -> ObjectProblem {
        private::refused_in(&self.directory.join("pack")).map_or(problem, ObjectProblem::Refused)
    }

    /// Returns the object from any pack that holds it undamaged and not as a delta. Returns `None` if there is none.
    fn read_elsewhere(&self, id: &oid, kind: ObjectKind) -> Option<Vec<u8>> {
        let indices = super::packs::index::open_indices(&self.directory.join("pack")).ok()?;
        indices.iter().find_map(|index| {
            let offset = index.pack_offset_at_index(index.lookup(id)?);
            let pack = gix_pack::data::File::at(index.path().with_extension("pack"), gix_hash::Kind::Sha1).ok()?;
            let entry = pack.entry(offset).ok()?;
            if entry.header.as_kind() != Some(kind.to_git()) {
                return None;
            }
            let compressed = pack.entry_slice(entry.data_offset..pack.pack_end() as u64)?;
            let mut bytes = Vec::new();
            let limit = entry.decompressed_size.checked_add(1)?;
            flate2::read::ZlibDecoder::new(compressed).take(limit).read_to_end(&mut bytes).ok()?;
            hash_object(kind, &bytes).is_ok_and(|actual| actual == id).then_some(bytes)
        })
    }

    fn read_first(&self, id: &oid, kind: ObjectKind) -> Result<Vec<u8>, ObjectProblem> {
        let damaged = |why: String| ObjectProblem::Damaged(id.to_owned(), why);
        let mut buffer = Vec::new();
        let found = self.handle.try_find(id, &mut buffer).map_err(|error| damaged(error.to_string()))?;
        let found = found.ok_or_else(|| ObjectProblem::Missing(id.to_owned()))?;
        if found.kind != kind.to_git() {
            return Err(damaged(format!("it is a {} object", found.kind)));
        }
        let actual = hash_object(kind, found.data).map_err(|error| damaged(error.to_string()))?;
        if actual != id {
            return Err(damaged("its content does not match its id".into()));
        }
        buffer.truncate(buffer.len());
        Ok(buffer)
    }

    /// Returns an object of any kind.
    pub(super) fn read_any(&self, id: &oid) -> Result<(ObjectKind, Vec<u8>), ObjectProblem> {
        let damaged = |why: String| ObjectProblem::Damaged(id.to_owned(), why);
        let header = self.handle.try_header(id).map_err(|error| self.refused_or(damaged(error.to_string())))?;
        let kind = header.ok_or_else(|| self.refused_or(ObjectProblem::Missing(id.to_owned())))?.kind;
        let kind = ObjectKind::of_git(kind).ok_or_else(|| damaged("it is a tag object".into()))?;
        self.read(id, kind).map(|bytes| (kind, bytes))
    }

    /// Returns the size of an object in bytes. Does not check its content.
    pub(crate) fn size(&self, id: &oid) -> Result<u64, ObjectProblem> {
        let problem = match self.handle.try_header(id) {
            Ok(Some(header)) => return Ok(header.size),
            Ok(None) => ObjectProblem::Missing(id.to_owned()),
            Err(error) => ObjectProblem::Damaged(id.to_owned(), error.to_string()),
        };
        match (self.read_elsewhere(id, ObjectKind::Blob), &self.borrowed) {
            (Some(bytes), _) => Ok(bytes.len() as u64),
            (None, Some(borrowed)) => borrowed.size(id),
            (None, None) => Err(self.refused_or(problem)),
        }
    }

    /// Passes the bytes of a blob to `take`, a large one piece by piece. Fails if they do not match the id. The inner
    /// result is that of `take`.
    ///
    /// The pieces of a damaged large blob have been passed on by the time that the damage is detected: the caller must
    /// not rely on them before this returns.
    pub(crate) fn copy_blob(
        &self,
        id: &oid,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<io::Result<()>, ObjectProblem> {
        let size = self.size(id)?;
        if size > STREAM_BYTES
            && let Some(result) = self.stream_from_pack(id, size, take)
        {
            return result;
        }
        let bytes = self.read(id, ObjectKind::Blob)?;
        Ok(take(&bytes))
    }

    /// Decompresses a blob directly from its pack. Returns `None` if it is a delta or not in a readable pack.
    fn stream_from_pack(
        &self,
        id: &oid,
        size: u64,
        take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Option<Result<io::Result<()>, ObjectProblem>> {
        for index in super::packs::index::open_indices(&self.directory.join("pack")).ok()? {
            let Some(position) = index.lookup(id) else { continue };
            let offset = index.pack_offset_at_index(position);
            let pack = gix_pack::data::File::at(index.path().with_extension("pack"), gix_hash::Kind::Sha1).ok()?;
            let entry = pack.entry(offset).ok()?;
            if !matches!(entry.header, gix_pack::data::entry::Header::Blob) {
                return None;
            }
            // Not through the memory map of the pack: the mapped pages would count as memory of this process.
            let compressed = private::open_from(pack.path(), entry.data_offset).ok()?;
            return Some(inflate_blob(id, size, compressed, take));
        }
        None
    }
}

fn inflate_blob(
    id: &oid,
    size: u64,
    compressed: impl Read,
    take: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> Result<io::Result<()>, ObjectProblem> {
    let damaged = |why: String| ObjectProblem::Damaged(id.to_owned(), why);
    let mut hasher = start_hash(ObjectKind::Blob, size);
    let mut decoder = flate2::read::ZlibDecoder::new(compressed);
    let mut buffer = vec![0; 256 << 10];
    loop {
        let read = decoder.read(&mut buffer).map_err(|error| damaged(error.to_string()))?;
        if read == 0 {
            break;
        }
        hasher.update(&buffer[..read]);
        if let Err(error) = take(&buffer[..read]) {
            return Ok(Err(error));
        }
    }
    let actual = finish_hash(hasher).map_err(|error| damaged(error.to_string()))?;
    if actual == id { Ok(Ok(())) } else { Err(damaged("its content does not match its id".into())) }
}
