//! Finds the path to which a file was moved since a checkpoint.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
};

use imara_diff::sources::byte_lines;

use super::{Stretch, overlay::read_disk};
use crate::{
    error::Result,
    model::{ContentId, Node, Side, WorkspacePath},
    scan::Scan,
    store::{ObjectReader, Snapshot, Store},
    text::{MAX_TEXT_BYTES, is_binary},
};

/// The maximum number of files whose lines are compared for one moved file.
const MAX_COMPARED: usize = 1_000;

/// A file on disk to which another one may have been moved.
#[derive(Debug, Clone)]
struct RenameCandidate {
    path: WorkspacePath,
    content: ContentId,
    bytes: u64,
}

/// Returns the files on disk that a snapshot does not hold.
fn candidates(scan: &Scan, store: &Store, since: Snapshot) -> Result<Vec<RenameCandidate>> {
    let mut found = Vec::new();
    scan.root.walk(&mut |path, node| {
        if let Node::File(file) = node {
            found.push(RenameCandidate { path: path.clone(), content: file.content, bytes: file.stamp.size });
        }
    });
    let mut new = Vec::new();
    for candidate in found {
        if store.find(since, &candidate.path)?.is_none() {
            new.push(candidate);
        }
    }
    Ok(new)
}

/// The files that were moved since the changes: from their paths in the changes to their paths on disk.
pub(crate) type Moves = BTreeMap<WorkspacePath, WorkspacePath>;

/// Finds the files of these stretches that are missing at their paths and were moved elsewhere. The stretches are in
/// the order in which they are merged; `whole` is a scan of the whole workspace.
pub(crate) fn find_moves(root: &Path, store: &Store, whole: &Scan, stretches: &[Stretch]) -> Result<Moves> {
    let (mut moves, mut seen) = (Moves::new(), BTreeSet::new());
    let reader = store.reader();
    for stretch in stretches {
        let mut candidates_since = None;
        for change in &stretch.changes {
            let (true, Some(base)) = (seen.insert(change.path.clone()), change.old) else { continue };
            if base.is_directory() || whole.root.find(&change.path).is_some() {
                continue;
            }
            let candidates = match &mut candidates_since {
                Some(known) => known,
                unknown => unknown.insert(candidates(whole, store, stretch.base)?),
            };
            if let Some(to) = moved_to(root, &change.path, &base, candidates, store, &reader)? {
                moves.insert(change.path.clone(), to);
            }
        }
    }
    Ok(moves)
}

/// Returns the file among the candidates that a missing file was moved to. Git takes a file for a moved one if at least
/// half of it is the same.
fn moved_to(
    root: &Path,
    path: &WorkspacePath,
    base: &Side,
    candidates: &[RenameCandidate],
    store: &Store,
    reader: &ObjectReader,
) -> Result<Option<WorkspacePath>> {
    let Side::File { content, .. } = base else { return Ok(None) };
    let has_same_name = |candidate: &&RenameCandidate| candidate.path.name() == path.name();
    let exact: Vec<&RenameCandidate> = candidates.iter().filter(|candidate| candidate.content == *content).collect();
    if let Some(found) = exact.iter().copied().find(has_same_name).or(exact.first().copied()) {
        return Ok(Some(found.path.clone()));
    }
    let size = store.content_size(reader, content)?;
    if size == 0 || size > MAX_TEXT_BYTES {
        return Ok(None);
    }
    let before = store.content(reader, content)?;
    if is_binary(&before) {
        return Ok(None);
    }
    let is_near = |candidate: &&RenameCandidate| candidate.bytes <= size * 2 && size <= candidate.bytes * 2;
    let mut best: Option<(u64, bool, &RenameCandidate)> = None;
    for candidate in candidates.iter().filter(is_near).take(MAX_COMPARED) {
        let Some(now) = read_disk(root, &candidate.path, &candidate.content)? else { continue };
        let (kept, larger) = (kept_bytes(&before, &now), before.len().max(now.len()) as u64);
        let ranked = (kept * 1_000 / larger, has_same_name(&candidate), candidate);
        if kept * 2 >= larger && best.is_none_or(|best| (best.0, best.1) < (ranked.0, ranked.1)) {
            best = Some(ranked);
        }
    }
    Ok(best.map(|(_, _, candidate)| candidate.path.clone()))
}

/// Returns the number of bytes in lines that both texts have.
fn kept_bytes(before: &[u8], now: &[u8]) -> u64 {
    let mut lines: HashMap<&[u8], u64> = HashMap::new();
    for line in byte_lines(before) {
        *lines.entry(line).or_default() += 1;
    }
    let mut kept = 0;
    for line in byte_lines(now) {
        if let Some(left) = lines.get_mut(line).filter(|left| **left > 0) {
            *left -= 1;
            kept += line.len() as u64;
        }
    }
    kept
}
