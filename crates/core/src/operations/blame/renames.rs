//! Finds the former path of a file that a change moved.

use std::collections::HashMap;

use imara_diff::{TokenSource, sources::byte_lines};

use crate::{
    error::Result,
    model::{Change, ChangeStatus, ContentId, Side, WorkspacePath},
    store::{ObjectReader, Store},
    text::MAX_TEXT_BYTES,
};

/// The maximum number of deleted files that are compared with a new one. Git has the same limit.
const MAX_CANDIDATES: usize = 1_000;

/// A file that a change deleted, and that may be the former version of a new file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FormerPath {
    pub(super) path: WorkspacePath,
    pub(super) content: ContentId,
}

/// Returns the deleted file that a new file was before: one with the same content, or else the most similar one of
/// which at least half is the same, by bytes of equal lines. Returns `None` if there is none.
pub(super) fn former_of(
    store: &Store,
    reader: &ObjectReader,
    changes: &[Change],
    path: &WorkspacePath,
    newer: &[u8],
    newer_id: Option<ContentId>,
) -> Result<Option<FormerPath>> {
    let deleted: Vec<FormerPath> = changes.iter().filter_map(deleted_file).collect();
    let same_name = |former: &FormerPath| former.path.name() == path.name();
    let mut same = deleted.iter().filter(|former| Some(former.content) == newer_id);
    if let Some(first) = same.next() {
        let named = std::iter::once(first).chain(same).find(|former| same_name(former));
        return Ok(Some(named.unwrap_or(first).clone()));
    }
    let lines = LineBytes::of(newer);
    let mut best: Option<(u64, bool, FormerPath)> = None;
    for former in deleted.into_iter().take(MAX_CANDIDATES) {
        let size = store.content_size(reader, &former.content)?;
        let larger = size.max(newer.len() as u64);
        let smaller = size.min(newer.len() as u64);
        // Less than half of the larger one can't be the same.
        if size > MAX_TEXT_BYTES || smaller == 0 || smaller * 2 < larger {
            continue;
        }
        let common = lines.in_common_with(&store.content(reader, &former.content)?);
        let score = common * 10_000 / larger;
        let rank = (score, same_name(&former));
        if common * 2 >= larger && best.as_ref().is_none_or(|(score, named, _)| rank > (*score, *named)) {
            best = Some((rank.0, rank.1, former));
        }
    }
    Ok(best.map(|(_, _, former)| former))
}

fn deleted_file(change: &Change) -> Option<FormerPath> {
    match (change.status, change.old) {
        (ChangeStatus::Deleted, Some(Side::File { content, .. })) => {
            Some(FormerPath { path: change.path.clone(), content })
        }
        _ => None,
    }
}

/// The lines of a text, each with its number of occurrences.
struct LineBytes<'a>(HashMap<&'a [u8], u64>);

impl<'a> LineBytes<'a> {
    fn of(text: &'a [u8]) -> Self {
        let mut lines = HashMap::new();
        for line in byte_lines(text).tokenize() {
            *lines.entry(line).or_default() += 1;
        }
        Self(lines)
    }

    /// Returns the number of bytes in lines that another text has as well.
    fn in_common_with(&self, other: &[u8]) -> u64 {
        let other = LineBytes::of(other);
        let common = self.0.iter().map(|(line, count)| {
            let there = other.0.get(line).copied().unwrap_or(0);
            line.len() as u64 * there.min(*count)
        });
        common.sum()
    }
}
