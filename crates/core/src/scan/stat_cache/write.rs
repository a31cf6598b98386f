//! Writes the stat cache: appends what changed, or rewrites the whole file.

use std::{io, path::Path, sync::Arc};

use super::{
    CacheBase, HEADER_BYTES, Header, StatCache, is_settled, push_changes, push_framed,
    record::{WrittenChild, push_record},
};
use crate::{
    disk::private::{self, Durability},
    model::{Directory, GitChanges, Node, Stamp, Summary},
};

/// Obsolete records of up to this many bytes do not justify rewriting the file.
const LITTLE_WASTE: u64 = 64 << 10;

impl StatCache {
    /// Writes the result of a scan. The ids in it must be those of the checkpoint in `base`. `known` is the cache that
    /// the scan used; its file must be unchanged on disk.
    pub(crate) fn write(
        path: &Path,
        root: &Directory,
        base: CacheBase,
        started: i64,
        known: Option<&Arc<Self>>,
    ) -> io::Result<()> {
        // Git may still change such an index without changing its stamp. The empty stamp makes the next scan treat it
        // as a different index.
        let index = base.index.map(|stamp| if is_settled(&stamp, started) { stamp } else { Stamp::default() });
        let base = CacheBase { index, ..base };
        if let Some(known) = known
            && known.append(path, root, &base, started)?
        {
            return Ok(());
        }
        // The header is filled in at the end.
        let mut encoder = Encoder { out: vec![0; HEADER_BYTES], start: 0, started, keeps_places: false };
        let (root, _) = encoder.directory(root);
        let changes = encoder.changes(base.git_changes.as_ref());
        if known.is_some_and(|known| known.is_damaged()) {
            // Entries are missing.
            return private::remove(path);
        }
        let mut out = encoder.out;
        let length = out.len() as u64;
        out[..HEADER_BYTES].copy_from_slice(&header_of(&base, root, changes, length, length).to_bytes());
        private::replace(path, &out, Durability::Unsynced)
    }

    /// Appends the records of what changed. Returns `false` if the whole file has to be rewritten instead, for instance
    /// because obsolete records would take too much room.
    fn append(&self, path: &Path, root: &Directory, base: &CacheBase, started: i64) -> io::Result<bool> {
        let start = self.header.length;
        let mut encoder = Encoder { out: Vec::new(), start, started, keeps_places: true };
        let (root, _) = encoder.directory(root);
        let changes = match &base.git_changes {
            same if *same == self.base.git_changes => self.header.git_changes,
            other => encoder.changes(other.as_ref()),
        };
        let out = encoder.out;
        let first_length = self.header.first_length;
        let header = header_of(base, root, changes, first_length, start + out.len() as u64);
        if header.length - first_length > first_length.max(LITTLE_WASTE) {
            return Ok(false);
        }
        let Some(file) = private::open_to_change(path)? else { return Ok(false) };
        // Another process may have written the file since it was loaded. Only the loaded version may be appended to.
        if private::read_at(&file, HEADER_BYTES, 0)? != self.header_bytes {
            return Ok(false);
        }
        // If nothing changed, empty writes are made nevertheless: the number of steps of a save must not depend on
        // whether the clock has ticked since the previous one.
        let head = if header == self.header { Vec::new() } else { header.to_bytes() };
        private::write_at(&file, &out, start)?;
        // The header is written last, so that concurrent readers find either the old records or the new ones.
        private::write_at(&file, &head, 0)?;
        Ok(true)
    }
}

fn header_of(base: &CacheBase, root: u64, git_changes: u64, first_length: u64, length: u64) -> Header {
    let CacheBase { checkpoint, mode_defaults, index, .. } = *base;
    Header { checkpoint, mode_defaults, index, root, git_changes, first_length, length }
}

struct Encoder {
    out: Vec<u8>,
    /// The offset of `out` in the file.
    start: u64,
    started: i64,
    /// Set if unchanged directories keep their existing records.
    keeps_places: bool,
}

impl Encoder {
    /// Writes git changes. Returns their offset, or zero if there are none.
    fn changes(&mut self, changes: Option<&GitChanges>) -> u64 {
        let Some(changes) = changes else { return 0 };
        let place = self.start + self.out.len() as u64;
        push_framed(&mut self.out, |out| push_changes(out, changes));
        place
    }

    /// Writes the records of the directories below, then the directory's own. Returns the offset of its record, and its
    /// summary.
    fn directory(&mut self, directory: &Directory) -> WrittenChild {
        if self.keeps_places
            && let Some(place) = directory.cache_offset()
        {
            return (place, directory.summary());
        }
        let mut children = Vec::new();
        for entry in directory.entries() {
            if let Node::Directory(child) = &entry.node {
                children.push(self.directory(child));
            }
        }
        let mut below = children.iter().map(|(_, summary)| *summary);
        let of_child = |_: &Directory| below.next().unwrap_or_default();
        let summary = Summary::of(directory.entries(), of_child);
        let place = self.start + self.out.len() as u64;
        push_record(&mut self.out, directory, &summary, &children, self.started);
        (place, summary)
    }
}
