//! Counting the lines that came and went.

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

/// Where the contents of both sides of a change are read.
pub(crate) struct LineSource<'a> {
    store: Option<Stored<'a>>,
    older_place: Place<'a>,
    newer_place: Place<'a>,
}

/// A store, and what was read from it last: who counts lines often prints them next.
struct Stored<'a> {
    store: &'a Store,
    reader: ObjectReader,
    kept: RefCell<HashMap<ContentId, Vec<u8>>>,
    kept_bytes: Cell<usize>,
}

/// No more than this is kept of what was read.
const KEPT_BYTES: usize = 1 << 20;

impl<'a> Stored<'a> {
    fn of(store: &'a Store) -> Self {
        Self { store, reader: store.reader(), kept: RefCell::default(), kept_bytes: Cell::new(0) }
    }

    /// The bytes of a content; none where they are more than `most`.
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

/// So much of a large file tells whether it is text.
const BEGINNING_BYTES: usize = 16 << 10;

/// So many changes are worth another worker.
const SHARE: usize = 16;

/// Where one side lies.
#[derive(Clone, Copy)]
enum Place<'a> {
    Stored,
    Pack(&'a PackWriter),
    Disk(&'a Path),
}

impl<'a> LineSource<'a> {
    pub(crate) fn stored(store: &'a Store) -> Self {
        Self { store: Some(Stored::of(store)), older_place: Place::Stored, newer_place: Place::Stored }
    }

    pub(crate) fn in_pack(store: &'a Store, pack: &'a PackWriter) -> Self {
        Self { store: Some(Stored::of(store)), older_place: Place::Stored, newer_place: Place::Pack(pack) }
    }

    pub(crate) fn on_disk(store: Option<&'a Store>, root: &'a Path) -> Self {
        let store = store.map(Stored::of);
        Self { store, older_place: Place::Stored, newer_place: Place::Disk(root) }
    }

    /// For a restore: what is on disk goes, what is stored comes.
    pub(crate) fn from_disk_to_store(store: &'a Store, root: &'a Path) -> Self {
        Self { store: Some(Stored::of(store)), older_place: Place::Disk(root), newer_place: Place::Stored }
    }

    /// The same, for another worker.
    fn again(&self) -> Self {
        let store = self.store.as_ref().map(|stored| Stored::of(stored.store));
        Self { store, older_place: self.older_place, newer_place: self.newer_place }
    }

    /// The older side's bytes; none where they are more than `most`.
    pub(super) fn older(&self, path: &WorkspacePath, side: Option<&Side>, most: u64) -> Result<Option<Vec<u8>>> {
        self.read(&self.older_place, path, side, most)
    }

    /// The newer side's bytes; none where they are more than `most`.
    pub(super) fn newer(&self, path: &WorkspacePath, side: Option<&Side>, most: u64) -> Result<Option<Vec<u8>>> {
        self.read(&self.newer_place, path, side, most)
    }

    /// The length of the older side in bytes; none where there is no such side.
    pub(super) fn older_bytes(&self, path: &WorkspacePath, side: Option<&Side>) -> Result<Option<u64>> {
        self.length(&self.older_place, path, side)
    }

    /// The length of the newer side in bytes; none where there is no such side.
    pub(super) fn newer_bytes(&self, path: &WorkspacePath, side: Option<&Side>) -> Result<Option<u64>> {
        self.length(&self.newer_place, path, side)
    }

    /// Returns `true` if either side begins with bytes that are no text.
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
                // Refusing the second piece ends the reading.
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

    /// The lines of a new file, where they were counted when it was put into the pack; none for one that is no text.
    fn counted(&self, side: Option<&Side>) -> Option<Option<u64>> {
        match (&self.newer_place, side.and_then(Side::content)) {
            (Place::Pack(pack), Some(content)) => pack.lines_of(&content),
            _ => None,
        }
    }

    fn stored_content(&self, content: &ContentId, most: u64) -> Result<Option<Vec<u8>>> {
        self.store.as_ref().map_or(Ok(Some(Vec::new())), |stored| stored.content(content, most))
    }
}

/// Reads what a path holds now, by handles, never through a symlink. What vanished in between is empty.
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

/// The length of what a path holds now; none where it vanished in between.
fn length_on_disk(root: &Path, path: &WorkspacePath) -> Result<Option<u64>> {
    match Dir::open_parent(root, path).and_then(|directory| directory.try_stamp_at(path.name())) {
        Err(error) if is_elsewhere(&error) => Ok(None),
        found => Ok(found.or_fail("read", root.join(path.as_bstr().to_string()))?.map(|stamp| stamp.size)),
    }
}

/// Did somebody take the path away since it was scanned?
fn is_elsewhere(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let gone = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::INVAL];
    error.raw_os_error().is_some_and(|code| gone.contains(&Errno::from_raw_os_error(code)))
}

/// Fills in lines and the binary flag of every change.
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
