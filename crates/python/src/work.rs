//! Doing work without holding up the interpreter.
//!
//! The work is done by another thread, so that the calling one can see to signals: Ctrl-C stops an operation as long as
//! it only reads, and waits for the end of one that has begun to write. Each thread of the interpreter keeps its worker
//! for the next call: most calls are shorter than the making of a thread.

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

/// How long the calling thread sleeps before it sees to signals again.
const NAP: Duration = Duration::from_millis(50);

/// Room for a tree as deep as the command line can handle.
const STACK_BYTES: usize = 64 << 20;

/// Runs `work` with the interpreter free for others; `stop` asks it to end early.
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
            // Whoever waits has not gone away.
            drop(done.send(outcome));
        }))?;
        let mut interrupted = None;
        let outcome = loop {
            match outcome.recv_timeout(NAP) {
                Ok(outcome) => break outcome,
                Err(RecvTimeoutError::Timeout) => {
                    if sees_signals && let Err(raised) = Python::attach(|py| py.check_signals()) {
                        stop();
                        interrupted.get_or_insert(raised);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("the worker has ended").into()),
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

/// A thread that does what it is given, and ends when nobody can give it anything any more.
struct Worker {
    jobs: Option<Sender<Job>>,
    process: u32,
}

thread_local! {
    /// The worker of this thread, while it has nothing to do.
    static IDLE: Cell<Option<Worker>> = const { Cell::new(None) };
}

impl Worker {
    /// The one that this thread keeps, or a new one: a signal handler can call while the kept one works, and one that
    /// was kept before a fork is no more.
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
        given.ok_or_else(|| io::Error::other("the worker has ended"))
    }

    fn keep(self) {
        // As a thread ends, so does the place where it was to be kept, and the worker with it.
        IDLE.try_with(|idle| idle.set(Some(self))).unwrap_or_default();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // After a fork the thread is not there, and may have held the lock of the channel: ending it properly could wait
        // for ever.
        if self.process != process::id() {
            mem::forget(self.jobs.take());
        }
    }
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
    LOADED_BY.get_or_init(process::id);
}

/// Was this process forked off the one that loaded the module?
pub(crate) fn is_forked() -> bool {
    LOADED_BY.get().is_some_and(|process| *process != process::id())
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
