//! Where an operation has the time from.

use jiff::Timestamp;

/// The time, or how to learn it: an operation that waits for another process asks when it is let in.
pub trait Clock {
    /// The time.
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
