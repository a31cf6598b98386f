//! The sources of time for operations.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;

use crate::disk;

/// The time, or a way to read it: an operation that waits for another process reads the time once it has the lock.
pub trait Clock {
    /// Returns the time.
    fn now(&self) -> Timestamp;
}

impl Clock for Timestamp {
    fn now(&self) -> Timestamp {
        *self
    }
}

impl<F: Fn() -> Timestamp> Clock for F {
    fn now(&self) -> Timestamp {
        self()
    }
}

/// A reading of the boot-time clock, which a change of the wall clock does not move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootTime {
    /// The id of this boot.
    pub boot: String,
    /// The time since then, sleep included.
    pub since_boot: Duration,
}

type ReadBootTime = dyn Fn() -> Option<BootTime> + Send + Sync;

/// The boot-time clock of a process. By default there is none, and the wall clock is compared with checkpoints alone.
#[derive(Clone, Default)]
pub struct BootClock(Option<Arc<ReadBootTime>>);

impl BootClock {
    /// Returns the clock of this machine.
    pub fn of_system() -> Self {
        Self::new(|| disk::time_since_boot().map(|(boot, since_boot)| BootTime { boot, since_boot }))
    }

    /// Returns a clock that `read` reads.
    pub fn new(read: impl Fn() -> Option<BootTime> + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(read)))
    }

    /// Reads the clock. Returns `None` if the process has no such clock.
    pub(crate) fn read(&self) -> Option<BootTime> {
        self.0.as_ref().and_then(|read| read())
    }
}

impl std::fmt::Debug for BootClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("BootClock").field(&self.0.is_some()).finish()
    }
}
