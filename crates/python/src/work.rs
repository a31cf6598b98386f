//! Runs work without blocking the interpreter.
//!
//! A worker thread runs the work, so that the calling thread can handle signals. Ctrl-C stops an operation as long as
//! it only reads, and waits for an operation that has begun to write. Each thread of the interpreter keeps its worker
//! for the next call, because most calls are shorter than the start of a thread.

use std::{
    cell::Cell,
    io, mem,
    panic::{self, AssertUnwindSafe},
    process,
    sync::{
        OnceLock,
        mpsc::{self, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use pyo3::{prelude::*, sync::PyOnceLock};

/// The interval at which the calling thread checks for signals.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);

/// The stack size of a worker: enough for a tree as deep as the command line can handle.
const STACK_BYTES: usize = 64 << 20;

/// Runs `work` with the interpreter lock released. `stop` is called to ask it to end early.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    stop: impl Fn() + Send + Sync,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let sees_signals = is_main_thread(py)?;
    py.detach(|| {
        let (done, outcome) = mpsc::sync_channel(1);
        let worker = Worker::take_or_start()?;
        worker.give(Box::new(move || {
            let outcome = panic::catch_unwind(AssertUnwindSafe(|| in_this_process(work)));
            // Sending can't fail, because the receiver waits below.
            drop(done.send(outcome));
        }))?;
        let mut interrupted = None;
        let outcome = loop {
            match outcome.recv_timeout(SIGNAL_INTERVAL) {
                Ok(outcome) => break outcome,
                Err(RecvTimeoutError::Timeout) => {
                    if sees_signals && let Err(raised) = Python::attach(|py| py.check_signals()) {
                        stop();
                        interrupted.get_or_insert(raised);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(io::Error::other("the worker thread has ended").into());
                }
            }
        };
        worker.keep();
        match (outcome, interrupted) {
            (Err(panicked), _) => panic::resume_unwind(panicked),
            (Ok(_), Some(raised)) => Err(raised),
            (Ok(outcome), None) => Ok(outcome),
        }
    })
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread that runs jobs. It ends when the sender of its jobs is dropped.
struct Worker {
    jobs: Option<Sender<Job>>,
    process: u32,
}

thread_local! {
    /// The worker of this thread, while it is idle.
    static IDLE: Cell<Option<Worker>> = const { Cell::new(None) };
}

impl Worker {
    /// Returns the idle worker of this thread, or starts a new one. There is no idle one if a signal handler makes a
    /// call while the worker is busy. A worker from before a fork does not exist in the forked process.
    fn take_or_start() -> io::Result<Self> {
        let process = process::id();
        if let Ok(Some(kept)) = IDLE.try_with(Cell::take)
            && kept.process == process
        {
            return Ok(kept);
        }
        let (jobs, given) = mpsc::channel::<Job>();
        let thread = thread::Builder::new().name("backtrail".into()).stack_size(STACK_BYTES);
        thread.spawn(move || given.into_iter().for_each(|job| job()))?;
        Ok(Self { jobs: Some(jobs), process })
    }

    fn give(&self, job: Job) -> io::Result<()> {
        let given = self.jobs.as_ref().and_then(|jobs| jobs.send(job).ok());
        given.ok_or_else(|| io::Error::other("the worker thread has ended"))
    }

    fn keep(self) {
        // Fails if this thread is ending and its thread-local storage is gone. The worker is dropped then, and ends.
        IDLE.try_with(|idle| idle.set(Some(self))).unwrap_or_default();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // In a forked process the thread does not exist, and may have held the lock of the channel at the time of the
        // fork. Dropping the sender could then wait forever.
        if self.process != process::id() {
            mem::forget(self.jobs.take());
        }
    }
}

/// Returns whether this is the main thread. Python runs signal handlers only there.
fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    static CURRENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static MAIN: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let current = CURRENT.import(py, "threading", "current_thread")?.call0()?;
    let main = MAIN.import(py, "threading", "main_thread")?.call0()?;
    Ok(current.is(&main))
}

static LOADED_BY: OnceLock<u32> = OnceLock::new();

/// Stores the id of the process that loaded the module.
pub(crate) fn remember_process() {
    LOADED_BY.get_or_init(process::id);
}

/// Returns whether this process was forked from the one that loaded the module.
pub(crate) fn is_forked() -> bool {
    LOADED_BY.get().is_some_and(|process| *process != process::id())
}

/// Runs `work` with a pool of threads that exist in this process. In a forked process, the shared pool has no threads,
/// and waiting for them would never end, so that each operation gets its own pool.
fn in_this_process<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    if !is_forked() {
        return work();
    }
    match rayon::ThreadPoolBuilder::new().stack_size(STACK_BYTES).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}
