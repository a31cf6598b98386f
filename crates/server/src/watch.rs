//! Lets a request follow and stop its operation.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use backtrail::{Event, Progress, Workspace};

/// The progress and the events of an operation, and the request to stop it.
#[derive(Default)]
pub(crate) struct Watch {
    progress: Mutex<Option<Arc<Progress>>>,
    news: Mutex<Vec<String>>,
    is_stopped: AtomicBool,
}

impl Watch {
    /// Follows the progress and events of this workspace from now on.
    pub(crate) fn follow(self: &Arc<Self>, workspace: &mut Workspace) {
        let progress = workspace.progress();
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&progress));
        if self.is_stopped.load(Ordering::SeqCst) {
            progress.stop();
        }
        let watch = Arc::clone(self);
        workspace.observe(move |event| {
            if let Some(sentence) = sentence(&event.event) {
                watch.news.lock().unwrap_or_else(PoisonError::into_inner).push(sentence);
            }
        });
    }

    /// Asks the operation to stop, even if it has not started yet.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::SeqCst);
        if let Some(progress) = &*self.progress.lock().unwrap_or_else(PoisonError::into_inner) {
            progress.stop();
        }
    }

    /// Returns the number of scanned entries, and of bytes read.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.as_ref().map_or((0, 0), |progress| (progress.entries(), progress.bytes()))
    }

    /// Returns the events since the last call, as sentences.
    pub(crate) fn news(&self) -> Vec<String> {
        std::mem::take(&mut *self.news.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn sentence(event: &Event) -> Option<String> {
    Some(match event {
        Event::Initialized => "created a store".to_owned(),
        Event::CheckpointCreated { checkpoint, kind, .. } => format!("saved {} ({kind})", checkpoint.short()),
        Event::CheckpointRestored { checkpoint, .. } => format!("restored {}", checkpoint.short()),
        Event::Reverted { checkpoints, .. } => {
            let ids = checkpoints.iter().map(|id| id.short()).collect::<Vec<_>>();
            format!("took back {}", ids.join(", "))
        }
        Event::Adopted { fork, .. } => format!("adopted {fork}"),
        Event::CheckpointsPruned { checkpoints } => format!("checkpoints deleted by retention: {}", checkpoints.len()),
        Event::Recovered { outcome, conflicts } => {
            let said = format!("an interrupted restore was {}", outcome.replace('_', " "));
            match conflicts.len() {
                0 => said,
                left => format!("{said}; paths not restored: {left}"),
            }
        }
        _ => return None,
    })
}
