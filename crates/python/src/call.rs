//! One call of an operation: a handle that stops it, and what it told.

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

/// What the thread that works and the one that waits know of each other.
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

    /// Ends the operation as long as it only reads; one that has begun to write is finished.
    pub(crate) fn stop(&self) {
        self.watch.is_stopped.store(true, Ordering::SeqCst);
        if let Some(progress) = &*lock(&self.watch.progress) {
            progress.stop();
        }
    }

    /// What happened since this was last asked.
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
    /// Makes a workspace report here, and stop from here.
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

    /// Keeps something that is wrong although the operation goes on.
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
