//! The retention policy: a pure function of the records, the settings and the time.

use std::collections::{BTreeMap, HashMap};

use jiff::Timestamp;

use super::ClockDoubt;
use crate::{
    model::{CheckpointId, Kind},
    settings::{RetentionSettings, Settings, duration_text},
    store::{Timeline, TimelineEntry},
};

/// The verdict of retention on one checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The checkpoint.
    pub id: CheckpointId,
    /// Its kind.
    pub kind: Kind,
    /// Set if it stays.
    pub keep: bool,
    /// The reason.
    pub reason: String,
}

impl Verdict {
    /// Keeps it because of its contents.
    pub(super) fn spare(&mut self, limits: &RetentionSettings) {
        self.keep = true;
        let time = duration_text(limits.unsaved);
        self.reason = format!("no other checkpoint has all of its contents; it stays for at least {time}");
    }
}

/// The time as retention sees it.
#[derive(Debug)]
pub(super) struct When {
    pub(super) now: Timestamp,
    pub(super) doubt: Option<ClockDoubt>,
    times: HashMap<CheckpointId, i64>,
}

impl When {
    /// Creates it. `corrected` has the times of checkpoints that were taken while the clock was set back.
    pub(super) fn new(
        timeline: &Timeline,
        now: Timestamp,
        doubt: Option<ClockDoubt>,
        corrected: &BTreeMap<CheckpointId, i64>,
    ) -> Self {
        let mut latest = i64::MIN;
        let mut time = |entry: &TimelineEntry| {
            latest = latest.max(entry.time).max(corrected.get(&entry.id).copied().unwrap_or(i64::MIN));
            (entry.id, latest)
        };
        Self { now, doubt, times: timeline.entries().iter().map(&mut time).collect() }
    }

    /// Returns the time of a checkpoint. It can't be older than one that was taken before it: then the clock was set
    /// back in between.
    fn time_of(&self, entry: &TimelineEntry) -> i64 {
        self.times.get(&entry.id).copied().unwrap_or(entry.time)
    }

    /// Returns the moment before which checkpoints are older than `max_age`, in milliseconds since 1970. Returns `None`
    /// if there is no such limit, or if the clock is in doubt.
    fn oldest(&self, limits: &RetentionSettings) -> Option<i64> {
        oldest(self.now, self.doubt.as_ref(), limits)
    }

    /// Returns whether the contents of this checkpoint are protected: it is a safety checkpoint, and not older than
    /// `unsaved`.
    pub(super) fn protects_contents_of(&self, entry: &TimelineEntry, limits: &RetentionSettings) -> bool {
        let age = self.now.as_millisecond().saturating_sub(self.time_of(entry));
        let is_recent = self.doubt.is_some() || age <= limits.unsaved.as_millis() as i64;
        entry.kind == Kind::Safety && !limits.unsaved.is_zero() && is_recent
    }
}

fn oldest(now: Timestamp, doubt: Option<&ClockDoubt>, limits: &RetentionSettings) -> Option<i64> {
    let age = limits.max_age.filter(|_| doubt.is_none())?;
    Some(now.as_millisecond() - age.as_millis() as i64)
}

/// Returns how many checkpoints of a kind are kept. Returns `None` if all of them are.
fn limit_of(kind: Kind, limits: &RetentionSettings) -> Option<u64> {
    match kind {
        Kind::Manual | Kind::Feature => None,
        Kind::Automatic => Some(limits.automatic),
        Kind::Session => Some(limits.session),
        Kind::Turn => Some(limits.turn),
        Kind::Step => Some(limits.step),
        Kind::Thread => limits.thread,
        Kind::Safety => Some(limits.safety),
    }
}

/// Returns whether checkpoints of this kind count towards `max_checkpoints`.
fn counts_together(kind: Kind) -> bool {
    matches!(kind, Kind::Step | Kind::Automatic | Kind::Session | Kind::Safety)
}

/// Returns whether the policy keeps every checkpoint, as far as their numbers and the lowest times of each kind tell.
/// `false` is inconclusive: [`plan`] decides. So a save examines checkpoints one by one only if one may have to go.
pub(super) fn keeps_all(timeline: &Timeline, settings: &Settings, now: Timestamp, doubt: Option<&ClockDoubt>) -> bool {
    let limits = &settings.retention;
    let oldest = oldest(now, doubt, limits);
    let mut together = 0;
    let is_within = |kind: Kind| {
        let Some(limit) = limit_of(kind, limits) else { return true };
        let found = timeline.count_of(kind);
        together += if counts_together(kind) { found.count } else { 0 };
        found.count <= limit && oldest.is_none_or(|oldest| found.oldest >= oldest)
    };
    Kind::ALL.into_iter().all(is_within) && together <= settings.checkpoints.max_checkpoints
}

/// Returns the checkpoints that retention never deletes, with the reasons.
pub(super) fn protected(timeline: &Timeline, limits: &RetentionSettings) -> HashMap<CheckpointId, &'static str> {
    let mut found = HashMap::new();
    let threads = timeline.entries().iter().rev().filter(|entry| entry.kind == Kind::Thread);
    let kept = limits.thread.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
    for entry in threads.take(kept) {
        found.insert(entry.id, "thread checkpoints are kept until their thread is deleted");
    }
    let latest_safety = timeline.entries().iter().rev().find(|entry| entry.kind == Kind::Safety);
    for entry in timeline.entries().iter() {
        let reason = match entry.kind {
            Kind::Manual => Some("manual checkpoints are kept until they are deleted"),
            Kind::Feature => Some("feature checkpoints are kept forever"),
            _ if entry.pinned => Some("it is pinned"),
            _ => None,
        };
        if let Some(reason) = reason {
            found.insert(entry.id, reason);
        }
    }
    if let Some(current) = timeline.current() {
        found.insert(current.id, "the workspace stands on it");
    }
    if let Some(safety) = latest_safety {
        found.insert(safety.id, "undo needs it");
    }
    // Not always the same one: bytes that were written during a restore become a later safety checkpoint.
    if let Some(safety) = timeline.operations.restores().filter_map(|restored| restored.safety).next_back() {
        found.insert(safety, "undo needs it");
    }
    found
}

/// Returns the verdict on every checkpoint, newest first. Contents are not examined yet.
pub(super) fn plan(timeline: &Timeline, settings: &Settings, when: &When) -> Vec<Verdict> {
    let protected = protected(timeline, &settings.retention);
    let limits = &settings.retention;
    let oldest = when.oldest(limits);
    let mut of_kind: HashMap<Kind, u64> = HashMap::new();
    let mut together = 0;
    let mut verdicts = Vec::with_capacity(timeline.entries().len());
    for entry in timeline.entries().iter().rev() {
        let limit = limit_of(entry.kind, limits);
        let count = of_kind.entry(entry.kind).or_default();
        *count += 1;
        let is_over_kind = limit.is_some_and(|limit| *count > limit);
        let is_over_sum = counts_together(entry.kind) && !is_over_kind && {
            together += 1;
            together > settings.checkpoints.max_checkpoints
        };
        let is_old = oldest.is_some_and(|oldest| when.time_of(entry) < oldest);
        let verdict = |keep: bool, reason: String| Verdict { id: entry.id, kind: entry.kind, keep, reason };
        verdicts.push(if let Some(reason) = protected.get(&entry.id) {
            verdict(true, (*reason).to_owned())
        } else if is_over_kind {
            verdict(false, format!("only the last {} of kind {} are kept", limit.unwrap_or_default(), entry.kind))
        } else if is_over_sum {
            verdict(false, format!("max_checkpoints is {}", settings.checkpoints.max_checkpoints))
        } else if is_old {
            verdict(false, "it is older than max_age".into())
        } else {
            verdict(true, format!("one of the last of kind {}", entry.kind))
        });
    }
    verdicts
}
