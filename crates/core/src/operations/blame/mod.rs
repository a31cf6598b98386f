//! Finds the checkpoint that introduced each line of a file.
//!
//! The walk starts at the files on disk or at a checkpoint, and follows the parents. Each version of the file is
//! compared with the one before it: lines that the older version lacks belong to the newer one.

mod line_map;
mod renames;
mod walk;

use std::ops::RangeInclusive;

use self::{
    line_map::PendingLines,
    walk::{BlameStep, BlameWalk, Origins},
};
use crate::{
    error::{Error, Result},
    model::{Checkpoint, CheckpointId, WorkspacePath},
    store::{Store, StoredNode},
    text::{MAX_TEXT_BYTES, is_binary, line_count},
    workspace::Workspace,
};

/// The outcome of [`Workspace::blame`].
#[derive(Debug, Clone)]
pub struct Blame {
    /// The file.
    pub path: WorkspacePath,
    /// The checkpoint whose lines these are. `None` for the file on disk.
    pub at: Option<CheckpointId>,
    /// The content of the file.
    pub content: Vec<u8>,
    /// The lines that were asked for, in their order.
    pub ranges: Vec<BlameRange>,
}

/// Adjacent lines with the same origin.
#[derive(Debug, Clone)]
pub struct BlameRange {
    /// The number of the first line, from 1.
    pub start: u64,
    /// The number of lines.
    pub lines: u64,
    /// The origin of the lines. `None` for lines that are only on disk.
    pub origin: Option<LineOrigin>,
}

/// The checkpoint that introduced a line.
#[derive(Debug, Clone)]
pub struct LineOrigin {
    /// The checkpoint. Long lists of paths are omitted.
    pub checkpoint: Checkpoint,
    /// The path that the file had there.
    pub path: WorkspacePath,
    /// The prompt that the checkpoint belongs to.
    pub prompt: Option<String>,
    /// Set if the line may come from a deleted checkpoint before this one.
    pub approximate: bool,
}

impl Workspace {
    /// Returns the checkpoint that introduced each line of a file, as it is on disk or at a checkpoint.
    ///
    /// `lines` restricts the answer to these lines, counted from 1. Returns an error if the file is binary, or too large
    /// to be compared as text.
    pub fn blame(
        &self,
        path: &WorkspacePath,
        at: Option<CheckpointId>,
        lines: Option<&RangeInclusive<u64>>,
    ) -> Result<Blame> {
        let store = self.store()?;
        let content = match at {
            Some(id) => {
                let store = store.as_ref().ok_or_else(|| Error::unknown_checkpoint(&id))?;
                store.timeline()?.require(&id)?;
                stored_text(store, &id, path)?
            }
            // One byte more than is allowed: then the file counts as too large.
            None => self.read_on_disk(path, MAX_TEXT_BYTES + 1, |reason| unfit(path, reason))?,
        };
        if is_binary(&content) {
            return Err(unfit(path, "is binary or too large"));
        }
        let wanted = wanted_lines(path, &content, lines)?;
        let mut ranges = Vec::new();
        if !wanted.is_empty() {
            let pending = PendingLines::new(wanted.clone());
            let origins = match &store {
                Some(store) => BlameWalk::new(self, store)?
                    .origins(BlameStep { path: path.clone(), at, content: &content }, pending)?,
                None => Vec::new(),
            };
            ranges = ranges_of(wanted, &origins);
        }
        Ok(Blame { path: path.clone(), at, content, ranges })
    }
}

fn unfit(path: &WorkspacePath, reason: &str) -> Error {
    Error::Usage(format!("{path} {reason}: only the lines of a text file have an origin"))
}

/// Returns the content of a file at a checkpoint.
fn stored_text(store: &Store, id: &CheckpointId, path: &WorkspacePath) -> Result<Vec<u8>> {
    match store.find(store.snapshot(id)?, path)? {
        Some(StoredNode::File { content, .. }) => {
            let reader = store.reader();
            if store.content_size(&reader, &content)? > MAX_TEXT_BYTES {
                return Err(unfit(path, "is too large"));
            }
            store.content(&reader, &content)
        }
        Some(StoredNode::Directory { .. }) => Err(unfit(path, "is a directory")),
        Some(StoredNode::Symlink { .. }) => Err(unfit(path, "is a symlink")),
        None => Err(Error::UnknownPath { path: path.clone(), place: format!("checkpoint {}", id.short()) }),
    }
}

/// Returns the wanted lines, counted from 0.
fn wanted_lines(
    path: &WorkspacePath,
    content: &[u8],
    lines: Option<&RangeInclusive<u64>>,
) -> Result<std::ops::Range<u32>> {
    // A text has fewer lines than bytes, and its size is limited.
    let count = line_count(content) as u32;
    let Some(lines) = lines else { return Ok(0..count) };
    let (first, last) = (*lines.start(), *lines.end());
    if first == 0 || last < first {
        return Err(Error::Usage(format!("lines {first},{last}: write FIRST,LAST with 1 <= FIRST <= LAST")));
    }
    if first > u64::from(count) {
        return Err(Error::Usage(format!("lines {first},{last}: {path} has only {count} lines")));
    }
    Ok((first - 1) as u32..last.min(u64::from(count)) as u32)
}

/// Groups adjacent lines with the same origin.
fn ranges_of(wanted: std::ops::Range<u32>, origins: &Origins) -> Vec<BlameRange> {
    let mut by_line: Vec<Option<usize>> = vec![None; wanted.len()];
    for (index, (_, lines)) in origins.iter().enumerate() {
        for line in lines {
            by_line[(line - wanted.start) as usize] = Some(index);
        }
    }
    let mut start = u64::from(wanted.start) + 1;
    let range = |group: &[Option<usize>]| {
        let origin = group[0].map(|index| origins[index].0.clone());
        let range = BlameRange { start, lines: group.len() as u64, origin };
        start += range.lines;
        range
    };
    by_line.chunk_by(|one, next| one == next).map(range).collect()
}
