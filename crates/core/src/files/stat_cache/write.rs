//! Writing the stat cache: what changed behind what is there, or all of it anew.

use std::{io, path::Path, sync::Arc};

use super::{
    CacheBase, HEADER_BYTES, Header, MAX_SEGMENTS, Segment, StatCache, is_settled, push_changes, record::push_record,
};
use crate::{
    disk::private::{self, Durability},
    model::{Directory, GitChanges, Node, Stamp, Summary},
};

/// So many bytes of old records are not worth writing the whole file anew.
const LITTLE_WASTE: u64 = 64 << 10;

impl StatCache {
    /// Writes what a scan saw; the ids in it must be those of the checkpoint in `base`. `known` is the cache that the
    /// scan was done with, as it still is on disk.
    pub(crate) fn write(
        path: &Path,
        root: &Directory,
        base: CacheBase,
        started: i64,
        known: Option<&Arc<Self>>,
    ) -> io::Result<()> {
        // An index that may still be written to under the same stamp is taken for another one next time.
        let index = base.index.map(|stamp| if is_settled(&stamp, started) { stamp } else { Stamp::default() });
        let base = CacheBase { index, ..base };
        if let Some(known) = known
            && known.append(path, root, &base, started)?
        {
            return Ok(());
        }
        let mut encoder = Encoder { out: Vec::new(), start: HEADER_BYTES as u64, started, keeps_places: false };
        let (root, _) = encoder.directory(root);
        let changes = encoder.changes(base.git_changes.as_ref());
        let header = header_of(&base, root, changes, vec![Segment::of(&encoder.out)]);
        private::replace(path, &[header.to_bytes(), encoder.out].concat(), Durability::Unsynced)
    }

    /// Writes the records of what changed behind the others; false where that would waste too much room.
    fn append(&self, path: &Path, root: &Directory, base: &CacheBase, started: i64) -> io::Result<bool> {
        let start = self.bytes.len() as u64;
        let mut encoder = Encoder { out: Vec::new(), start, started, keeps_places: true };
        let (root, _) = encoder.directory(root);
        let changes = match &base.git_changes {
            same if *same == self.base.git_changes => self.header.git_changes,
            other => encoder.changes(other.as_ref()),
        };
        let out = encoder.out;
        let mut header = header_of(base, root, changes, self.header.segments.clone());
        if !out.is_empty() {
            header.segments.push(Segment::of(&out));
        }
        let behind: u64 = header.segments.iter().skip(1).map(|segment| segment.length).sum();
        let is_wasteful = header.segments.first().is_none_or(|first| behind > first.length.max(LITTLE_WASTE));
        if is_wasteful || header.segments.len() > MAX_SEGMENTS {
            return Ok(false);
        }
        let Some(file) = private::open_to_change(path)? else { return Ok(false) };
        // Only what was loaded may be added to.
        if private::read_at(&file, HEADER_BYTES, 0)? != self.bytes[..HEADER_BYTES] {
            return Ok(false);
        }
        // Nothing is written where nothing changed, but the steps are the same: how many a save has must not depend on
        // whether the clock has ticked since the one before.
        let head = if header == self.header { Vec::new() } else { header.to_bytes() };
        private::write_at(&file, &out, start)?;
        // Last, so that whoever reads meanwhile finds the old records or the new ones.
        private::write_at(&file, &head, 0)?;
        Ok(true)
    }
}

fn header_of(base: &CacheBase, root: u64, git_changes: u64, segments: Vec<Segment>) -> Header {
    let CacheBase { checkpoint, mode_defaults, index, .. } = *base;
    Header { checkpoint, mode_defaults, index, root, git_changes, segments }
}

struct Encoder {
    out: Vec<u8>,
    /// Where `out` will lie in the file.
    start: u64,
    started: i64,
    /// Directories that are as they were stay where they are.
    keeps_places: bool,
}

impl Encoder {
    /// Writes git changes and says where they lie; nought where there are none.
    fn changes(&mut self, changes: Option<&GitChanges>) -> u64 {
        let Some(changes) = changes else { return 0 };
        let place = self.start + self.out.len() as u64;
        push_changes(&mut self.out, changes);
        place
    }

    /// Writes a directory behind those below it; says where its record lies, and what it comes to.
    fn directory(&mut self, directory: &Directory) -> (u64, Summary) {
        if self.keeps_places
            && let Some(place) = directory.place()
        {
            return (place, directory.summary());
        }
        let mut children = Vec::new();
        let mut below = Vec::new();
        for entry in directory.entries() {
            if let Node::Directory(child) = &entry.node {
                let (place, summary) = self.directory(child);
                children.push(place);
                below.push(summary);
            }
        }
        let mut below = below.into_iter();
        let of_child = |_: &Directory| below.next().unwrap_or_default();
        let summary = Summary::of(directory.entries(), of_child);
        let place = self.start + self.out.len() as u64;
        push_record(&mut self.out, directory, &summary, &children, self.started);
        (place, summary)
    }
}
