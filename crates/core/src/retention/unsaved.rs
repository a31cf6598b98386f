//! Safety checkpoints with contents that no other checkpoint has: the only copy of unsaved work.
//!
//! Only those are looked at that the policy would take. A save compares each once with a few checkpoints around it and
//! remembers the answer, so that it takes no longer when the history grows; `prune` looks at everything.

use std::collections::HashSet;

use super::plan::{Verdict, When};
use crate::{
    model::{CheckpointId, Kind, WorkspacePath},
    settings::RetentionSettings,
    store::{HeldContents, Store, Timeline, TimelineEntry, is_held_nearby},
};

/// A save compares with so many checkpoints on each side.
const NEARBY: usize = 16;

/// Contents that exist nowhere else once a checkpoint is gone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The checkpoint.
    pub id: CheckpointId,
    /// Paths whose contents only checkpoints have that go.
    pub paths: Vec<WorkspacePath>,
}

/// Makes those stay whose contents no checkpoint around them has. `known` are those of which that was found before; the new
/// ones are added. Verdicts are newest first.
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

/// The checkpoint that a safety checkpoint was taken on, and those around it, as far as they stay.
fn neighbours(verdicts: &[Verdict], position: usize, entry: &TimelineEntry) -> Vec<CheckpointId> {
    let stays = |verdict: &&Verdict| verdict.keep;
    let newer = verdicts[..position].iter().rev().filter(stays).take(NEARBY);
    let older = verdicts[position + 1..].iter().filter(stays).take(NEARBY);
    let parent = verdicts.iter().filter(|verdict| verdict.keep && Some(verdict.id) == entry.parent);
    parent.chain(older).chain(newer).map(|verdict| verdict.id).collect()
}

/// Makes those stay whose contents no checkpoint has that stays, wherever it has them. Verdicts are newest first.
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
    let mut held = held_by_staying(store, verdicts);
    for verdict in verdicts {
        if in_danger(verdict, timeline, limits, when).is_some() && !held.hold_all_of(&verdict.id) {
            verdict.spare(limits);
            held.add(&verdict.id);
        }
    }
}

/// The safety checkpoints among those that go whose contents exist nowhere else afterwards.
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

/// The checkpoint, if the policy would take it and its contents are protected.
fn in_danger<'t>(
    verdict: &Verdict,
    timeline: &'t Timeline,
    limits: &RetentionSettings,
    when: &When,
) -> Option<&'t TimelineEntry> {
    let entry = timeline.get(&verdict.id).filter(|_| !verdict.keep)?;
    when.protects_contents_of(entry, limits).then_some(entry)
}
