//! Checkpoints that were not finished when the agent continued.

use backtrail::Checkpoint;
use serde_json::{Map, Value};

use super::event::Moment;
use crate::output;

/// The message about a late checkpoint.
pub(crate) const MEANING: &str =
    "taken late, after the agent continued: it may contain changes that the agent made meanwhile";

/// The key in a checkpoint's metadata.
const LATE: &str = "late";

/// Returns whether the checkpoint was taken after the agent had continued. Then it may contain changes that the agent
/// made meanwhile.
pub(crate) fn is_late(checkpoint: &Checkpoint) -> bool {
    checkpoint.metadata.get(LATE) == Some(&Value::Bool(true))
}

/// Returns whether an event asks for the state before something happens. A delay does not matter to other events.
pub(super) fn may_be_late(moment: &Moment) -> bool {
    matches!(moment, Moment::SessionStart { .. } | Moment::Prompt(_) | Moment::BeforeTool(_))
}

/// Returns the metadata for a checkpoint whose files were just read.
pub(super) fn words() -> Map<String, Value> {
    let mut words = Map::new();
    // The hook process reads our answer as long as it runs, and the agent waits for it that long.
    if !output::is_hook_heard() {
        words.insert(LATE.into(), true.into());
    }
    words
}
