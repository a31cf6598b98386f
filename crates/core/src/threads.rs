//! Worker threads for trees, and worker threads that wait for the disk.

use std::{
    error::Error as _,
    panic,
    sync::{
        Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use rayon::ThreadPoolBuilder;

use crate::error::Result;

/// The stack size of a worker: each level of a deep tree takes a frame.
const STACK_BYTES: usize = 64 << 20;

/// The number of calls that wait for the disk at the same time: file systems batch them.
const WAITING: usize = 8;

/// Runs a function on as many workers as there are cores, each with a stack for a deep tree. The shared workers have
/// small stacks, and do not exist in a forked process. If the system provides fewer threads, fewer workers are used.
pub(crate) fn for_trees<T: Send>(act: impl FnOnce() -> T + Send) -> T {
    let mut workers = thread::available_parallelism().map_or(2, usize::from).min(8);
    while workers > 0 {
        match ThreadPoolBuilder::new().num_threads(workers).stack_size(STACK_BYTES).build() {
            Ok(pool) => return pool.install(act),
            Err(_) => workers /= 2,
        }
    }
    make_do_with_this_one();
    act()
}

/// Runs a function whose parts the process-wide workers execute. If they can't be started, this thread executes all
/// parts.
pub(crate) fn shared<T>(act: impl FnOnce() -> T) -> T {
    static ARE_THERE: OnceLock<bool> = OnceLock::new();
    let start = || match ThreadPoolBuilder::new().build_global() {
        Ok(()) => true,
        // Without a source, other code has started them already.
        Err(error) => error.source().is_none(),
    };
    if rayon::current_thread_index().is_none() && !*ARE_THERE.get_or_init(start) {
        make_do_with_this_one();
    }
    act()
}

/// Makes this thread execute alone, from here on, everything that it would share.
fn make_do_with_this_one() {
    if let Ok(pool) = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build() {
        // This thread belongs to the pool for as long as the thread runs.
        std::mem::forget(pool);
    }
}

/// Runs `other` on its own thread while this one runs `act`. The shared workers are not suitable: see [`for_trees`].
pub(crate) fn beside<A, B: Send>(act: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    let other = Mutex::new(Some(other));
    let run = || other.lock().unwrap_or_else(PoisonError::into_inner).take().map(|other| other());
    thread::scope(|scope| {
        let running = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run);
        let acted = act();
        let done = match running {
            Ok(running) => running.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)),
            // If no thread can be started, `other` runs after `act`.
            Err(_) => run(),
        };
        (acted, done.expect("it runs once"))
    })
}

/// The number of tree levels that fit on the stack of any thread.
const LEVELS_ANYWHERE: usize = 100;

/// Runs a function on a stack with room for the deepest tree, once a recursion has gone as deep as any other stack
/// allows. Each level of the recursion passes its depth, counted from the top.
pub(crate) fn with_room<T: Send>(level: usize, act: impl FnOnce() -> T + Send) -> T {
    if level == LEVELS_ANYWHERE { beside(|| (), act).1 } else { act() }
}

/// Runs a function that waits for the disk on each item, many at the same time.
pub(crate) fn wait_for_each<T: Sync>(items: &[T], act: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let work = || loop {
        match items.get(next.fetch_add(1, Ordering::Relaxed)) {
            None => return Ok(()),
            Some(item) => act(item)?,
        }
    };
    thread::scope(|scope| {
        // If no thread can be started, this one does all the work.
        let others =
            (1..WAITING.min(items.len())).filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok());
        let others: Vec<_> = others.collect();
        let own = work();
        let all =
            others.into_iter().map(|other| other.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)));
        all.fold(own, Result::and)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn both_are_done() {
        assert_eq!(beside(|| 1, || thread::current().id()).0, 1);
        assert_ne!(beside(|| 1, || thread::current().id()).1, thread::current().id());
    }

    #[test]
    fn each_item_gets_its_turn_and_a_failure_is_told() {
        let items: Vec<usize> = (0..1_000).collect();
        let seen = Mutex::new(Vec::new());
        wait_for_each(&items, |item| {
            seen.lock().unwrap().push(*item);
            Ok(())
        })
        .unwrap();
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, items);
        let failed = |bad: usize| {
            wait_for_each(&items, |item| if *item == bad { Err(Error::Internal("bad".into())) } else { Ok(()) })
        };
        assert!(items.iter().step_by(37).all(|bad| failed(*bad).is_err()));
        assert!(failed(1_000).is_ok());
    }
}
