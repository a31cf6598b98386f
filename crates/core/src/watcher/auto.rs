//! Decides when a watcher takes a checkpoint by itself: when files changed and then stayed quiet.

use std::time::{Duration, Instant};

/// Changes that go on are saved this long after the first of them.
const AT_THE_LATEST: Duration = Duration::from_secs(30);

/// Takes the checkpoints of a watcher.
pub trait AutoSaver: Send + Sync {
    /// Takes a checkpoint if something changed.
    fn save(&self) -> AutoOutcome;
}

/// The outcome of an attempt to take a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AutoOutcome {
    /// It was taken, or there was nothing to save.
    Done,
    /// This is not the moment: an agent is working, and its hooks take the checkpoints.
    Later,
    /// It could not be taken.
    Failed(String),
}

/// The moments of the changes that are not saved yet.
#[derive(Debug)]
pub(super) struct Schedule {
    quiet_for: Duration,
    first: Option<Instant>,
    last: Option<Instant>,
    is_saving: bool,
}

impl Schedule {
    pub(super) fn new(quiet_for: Duration) -> Self {
        Self { quiet_for, first: None, last: None, is_saving: false }
    }

    /// Notes a change.
    pub(super) fn changed(&mut self, now: Instant) {
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    /// Forgets the changes so far: another checkpoint holds them.
    pub(super) fn forget(&mut self) {
        (self.first, self.last) = (None, None);
    }

    /// Returns the moment when a checkpoint is due. Returns `None` while nothing changed, and while one is being taken.
    pub(super) fn due(&self) -> Option<Instant> {
        let (first, last) = (self.first?, self.last?);
        (!self.is_saving).then(|| (last + self.quiet_for).min(first + AT_THE_LATEST))
    }

    /// Begins a checkpoint of the changes so far.
    pub(super) fn begin(&mut self) {
        self.forget();
        self.is_saving = true;
    }

    /// Ends it. Changes that were not saved become due again.
    pub(super) fn end(&mut self, outcome: &AutoOutcome, now: Instant) {
        self.is_saving = false;
        if *outcome != AutoOutcome::Done {
            // A full disk is not tried again at once.
            self.changed(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_is_due_after_quiet_and_at_the_latest_after_half_a_minute() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut schedule = Schedule::new(Duration::from_secs(2));
        assert_eq!(schedule.due(), None);
        schedule.changed(at(0));
        assert_eq!(schedule.due(), Some(at(2)));
        schedule.changed(at(1));
        assert_eq!(schedule.due(), Some(at(3)));
        schedule.changed(at(29));
        assert_eq!(schedule.due(), Some(at(30)));
        schedule.begin();
        schedule.changed(at(31));
        assert_eq!(schedule.due(), None, "one at a time");
        schedule.end(&AutoOutcome::Done, at(32));
        assert_eq!(schedule.due(), Some(at(33)));
        schedule.begin();
        schedule.end(&AutoOutcome::Later, at(40));
        assert_eq!(schedule.due(), Some(at(42)), "what was not saved is due again");
        schedule.forget();
        assert_eq!(schedule.due(), None);
    }
}
