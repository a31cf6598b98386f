//! Workers for trees, and workers that wait for the disk.

use std::{
    panic,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use crate::error::{Error, Result};

/// A worker's stack: each level of a deep tree takes a frame.
const STACK_BYTES: usize = 64 << 20;

/// So many calls that wait for the disk are made side by side: file systems gather them.
const WAITING: usize = 8;

/// As many workers as there are cores, each with room for a deep tree. The shared ones have small stacks, and are gone in
/// a process that was forked off.
pub(crate) fn for_trees() -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(std::thread::available_parallelism().map_or(2, usize::from).min(8))
        .stack_size(STACK_BYTES)
        .build()
        .map_err(|error| Error::Internal(format!("can't start threads: {error}")))
}

/// Does `other` on a thread of its own while this one acts. The shared workers would not do: see [`for_trees`].
pub(crate) fn beside<A, B: Send>(act: impl FnOnce() -> A, other: impl FnOnce() -> B + Send) -> (A, B) {
    let other = Mutex::new(Some(other));
    let run = || other.lock().unwrap_or_else(PoisonError::into_inner).take().map(|other| other());
    thread::scope(|scope| {
        let running = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, run);
        let acted = act();
        let done = match running {
            Ok(running) => running.join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)),
            // Where no thread can be had, one thing is done after the other.
            Err(_) => run(),
        };
        (acted, done.expect("it runs once"))
    })
}

/// Does something that waits for the disk to each item, many side by side.
pub(crate) fn wait_for_each<T: Sync>(items: &[T], act: impl Fn(&T) -> Result<()> + Sync) -> Result<()> {
    let next = AtomicUsize::new(0);
    let work = || loop {
        match items.get(next.fetch_add(1, Ordering::Relaxed)) {
            None => return Ok(()),
            Some(item) => act(item)?,
        }
    };
    thread::scope(|scope| {
        // Where no thread can be had, this one does it all.
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
