//! `undo`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Shared, restore::RestoreAnswer};
use crate::{access::Purpose, failure::Failure, running::Call};

pub(super) const ABOUT: &str = "Take back the last restore or deletion, even if the user made it; called again, the one before \
it. The files become what they were before that restore; after a deletion, undeleted has the checkpoints that are back. \
A safety checkpoint of the present files is taken first. If there \
is nothing to take back, applied is false.";

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UndoArgs {}

pub(super) fn run(shared: &Shared, call: &Call, _: UndoArgs) -> Result<RestoreAnswer, Failure> {
    let (workspace, precious) = shared.open(Purpose::Restore, call)?;
    Ok(match workspace.undo(call.now.timestamp())? {
        Some(done) => RestoreAnswer::done(&done, &[], &precious),
        None => RestoreAnswer::nothing(&precious),
    })
}
