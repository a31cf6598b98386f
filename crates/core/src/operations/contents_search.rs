//! Finds the checkpoints that added or removed a text in a file. Reads only the files that a checkpoint changed.

use std::{cell::RefCell, collections::HashMap};

use memchr::memmem::Finder;

use crate::{
    error::Result,
    model::{Change, CheckpointId, ContentId, Scope, Side},
    operations::diff::Checkpoints,
    store::{Store, Timeline},
};

/// A search for one text in the contents of files.
pub(crate) struct ContentsSearch<'s> {
    store: &'s Store,
    checkpoints: Checkpoints<'s>,
    scope: Scope,
    finder: Finder<'s>,
    /// The number of occurrences in the contents that were read.
    counts: RefCell<HashMap<ContentId, u64>>,
}

impl<'s> ContentsSearch<'s> {
    /// Starts a search within a scope.
    pub(crate) fn new(store: &'s Store, timeline: Timeline, text: &'s str, scope: Scope) -> Self {
        let checkpoints = Checkpoints::on(store, timeline);
        Self { store, checkpoints, scope, finder: Finder::new(text.as_bytes()), counts: RefCell::default() }
    }

    /// Returns whether a checkpoint changed how often a file contains the text.
    pub(crate) fn finds(&self, id: &CheckpointId) -> Result<bool> {
        let (_, changes) = self.checkpoints.changes_of(&self.checkpoints.get(id)?, &self.scope)?;
        for change in &changes {
            if self.is_found_in(change)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn is_found_in(&self, change: &Change) -> Result<bool> {
        let contents = [&change.old, &change.new].map(|side| side.as_ref().and_then(Side::content));
        if contents[0] == contents[1] {
            return Ok(false);
        }
        Ok(self.count(contents[0])? != self.count(contents[1])?)
    }

    fn count(&self, content: Option<ContentId>) -> Result<u64> {
        let Some(content) = content else { return Ok(0) };
        if let Some(count) = self.counts.borrow().get(&content) {
            return Ok(*count);
        }
        let mut counter = Counter { finder: &self.finder, end: Vec::new(), count: 0 };
        let read = self.store.copy_content(&content, &mut |bytes| {
            counter.take(bytes);
            Ok(())
        })?;
        debug_assert!(read.is_ok(), "counting does not fail");
        self.counts.borrow_mut().insert(content, counter.count);
        Ok(counter.count)
    }
}

/// Counts a text in contents that come in pieces.
struct Counter<'f> {
    finder: &'f Finder<'f>,
    /// The last bytes of the pieces so far, shorter than the text.
    end: Vec<u8>,
    count: u64,
}

impl Counter<'_> {
    fn take(&mut self, bytes: &[u8]) {
        let overlap = self.finder.needle().len().saturating_sub(1);
        let (seam, rest) = bytes.split_at(overlap.min(bytes.len()));
        // Only what spans the border between two pieces is new in the seam.
        let border = self.end.len();
        self.end.extend_from_slice(seam);
        let spans = |at: &usize| *at < border && at + self.finder.needle().len() > border;
        self.count += self.finder.find_iter(&self.end).filter(spans).count() as u64;
        self.count += self.finder.find_iter(bytes).count() as u64;
        self.end.extend_from_slice(rest);
        self.end.drain(..self.end.len().saturating_sub(overlap));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_are_counted_across_pieces() {
        let finder = Finder::new("abc");
        for size in 1..12 {
            let mut counter = Counter { finder: &finder, end: Vec::new(), count: 0 };
            b"xabcabc-ab-cabcx".chunks(size).for_each(|piece| counter.take(piece));
            assert_eq!(counter.count, 3, "pieces of {size}");
        }
    }
}
