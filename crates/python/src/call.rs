//! One call of an operation: a handle that stops it and collects its events.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use backtrail::{Progress, TimedEvent, Workspace};
use pyo3::prelude::*;
use serde_json::Value;

use crate::json::JsonObject;

/// One call of an operation.
#[pyclass(frozen, module = "backtrail._native")]
#[derive(Default)]
pub(crate) struct Call {
    watch: Arc<Watch>,
}

/// State that the thread which runs the operation shares with the thread which waits for it.
#[derive(Default)]
pub(crate) struct Watch {
    is_stopped: AtomicBool,
    progress: Mutex<Option<Arc<Progress>>>,
    events: Arc<Mutex<Vec<TimedEvent>>>,
    problems: Mutex<Vec<String>>,
}

#[pymethods]
impl Call {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Stops the operation as long as it only reads. An operation that has begun to write is finished.
    pub(crate) fn stop(&self) {
        self.watch.is_stopped.store(true, Ordering::SeqCst);
        if let Some(progress) = &*lock(&self.watch.progress) {
            progress.stop();
        }
    }

    /// Returns the events since the last call of this method.
    fn take_events(&self) -> Vec<JsonObject> {
        let happened = std::mem::take(&mut *lock(&self.watch.events));
        let values = happened.iter().filter_map(|event| match serde_json::to_value(event) {
            Ok(Value::Object(event)) => Some(JsonObject(event)),
            _ => None,
        });
        values.collect()
    }
}

impl Call {
    pub(crate) fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.watch)
    }
}

impl Watch {
    /// Connects a workspace: its events are collected here, and [`Call::stop`] stops its operation.
    pub(crate) fn over(&self, workspace: &mut Workspace) {
        let events = Arc::clone(&self.events);
        workspace.observe(move |event| lock(&events).push(event.clone()));
        *lock(&self.progress) = Some(workspace.progress());
        if self.is_stopped() {
            workspace.progress().stop();
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::SeqCst)
    }

    /// Adds a problem that does not end the operation. Duplicates are dropped.
    pub(crate) fn note_problem(&self, problem: String) {
        let mut problems = lock(&self.problems);
        if !problems.contains(&problem) {
            problems.push(problem);
        }
    }

    pub(crate) fn take_problems(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.problems))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
