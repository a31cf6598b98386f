//! Counts inserted and deleted lines.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    io::Read,
    path::Path,
};

use imara_diff::{Algorithm, Diff, InternedInput, sources::byte_lines};
use rayon::prelude::*;

use crate::{
    disk::Dir,
    error::{Result, While},
    model::{Change, ContentId, Side, WorkspacePath},
    store::{ObjectReader, PackWriter, Store},
    text::{MAX_TEXT_BYTES, is_binary, line_count},
    threads,
};

/// The places from which the contents of both sides of a change are read.
pub(crate) struct LineSource<'a> {
    store: Option<Stored<'a>>,
    older_place: Place<'a>,
    newer_place: Place<'a>,
    /// New contents that the store does not have yet.
    contents: Option<&'a HashMap<ContentId, Vec<u8>>>,
}

/// A store, with a cache of the contents that were read: a caller that counts lines often prints them next.
struct Stored<'a> {
    store: &'a Store,
    reader: ObjectReader,
    kept: RefCell<HashMap<ContentId, Vec<u8>>>,
    kept_bytes: Cell<usize>,
}

/// The maximum size of the cache.
const KEPT_BYTES: usize = 1 << 20;

impl<'a> Stored<'a> {
    fn of(store: &'a Store) -> Self {
        Self { store, reader: store.reader(), kept: RefCell::default(), kept_bytes: Cell::new(0) }
    }

    /// Returns the bytes of a content. Returns `None` if there are more than `most`.
    fn content(&self, content: &ContentId, most: u64) -> Result<Option<Vec<u8>>> {
        if let Some(kept) = self.kept.borrow().get(content).filter(|kept| kept.len() as u64 <= most) {
            return Ok(Some(kept.clone()));
        }
        if self.store.content_size(&self.reader, content)? > most {
            return Ok(None);
        }
        let bytes = self.store.content(&self.reader, content)?;
        if self.kept_bytes.get() + bytes.len() <= KEPT_BYTES {
            self.kept_bytes.set(self.kept_bytes.get() + bytes.len());
            self.kept.borrow_mut().insert(*content, bytes.clone());
        }
        Ok(Some(bytes))
    }
}

/// The number of leading bytes of a large file that tell whether it is text.
const BEGINNING_BYTES: usize = 16 << 10;

/// The number of changes that are worth another worker.
const SHARE: usize = 16;

/// The place of one side.
#[derive(Clone, Copy)]
enum Place<'a> {
    Stored,
    Pack(&'a PackWriter),
    Disk(&'a Path),
}

impl<'a> LineSource<'a> {
    pub(crate) fn stored(store: &'a Store) -> Self {
        Self::between(Some(store), Place::Stored, Place::Stored)
    }

    pub(crate) fn in_pack(store: &'a Store, pack: &'a PackWriter) -> Self {
        Self::between(Some(store), Place::Stored, Place::Pack(pack))
    }

    pub(crate) fn on_disk(store: Option<&'a Store>, root: &'a Path) -> Self {
        Self::between(store, Place::Stored, Place::Disk(root))
    }

    /// Returns the source for a restore: the older side is on disk, the newer side is in the store.
    pub(crate) fn from_disk_to_store(store: &'a Store, root: &'a Path) -> Self {
        Self::between(Some(store), Place::Disk(root), Place::Stored)
    }

    fn between(store: Option<&'a Store>, older_place: Place<'a>, newer_place: Place<'a>) -> Self {
        Self { store: store.map(Stored::of), older_place, newer_place, contents: None }
    }

    /// Adds new contents that the store does not have yet.
    pub(crate) fn with_contents(self, contents: &'a HashMap<ContentId, Vec<u8>>) -> Self {
        Self { contents: Some(contents), ..self }
    }

    /// Returns the same source for another worker.
    fn again(&self) -> Self {
        let store = self.store.as_ref().map(|stored| Stored::of(stored.store));
        Self { store, ..*self }
    }

    /// Returns the bytes of the older side. Returns `None` if there are more than `most`.
    pub(super) fn older(&self, path: &WorkspacePath, side: Option<&Side>, most: u64) -> Result<Option<Vec<u8>>> {
        self.read(&self.older_place, path, side, most)
    }

    /// Returns the bytes of the newer side. Returns `None` if there are more than `most`.
    pub(super) fn newer(&self, path: &WorkspacePath, side: Option<&Side>, most: u64) -> Result<Option<Vec<u8>>> {
        self.read(&self.newer_place, path, side, most)
    }

    /// Returns the length of the older side in bytes. Returns `None` if there is no such side.
    pub(super) fn older_bytes(&self, path: &WorkspacePath, side: Option<&Side>) -> Result<Option<u64>> {
        self.length(&self.older_place, path, side)
    }

    /// Returns the length of the newer side in bytes. Returns `None` if there is no such side.
    pub(super) fn newer_bytes(&self, path: &WorkspacePath, side: Option<&Side>) -> Result<Option<u64>> {
        self.length(&self.newer_place, path, side)
    }

    /// Returns whether either side begins with bytes that are not text.
    pub(super) fn begins_binary(&self, path: &WorkspacePath, old: Option<&Side>, new: Option<&Side>) -> Result<bool> {
        let older = self.beginning(&self.older_place, path, old)?;
        Ok(is_binary(&older) || is_binary(&self.beginning(&self.newer_place, path, new)?))
    }

    fn beginning(&self, place: &Place<'_>, path: &WorkspacePath, side: Option<&Side>) -> Result<Vec<u8>> {
        let (Some(side), Some(content)) = (side, side.and_then(Side::content)) else { return Ok(Vec::new()) };
        match (place, &self.store) {
            (Place::Disk(root), _) => beginning_on_disk(root, path, side),
            (_, Some(stored)) => {
                let mut beginning = Vec::new();
                // Refusing the second piece stops the reading.
                let mut take = |piece: &[u8]| {
                    if !beginning.is_empty() {
                        return Err(std::io::Error::other("enough was read"));
                    }
                    beginning.extend_from_slice(&piece[..piece.len().min(BEGINNING_BYTES)]);
                    Ok(())
                };
                drop(stored.store.copy_content(&content, &mut take)?);
                Ok(beginning)
            }
            (_, None) => Ok(Vec::new()),
        }
    }

    fn length(&self, place: &Place<'_>, path: &WorkspacePath, side: Option<&Side>) -> Result<Option<u64>> {
        let Some(content) = side.and_then(Side::content) else { return Ok(None) };
        match (place, &self.store) {
            (Place::Disk(root), _) => length_on_disk(root, path),
            (_, Some(stored)) => stored.store.content_size(&stored.reader, &content).map(Some),
            (_, None) => Ok(None),
        }
    }

    fn read(&self, place: &Place<'_>, path: &WorkspacePath, side: Option<&Side>, most: u64) -> Result<Option<Vec<u8>>> {
        let (Some(side), Some(content)) = (side, side.and_then(Side::content)) else { return Ok(Some(Vec::new())) };
        match place {
            Place::Stored => self.stored_content(&content, most),
            Place::Pack(pack) => {
                let back = pack.read_back(&content).or_fail("read back", "the new pack")?;
                back.map_or_else(|| self.stored_content(&content, most), |bytes| Ok(Some(bytes)))
            }
            Place::Disk(root) => read_on_disk(root, path, side, most),
        }
    }

    /// Returns the number of lines of a new file, if they were counted when it was put into the pack. The inner `None`
    /// means that the file is not text.
    fn counted(&self, side: Option<&Side>) -> Option<Option<u64>> {
        match (&self.newer_place, side.and_then(Side::content)) {
            (Place::Pack(pack), Some(content)) => pack.lines_of(&content),
            _ => None,
        }
    }

    fn stored_content(&self, content: &ContentId, most: u64) -> Result<Option<Vec<u8>>> {
        if let Some(new) = self.contents.and_then(|contents| contents.get(content)) {
            return Ok((new.len() as u64 <= most).then(|| new.clone()));
        }
        self.store.as_ref().map_or(Ok(Some(Vec::new())), |stored| stored.content(content, most))
    }
}

/// Reads the current content of a path through directory handles, never through a symlink. An entry that vanished in
/// the meantime is empty.
fn read_on_disk(root: &Path, path: &WorkspacePath, side: &Side, most: u64) -> Result<Option<Vec<u8>>> {
    let bytes = read_at_most(root, path, side, most.saturating_add(1))?;
    Ok((bytes.len() as u64 <= most || matches!(side, Side::Symlink { .. })).then_some(bytes))
}

fn beginning_on_disk(root: &Path, path: &WorkspacePath, side: &Side) -> Result<Vec<u8>> {
    read_at_most(root, path, side, BEGINNING_BYTES as u64)
}

fn read_at_most(root: &Path, path: &WorkspacePath, side: &Side, most: u64) -> Result<Vec<u8>> {
    let read = || -> std::io::Result<Vec<u8>> {
        let directory = Dir::open_parent(root, path)?;
        if matches!(side, Side::Symlink { .. }) {
            return directory.read_link(path.name());
        }
        let mut bytes = Vec::new();
        directory.open_file(path.name())?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    match read() {
        Err(error) if is_elsewhere(&error) => Ok(Vec::new()),
        result => result.or_fail("read", root.join(path.as_bstr().to_string())),
    }
}

/// Returns the current length of a path's content. Returns `None` if the path vanished in the meantime.
fn length_on_disk(root: &Path, path: &WorkspacePath) -> Result<Option<u64>> {
    match Dir::open_parent(root, path).and_then(|directory| directory.try_stamp_at(path.name())) {
        Err(error) if is_elsewhere(&error) => Ok(None),
        found => Ok(found.or_fail("read", root.join(path.as_bstr().to_string()))?.map(|stamp| stamp.size)),
    }
}

/// Returns whether the error means that the path was removed or replaced since it was scanned.
fn is_elsewhere(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let gone = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::INVAL];
    error.raw_os_error().is_some_and(|code| gone.contains(&Errno::from_raw_os_error(code)))
}

/// Fills in the line counts and the binary flag of every change.
pub(crate) fn count_lines(changes: &mut [Change], source: &LineSource<'_>) -> Result<()> {
    if changes.len() <= SHARE {
        return count_share(changes, source);
    }
    let shares: Vec<_> = changes.chunks_mut(SHARE).map(|share| (share, source.again())).collect();
    threads::shared(|| shares.into_par_iter().try_for_each(|(share, source)| count_share(share, &source)))
}

fn count_share(changes: &mut [Change], source: &LineSource<'_>) -> Result<()> {
    for change in changes {
        if change.is_directory()
            || change.old.and_then(|side| side.content()) == change.new.and_then(|side| side.content())
        {
            continue;
        }
        if change.old.is_none()
            && let Some(counted) = source.counted(change.new.as_ref())
        {
            change.binary = counted.is_none();
            change.insertions = counted.unwrap_or(0);
            continue;
        }
        let old = source.older(&change.path, change.old.as_ref(), MAX_TEXT_BYTES)?;
        let new = source.newer(&change.path, change.new.as_ref(), MAX_TEXT_BYTES)?;
        match (old, new) {
            (Some(old), Some(new)) if !is_binary(&old) && !is_binary(&new) => {
                (change.insertions, change.deletions) = differing_lines(&old, &new);
            }
            _ => change.binary = true,
        }
    }
    Ok(())
}

fn differing_lines(old: &[u8], new: &[u8]) -> (u64, u64) {
    if old.is_empty() || new.is_empty() {
        return (line_count(new), line_count(old));
    }
    let input = InternedInput::new(byte_lines(old), byte_lines(new));
    let diff = Diff::compute(Algorithm::Histogram, &input);
    (u64::from(diff.count_additions()), u64::from(diff.count_removals()))
}
