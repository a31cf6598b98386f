//! `max_bytes`: the oldest checkpoints go until the rest fits.

use std::collections::HashSet;

use super::plan::{When, protected};
use crate::{
    error::Result,
    model::{CheckpointId, Kind},
    settings::RetentionSettings,
    store::{HeldContents, PackedSizes, Store, Timeline, TimelineEntry},
};

/// The result of fitting checkpoints into a number of bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fit {
    /// The rest fits without these checkpoints, oldest first.
    Without(Vec<CheckpointId>),
    /// The checkpoints that must stay need more bytes by themselves.
    Never {
        /// The number of bytes that they need.
        needed: u64,
    },
}

/// Returns the checkpoints that have to go for the rest to fit into `max` bytes.
///
/// `unexplained` are bytes that the store has beyond what its objects account for.
pub(super) fn fit(
    store: &Store,
    timeline: &Timeline,
    limits: &RetentionSettings,
    when: &When,
    max: u64,
    unexplained: u64,
) -> Result<Fit> {
    let max = max.saturating_sub(unexplained);
    let staying = staying(store, timeline, limits, when);
    let (must_stay, may_go): (Vec<&TimelineEntry>, Vec<&TimelineEntry>) =
        timeline.entries().iter().partition(|entry| staying.contains(&entry.id));
    let mut sizes = PackedSizes::of(store)?;
    let mut needed = 0;
    for entry in must_stay {
        needed = sizes.add(&entry.id)?;
    }
    if needed > max {
        return Ok(Fit::Never { needed: needed + unexplained });
    }
    let mut first_to_stay = may_go.len();
    while first_to_stay > 0 && sizes.add(&may_go[first_to_stay - 1].id)? <= max {
        first_to_stay -= 1;
    }
    Ok(Fit::Without(may_go[..first_to_stay].iter().map(|entry| entry.id).collect()))
}

/// Returns the bytes that a store has beyond what its objects account for.
pub(super) fn unexplained_bytes(store: &Store, timeline: &Timeline) -> Result<u64> {
    let mut sizes = PackedSizes::of(store)?;
    let mut explained = 0;
    for entry in timeline.entries().iter() {
        explained = sizes.add(&entry.id)?;
    }
    Ok(store.bytes()?.saturating_sub(explained))
}

/// Returns the checkpoints that `max_bytes` may not remove.
fn staying(store: &Store, timeline: &Timeline, limits: &RetentionSettings, when: &When) -> HashSet<CheckpointId> {
    let mut staying: HashSet<CheckpointId> = protected(timeline, limits).into_keys().collect();
    let is_in_danger =
        |entry: &&TimelineEntry| !staying.contains(&entry.id) && when.protects_contents_of(entry, limits);
    if !timeline.entries().iter().any(|entry| is_in_danger(&entry)) {
        return staying;
    }
    let mut held = HeldContents::none(store);
    let stays = timeline.entries().iter().filter(|entry| staying.contains(&entry.id));
    stays.filter(|entry| entry.kind != Kind::Safety).for_each(|entry| held.add(&entry.id));
    // Newest first: older safety checkpoints do not count, since their protection ends earlier.
    for entry in timeline.entries().iter().rev().filter(|entry| entry.kind == Kind::Safety) {
        if when.protects_contents_of(entry, limits) && !held.hold_all_of(&entry.id) {
            staying.insert(entry.id);
        }
        if staying.contains(&entry.id) {
            held.add(&entry.id);
        }
    }
    staying
}
