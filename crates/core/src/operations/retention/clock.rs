//! Reasons not to trust the clock: a wrong one would make every checkpoint look old.

use std::{fmt, time::Duration};

use jiff::Timestamp;

use crate::{
    clock::BootTime,
    model::CheckpointId,
    store::{ClockNote, Timeline},
};

/// The wall clock may run ahead of the boot-time clock by this much: it is adjusted now and then.
const TOLERANCE: Duration = Duration::from_secs(86_400);

/// A reason not to trust the clock with the age of checkpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClockDoubt {
    /// It is earlier than the newest checkpoint.
    Behind {
        /// The newest checkpoint.
        checkpoint: CheckpointId,
        /// The time of that checkpoint.
        time: Timestamp,
    },
    /// It advanced since the boot by more than the time that has passed.
    Ahead {
        /// The difference.
        by: Duration,
    },
}

impl fmt::Display for ClockDoubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Behind { checkpoint, time } => {
                let id = checkpoint.short();
                write!(f, "the clock is earlier than the newest checkpoint {id} ({time:.0})")
            }
            Self::Ahead { by } => {
                let days = by.as_secs() / 86_400;
                let unit = if days == 1 { "day" } else { "days" };
                write!(f, "the clock jumped ahead by {days} {unit} since this machine was started")
            }
        }
    }
}

/// Returns why the clock is not to be trusted. `noted` has the readings of both clocks from when the store was first
/// written in this boot.
pub(super) fn doubt(
    timeline: &Timeline,
    now: Timestamp,
    noted: Option<&ClockNote>,
    boot: Option<&BootTime>,
) -> Option<ClockDoubt> {
    let newest = timeline.entries().iter().max_by_key(|entry| entry.time)?;
    if newest.time > now.as_millisecond() {
        let time = Timestamp::from_millisecond(newest.time).unwrap_or(Timestamp::MAX);
        return Some(ClockDoubt::Behind { checkpoint: newest.id, time });
    }
    let (noted, boot) = (noted?, boot?);
    let ahead = booted_at(boot, now).saturating_sub(noted.booted);
    let by = Duration::from_millis(u64::try_from(ahead).ok()?);
    (noted.boot == boot.boot && by > TOLERANCE).then_some(ClockDoubt::Ahead { by })
}

/// Returns the note for this boot: the existing one, or a new one.
pub(super) fn note(noted: Option<ClockNote>, now: Timestamp, boot: Option<&BootTime>) -> Option<ClockNote> {
    let Some(boot) = boot else { return noted };
    match noted {
        Some(noted) if noted.boot == boot.boot => Some(noted),
        _ => Some(ClockNote { boot: boot.boot.clone(), booted: booted_at(boot, now) }),
    }
}

/// Returns the time of the boot by the wall clock, in milliseconds since 1970.
fn booted_at(boot: &BootTime, now: Timestamp) -> i64 {
    now.as_millisecond().saturating_sub(i64::try_from(boot.since_boot.as_millis()).unwrap_or(i64::MAX))
}
