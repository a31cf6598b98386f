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

/// A checkpoint's time is corrected if the wall clock is behind the boot-time clock by more than this.
const CORRECTED_FROM: Duration = Duration::from_secs(3_600);

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
    /// It was set back since the boot.
    SetBack {
        /// The difference.
        by: Duration,
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
            Self::SetBack { by } => write!(f, "the clock was set back by {} since this machine was started", days(*by)),
            Self::Ahead { by } => write!(f, "the clock jumped ahead by {} since this machine was started", days(*by)),
        }
    }
}

fn days(by: Duration) -> String {
    let days = by.as_secs() / 86_400;
    format!("{days} {}", if days == 1 { "day" } else { "days" })
}

/// Returns why the clock is not to be trusted. `noted` has the readings of both clocks from when the store was first
/// written in this boot.
pub(super) fn doubt(
    timeline: &Timeline,
    now: Timestamp,
    noted: Option<&ClockNote>,
    boot: Option<&BootTime>,
) -> Option<ClockDoubt> {
    let (latest, checkpoint) = timeline.latest()?;
    if latest > now.as_millisecond() {
        let time = Timestamp::from_millisecond(latest).unwrap_or(Timestamp::MAX);
        return Some(ClockDoubt::Behind { checkpoint, time });
    }
    let ahead = ahead_of_note(now, noted, boot)?;
    let by = Duration::from_millis(ahead.unsigned_abs());
    let doubt = if ahead > 0 { ClockDoubt::Ahead { by } } else { ClockDoubt::SetBack { by } };
    (by > TOLERANCE).then_some(doubt)
}

/// Returns the time by the boot-time clock, in milliseconds since 1970, if the wall clock was set back in this boot.
pub(super) fn corrected(now: Timestamp, noted: Option<&ClockNote>, boot: Option<&BootTime>) -> Option<i64> {
    let ahead = ahead_of_note(now, noted, boot)?;
    let is_behind = ahead < 0 && Duration::from_millis(ahead.unsigned_abs()) > CORRECTED_FROM;
    is_behind.then(|| now.as_millisecond().saturating_sub(ahead))
}

/// Returns by how many milliseconds the wall clock advanced more than the boot-time clock since the note was written.
/// Returns `None` if the note is of another boot.
fn ahead_of_note(now: Timestamp, noted: Option<&ClockNote>, boot: Option<&BootTime>) -> Option<i64> {
    let (noted, boot) = (noted?, boot?);
    (noted.boot == boot.boot).then(|| booted_at(boot, now).saturating_sub(noted.booted))
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
