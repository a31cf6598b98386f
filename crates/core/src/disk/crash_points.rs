//! Crash points: numbered points before every step that changes something on disk.
//!
//! In a normal build a point does nothing. With the feature `crash-points` the testkit can arm one. When the running
//! process reaches it, the process dies as if killed, or the step fails with an error that the caller chose.

#[cfg(feature = "crash-points")]
pub use armed::{Outcome, Passed, arm, count, intrude, record};

/// Marks a step that is about to change something. `step` names it.
#[cfg(not(feature = "crash-points"))]
#[inline(always)]
pub(crate) fn pass(_step: &'static str) -> std::io::Result<()> {
    Ok(())
}

#[cfg(feature = "crash-points")]
pub(crate) use armed::pass;

#[cfg(feature = "crash-points")]
mod armed {
    use std::{
        io,
        sync::{
            Mutex,
            atomic::{AtomicU64, Ordering},
        },
    };

    static COUNT: AtomicU64 = AtomicU64::new(0);
    static ARMED: Mutex<Option<(u64, Outcome)>> = Mutex::new(None);
    static NAMES: Mutex<Option<Vec<Passed>>> = Mutex::new(None);

    /// The effect of an armed point.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Outcome {
        /// The process ends at once, without cleaning up.
        Die,
        /// The step fails with this error number. Later steps succeed.
        Fail(i32),
    }

    /// A point that was passed: its number, counted from 1, and its name.
    pub type Passed = (u64, &'static str);

    /// Arms the `number`-th point, counted from now on.
    pub fn arm(number: u64, outcome: Outcome) {
        COUNT.store(0, Ordering::SeqCst);
        *lock(&ARMED) = Some((number, outcome));
    }

    type Intrusion = Box<dyn FnOnce() + Send>;
    static INTRUSION: Mutex<Option<(&'static str, Intrusion)>> = Mutex::new(None);

    /// Runs `action` right before the first step of this name. Simulates another process that writes at the worst
    /// moment.
    pub fn intrude(step: &'static str, action: impl FnOnce() + Send + 'static) {
        *lock(&INTRUSION) = Some((step, Box::new(action)));
    }

    fn let_intruder_in(step: &'static str) {
        let intrusion = lock(&INTRUSION).take_if(|(wanted, _)| *wanted == step);
        if let Some((_, action)) = intrusion {
            action();
        }
    }

    /// Returns the number of points that have been passed.
    pub fn count() -> u64 {
        COUNT.load(Ordering::SeqCst)
    }

    /// Disarms, runs `action`, and returns the points that it passed.
    pub fn record<T>(action: impl FnOnce() -> T) -> (T, Vec<Passed>) {
        COUNT.store(0, Ordering::SeqCst);
        *lock(&ARMED) = None;
        *lock(&NAMES) = Some(Vec::new());
        let result = action();
        (result, lock(&NAMES).take().unwrap_or_default())
    }

    fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn pass(step: &'static str) -> io::Result<()> {
        let_intruder_in(step);
        let number = COUNT.fetch_add(1, Ordering::SeqCst) + 1;
        if let Some(names) = lock(&NAMES).as_mut() {
            names.push((number, step));
        }
        let armed = *lock(&ARMED);
        match armed {
            Some((target, outcome)) if target == number => match outcome {
                Outcome::Die => {
                    let own = rustix::process::getpid();
                    let killed = rustix::process::kill_process(own, rustix::process::Signal::KILL);
                    debug_assert!(killed.is_ok());
                    loop {
                        std::thread::park();
                    }
                }
                Outcome::Fail(code) => Err(io::Error::from_raw_os_error(code)),
            },
            _ => Ok(()),
        }
    }
}
