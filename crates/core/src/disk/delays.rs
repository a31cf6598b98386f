//! Random pauses of a watcher's thread, so that tests meet every order of events. Nothing pauses unless the feature
//! `crash-points` is on and a test asks for it.

#[cfg(feature = "crash-points")]
mod enabled {
    use std::{
        sync::atomic::{AtomicU64, Ordering},
        time::Duration,
    };

    static MAX_MICROSECONDS: AtomicU64 = AtomicU64::new(0);
    static STATE: AtomicU64 = AtomicU64::new(0x9e37_79b9_7f4a_7c15);

    /// Lets every further call of [`pass`] pause for up to this long.
    pub fn set(longest: Duration) {
        MAX_MICROSECONDS.store(longest.as_micros() as u64, Ordering::Relaxed);
    }

    pub(crate) fn pass() {
        let most = MAX_MICROSECONDS.load(Ordering::Relaxed);
        if most > 0 {
            let number = STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
            let mixed = (number ^ (number >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 20;
            std::thread::sleep(Duration::from_micros(mixed % most));
        }
    }
}

#[cfg(feature = "crash-points")]
pub use enabled::set;

/// A place where a watcher may pause.
pub(crate) fn pass() {
    #[cfg(feature = "crash-points")]
    enabled::pass();
}
