//! Checkpoints that were not there when the agent went on.

use backtrail::Checkpoint;
use serde_json::{Map, Value};

use super::event::Moment;
use crate::output;

/// What there is to know about one.
pub(crate) const MEANING: &str = "taken late, after the agent had gone on: what it did meanwhile may be in it";

/// Where a checkpoint's record has the word.
const LATE: &str = "late";

/// Was it taken after the agent had gone on? Then it may hold what the agent did meanwhile.
pub(crate) fn is_late(checkpoint: &Checkpoint) -> bool {
    checkpoint.metadata.get(LATE) == Some(&Value::Bool(true))
}

/// Does an event ask for the state before something happens? Others lose nothing by being late.
pub(super) fn may_be_late(moment: &Moment) -> bool {
    matches!(moment, Moment::SessionStart { .. } | Moment::Prompt(_) | Moment::BeforeTool(_))
}

/// For the record of a checkpoint whose files were just read.
pub(super) fn words() -> Map<String, Value> {
    let mut words = Map::new();
    // The hook that the agent waits for reads our answer as long as it runs.
    if !output::is_hook_heard() {
        words.insert(LATE.into(), true.into());
    }
    words
}
