//! Finds the hunks of a change, and applies some of them.

use std::{collections::BTreeSet, ops::Range};

use imara_diff::{Algorithm, Diff, InternedInput, sources::byte_lines};

use super::lines::LineSource;
use crate::{
    error::Result,
    model::{Change, Hunk, Side, WorkspacePath},
    text::{MAX_TEXT_BYTES, is_binary},
};

/// The number of unchanged lines around a change.
pub(super) const CONTEXT: u32 = 3;

/// The maximum length of the line that names the section of a hunk.
const MAX_SECTION: usize = 80;

/// The lines of two texts, with the runs of changes between them.
pub(crate) struct Blocks<'t> {
    pub(super) old: Vec<&'t [u8]>,
    pub(super) new: Vec<&'t [u8]>,
    pub(super) blocks: Vec<Block>,
}

/// A run of changes with its context, as ranges of lines on both sides.
#[derive(Clone)]
pub(super) struct Block {
    pub(super) before: Range<u32>,
    pub(super) after: Range<u32>,
    pub(super) hunks: Vec<imara_diff::Hunk>,
}

impl<'t> Blocks<'t> {
    pub(crate) fn between(before: &'t [u8], after: &'t [u8]) -> Self {
        Self::with_context(before, after, CONTEXT)
    }

    /// Like [`Self::between`], with this many unchanged lines around each change.
    pub(super) fn with_context(before: &'t [u8], after: &'t [u8], context: u32) -> Self {
        let input = InternedInput::new(byte_lines(before), byte_lines(after));
        let mut diff = Diff::compute(Algorithm::Histogram, &input);
        diff.postprocess_lines(&input);
        let lengths = (input.before.len() as u32, input.after.len() as u32);
        let mut blocks: Vec<Block> = Vec::new();
        for hunk in diff.hunks() {
            match blocks.last_mut() {
                Some(block) if hunk.before.start <= block.before.end.saturating_add(context) => {
                    block.before.end = hunk.before.end.saturating_add(context).min(lengths.0);
                    block.after.end = hunk.after.end.saturating_add(context).min(lengths.1);
                    block.hunks.push(hunk);
                }
                _ => blocks.push(Block {
                    before: hunk.before.start.saturating_sub(context)
                        ..hunk.before.end.saturating_add(context).min(lengths.0),
                    after: hunk.after.start.saturating_sub(context)
                        ..hunk.after.end.saturating_add(context).min(lengths.1),
                    hunks: vec![hunk],
                }),
            }
        }
        let old = input.before.iter().map(|token| input.interner[*token]).collect();
        let new = input.after.iter().map(|token| input.interner[*token]).collect();
        Self { old, new, blocks }
    }

    /// Calls `visit` with the mark and the bytes of each line of a block.
    pub(super) fn visit(&self, block: &Block, visit: &mut impl FnMut(char, &[u8])) {
        let mut position = block.before.start;
        let mut all = |mark: char, lines: &[&[u8]]| lines.iter().for_each(|line| visit(mark, line));
        for hunk in &block.hunks {
            all(' ', &self.old[position as usize..hunk.before.start as usize]);
            all('-', &self.old[hunk.before.start as usize..hunk.before.end as usize]);
            all('+', &self.new[hunk.after.start as usize..hunk.after.end as usize]);
            position = hunk.before.end;
        }
        all(' ', &self.old[position as usize..block.before.end as usize]);
    }

    /// Returns the hunks of the file at `path`.
    pub(crate) fn hunks(&self, path: &WorkspacePath) -> Vec<Hunk> {
        let whole = self.blocks.iter().map(|block| {
            let parts = split(block).iter().map(|part| self.hunk(path, part)).collect();
            Hunk { parts, ..self.hunk(path, block) }
        });
        whole.collect()
    }

    /// Returns the changes of the hunks with these ids, whole ones and parts, and the ids that were found.
    pub(crate) fn chosen(&self, path: &WorkspacePath, ids: &BTreeSet<&str>) -> (Vec<imara_diff::Hunk>, Vec<String>) {
        let (mut changes, mut found) = (Vec::new(), Vec::new());
        for (block, hunk) in self.blocks.iter().zip(self.hunks(path)) {
            let whole = std::iter::once((block.clone(), hunk.id));
            let parts = split(block).into_iter().zip(hunk.parts.into_iter().map(|part| part.id));
            for (block, id) in whole.chain(parts).filter(|(_, id)| ids.contains(id.as_str())) {
                changes.extend(block.hunks);
                found.push(id);
            }
        }
        changes.sort_by_key(|change| (change.before.start, change.after.start));
        changes.dedup();
        (changes, found)
    }

    fn hunk(&self, path: &WorkspacePath, block: &Block) -> Hunk {
        let mut lines = Vec::new();
        let mut hasher = xxhash_rust::xxh3::Xxh3::new();
        let mut add = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        add(path.as_bytes());
        for position in [block.before.start, block.before.end, block.after.start, block.after.end] {
            add(&position.to_le_bytes());
        }
        self.visit(block, &mut |mark, line| {
            add(&[mark as u8]);
            add(line);
            let text = String::from_utf8_lossy(line.strip_suffix(b"\n").unwrap_or(line)).into_owned();
            lines.push(format!("{mark}{text}"));
            if !line.ends_with(b"\n") {
                lines.push("\\ No newline at end of file".to_owned());
            }
        });
        Hunk {
            id: format!("{:016x}", hasher.digest()),
            old_start: first_line(&block.before),
            old_lines: u64::from(block.before.end - block.before.start),
            new_start: first_line(&block.after),
            new_lines: u64::from(block.after.end - block.after.start),
            section: self.section(block),
            lines,
            parts: Vec::new(),
        }
    }

    /// Returns the nearest line before a block that begins with a letter, `_` or `$`, as git does.
    fn section(&self, block: &Block) -> String {
        let is_section =
            |line: &&&[u8]| line.first().is_some_and(|first| first.is_ascii_alphabetic() || b"_$".contains(first));
        let found = self.old[..block.before.start as usize].iter().rev().find(is_section);
        let text = found.map(|line| String::from_utf8_lossy(line).trim_end().to_owned()).unwrap_or_default();
        text.chars().take(MAX_SECTION).collect()
    }

    /// Returns the older text with only these changes applied. They are in order.
    pub(crate) fn apply(&self, changes: &[imara_diff::Hunk]) -> Vec<u8> {
        let mut text = Vec::new();
        let mut position = 0;
        for change in changes {
            text.extend(self.old[position..change.before.start as usize].concat());
            text.extend(self.new[change.after.start as usize..change.after.end as usize].concat());
            position = change.before.end as usize;
        }
        text.extend(self.old[position..].concat());
        text
    }
}

/// Splits a block into one for each change. Each unchanged line between two changes is context of both. Returns nothing
/// if the block has only one change.
fn split(block: &Block) -> Vec<Block> {
    if block.hunks.len() < 2 {
        return Vec::new();
    }
    let part = |(number, hunk): (usize, &imara_diff::Hunk)| {
        let before = number.checked_sub(1).and_then(|number| block.hunks.get(number));
        let next = block.hunks.get(number + 1);
        let start = before
            .map_or(block.before.start, |before| before.before.end)
            .max(hunk.before.start.saturating_sub(CONTEXT));
        let end = next.map_or(block.before.end, |next| next.before.start).min(hunk.before.end + CONTEXT);
        let after = hunk.after.start - (hunk.before.start - start)..hunk.after.end + (end - hunk.before.end);
        Block { before: start..end, after, hunks: vec![hunk.clone()] }
    };
    block.hunks.iter().enumerate().map(part).collect()
}

/// Returns the number of the first line of a range, from 1. An empty range is named by the line before it.
pub(super) fn first_line(range: &Range<u32>) -> u64 {
    u64::from(range.start) + u64::from(!range.is_empty())
}

/// Returns both texts of a change. Returns `None` if the change is not one of text: a directory, a symlink, only
/// permission bits, or binary contents.
pub(crate) fn texts_of(change: &Change, source: &LineSource<'_>) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
    let is_file = |side: Option<Side>| side.is_none_or(|side| matches!(side, Side::File { .. }));
    let content = |side: Option<Side>| side.and_then(|side| side.content());
    if !is_file(change.old) || !is_file(change.new) || content(change.old) == content(change.new) {
        return Ok(None);
    }
    let old = source.older(&change.path, change.old.as_ref(), MAX_TEXT_BYTES)?;
    let new = source.newer(&change.path, change.new.as_ref(), MAX_TEXT_BYTES)?;
    Ok(old.zip(new).filter(|(old, new)| !is_binary(old) && !is_binary(new)))
}

/// Fills in the hunks of every change of text.
pub(crate) fn add_hunks(changes: &mut [Change], source: &LineSource<'_>) -> Result<()> {
    for change in changes {
        if let Some((old, new)) = texts_of(change, source)? {
            change.hunks = Some(Blocks::between(&old, &new).hunks(&change.path));
        }
    }
    Ok(())
}
