//! Safety checkpoints with contents that no other checkpoint has: the only copy of unsaved work.
//!
//! Only the checkpoints that the policy would delete are examined. A save compares each once with a few checkpoints
//! around it and remembers the answer, so that it does not take longer as the history grows. `prune` examines
//! everything.

use std::collections::HashSet;

use super::plan::{Verdict, When};
use crate::{
    model::{CheckpointId, Kind, WorkspacePath},
    settings::RetentionSettings,
    store::{HeldContents, Store, Timeline, TimelineEntry, is_held_nearby},
};

/// The number of checkpoints on each side that a save compares with.
const NEARBY: usize = 16;

/// Contents that exist nowhere else once a checkpoint is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The checkpoint.
    pub id: CheckpointId,
    /// Paths whose contents only deleted checkpoints hold.
    pub paths: Vec<WorkspacePath>,
}

/// Keeps the checkpoints whose contents no checkpoint around them holds. `known` has the checkpoints for which that was
/// found before. New ones are added. Verdicts are newest first.
pub(super) fn spare_by_neighbours(
    store: &Store,
    timeline: &Timeline,
    verdicts: &mut [Verdict],
    limits: &RetentionSettings,
    when: &When,
    known: &mut HashSet<CheckpointId>,
) {
    let mut spared = HashSet::new();
    for position in 0..verdicts.len() {
        let Some(entry) = in_danger(&verdicts[position], timeline, limits, when) else { continue };
        if known.contains(&entry.id) || !is_held_nearby(store, &entry.id, &neighbours(verdicts, position, entry)) {
            verdicts[position].spare(limits);
            spared.insert(entry.id);
        }
    }
    *known = spared;
}

/// Returns the checkpoint that a safety checkpoint was taken on, and the checkpoints around it, without those that are
/// deleted. Older safety checkpoints do not count: their protection ends earlier.
fn neighbours(verdicts: &[Verdict], position: usize, entry: &TimelineEntry) -> Vec<CheckpointId> {
    let stays = |verdict: &&Verdict| verdict.keep;
    let newer = verdicts[..position].iter().rev().filter(stays).take(NEARBY);
    let is_other_kind = |verdict: &&Verdict| verdict.keep && verdict.kind != Kind::Safety;
    let older = verdicts[position + 1..].iter().filter(is_other_kind).take(NEARBY);
    let parent = verdicts.iter().filter(is_other_kind).filter(|verdict| Some(verdict.id) == entry.parent);
    parent.chain(older).chain(newer).map(|verdict| verdict.id).collect()
}

/// Keeps the checkpoints whose contents no remaining checkpoint holds at any path. Verdicts are newest first. Older
/// safety checkpoints do not count: their protection ends earlier.
pub(super) fn spare_by_contents(
    store: &Store,
    timeline: &Timeline,
    verdicts: &mut [Verdict],
    limits: &RetentionSettings,
    when: &When,
) {
    if !verdicts.iter().any(|verdict| in_danger(verdict, timeline, limits, when).is_some()) {
        return;
    }
    let mut held = HeldContents::none(store);
    let is_other_kind = |verdict: &&Verdict| verdict.keep && verdict.kind != Kind::Safety;
    verdicts.iter().filter(is_other_kind).for_each(|verdict| held.add(&verdict.id));
    for verdict in verdicts {
        if in_danger(verdict, timeline, limits, when).is_some() && !held.hold_all_of(&verdict.id) {
            verdict.spare(limits);
        }
        if verdict.keep {
            held.add(&verdict.id);
        }
    }
}

/// Returns the safety checkpoints among the deleted ones whose contents exist nowhere else afterwards.
pub(super) fn losses(store: &Store, verdicts: &[Verdict]) -> Vec<Loss> {
    let going: Vec<&Verdict> =
        verdicts.iter().filter(|verdict| !verdict.keep && verdict.kind == Kind::Safety).collect();
    if going.is_empty() {
        return Vec::new();
    }
    let held = held_by_staying(store, verdicts);
    let loss = |verdict: &Verdict| Loss { id: verdict.id, paths: held.lacking(&verdict.id) };
    going.into_iter().map(loss).filter(|loss| !loss.paths.is_empty()).collect()
}

fn held_by_staying<'s>(store: &'s Store, verdicts: &[Verdict]) -> HeldContents<'s> {
    let mut held = HeldContents::none(store);
    verdicts.iter().filter(|verdict| verdict.keep).for_each(|verdict| held.add(&verdict.id));
    held
}

/// Returns the checkpoint, if the policy would delete it and its contents are protected.
fn in_danger<'t>(
    verdict: &Verdict,
    timeline: &'t Timeline,
    limits: &RetentionSettings,
    when: &When,
) -> Option<&'t TimelineEntry> {
    let entry = timeline.get(&verdict.id).filter(|_| !verdict.keep)?;
    when.protects_contents_of(entry, limits).then_some(entry)
}
