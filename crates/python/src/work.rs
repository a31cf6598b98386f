//! Doing work without holding up the interpreter.
//!
//! The work has a thread of its own, so that the calling one can see to signals: Ctrl-C stops an operation as long as it
//! only reads, and waits for the end of one that has begun to write.

use std::{
    panic,
    sync::{
        OnceLock,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use pyo3::{prelude::*, sync::PyOnceLock};

/// How long the calling thread sleeps before it sees to signals again.
const NAP: Duration = Duration::from_millis(50);

/// Room for a tree as deep as the command line can handle.
const STACK_BYTES: usize = 64 << 20;

/// Runs `work` with the interpreter free for others; `stop` asks it to end early.
pub(crate) fn run<T: Send>(py: Python<'_>, stop: impl Fn() + Sync, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let sees_signals = is_main_thread(py)?;
    py.detach(|| {
        thread::scope(|scope| {
            let (done, outcome) = mpsc::sync_channel(1);
            let worker = thread::Builder::new().name("backtrail".into()).stack_size(STACK_BYTES);
            let worker = worker.spawn_scoped(scope, move || {
                // Whoever waits has not gone away.
                drop(done.send(in_this_process(work)));
            })?;
            let mut interrupted = None;
            loop {
                match outcome.recv_timeout(NAP) {
                    Ok(outcome) => return interrupted.map_or(Ok(outcome), Err),
                    Err(RecvTimeoutError::Timeout) => {
                        if sees_signals && let Err(raised) = Python::attach(|py| py.check_signals()) {
                            stop();
                            interrupted.get_or_insert(raised);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => match worker.join() {
                        Err(panicked) => panic::resume_unwind(panicked),
                        Ok(()) => unreachable!("the worker sends before it ends"),
                    },
                }
            }
        })
    })
}

/// Python runs signal handlers in its main thread alone.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static MAIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let current = CURRENT.import(py, "threading", "current_thread")?.call0()?;
    let main = MAIN.import(py, "threading", "main_thread")?.call0()?;
    Ok(current.is(&main))
}

static LOADED_BY: OnceLock<u32> = OnceLock::new();

/// Keeps which process loaded the module.
pub(crate) fn remember_process() {
    LOADED_BY.get_or_init(std::process::id);
}

/// Was this process forked off the one that loaded the module?
pub(crate) fn is_forked() -> bool {
    LOADED_BY.get().is_some_and(|process| *process != std::process::id())
}

/// In a process that was forked off the shared pool of threads is there, but its threads are not: waiting for them would
/// never end. Such a process gets a pool for each operation.
fn in_this_process<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if !is_forked() {
        return work();
    }
    match rayon::ThreadPoolBuilder::new().stack_size(STACK_BYTES).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}
