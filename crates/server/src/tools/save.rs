//! `checkpoint_save`.

use backtrail::{Kind, SaveRequest, json::SkippedJson};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Shared;
use crate::{
    access::{Purpose, limited},
    answers::{self, BoundedCheckpoint, Detail, Notes},
    failure::Failure,
    running::Call,
};

pub(super) const ABOUT: &str = "Take a checkpoint of every file in the workspace, so that all of them can be \
restored as they are now. Do this before risky or far-reaching changes. If nothing changed since the last checkpoint, \
and only a message is given, no new one is taken (created is false).";

const MAX_MESSAGE_BYTES: usize = 4_000;
const MAX_NAME_BYTES: usize = 200;
const MAX_DESCRIPTION_BYTES: usize = 16_000;
const MAX_METADATA_BYTES: usize = 16_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SaveArgs {
    /// The message of the checkpoint; without one, it names the changed paths.
    message: Option<String>,
    /// A name for the checkpoint.
    name: Option<String>,
    /// A longer description.
    description: Option<String>,
    /// `manual` (the default), or `feature` if a feature is complete: the user can't delete that one by mistake.
    kind: Option<SaveKind>,
    /// The number of your step.
    step: Option<u64>,
    /// The id of your session.
    session: Option<String>,
    /// Your name; the default is the name of the program that is connected to this server.
    agent: Option<String>,
    /// Values to store with the checkpoint.
    metadata: Option<Map<String, Value>>,
}

/// Kinds that retention never takes, and that take no other's place.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SaveKind {
    Manual,
    Feature,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SaveAnswer {
    /// Was one made? Otherwise the checkpoint is the one that the workspace stands on.
    created: bool,
    /// The checkpoint.
    checkpoint: BoundedCheckpoint,
    /// What was left out, ignored paths aside.
    skipped: Vec<SkippedJson>,
    /// Paths that were captured so far, that are still on disk, and that this checkpoint could not capture: changes to
    /// them can't be taken back. Tell the user.
    dropped: Vec<SkippedJson>,
    /// What of this answer was cut; empty where all is told.
    truncated: Vec<String>,
}

pub(super) fn run(shared: &Shared, call: &Call, args: SaveArgs) -> Result<SaveAnswer, Failure> {
    args.check()?;
    let (workspace, _) = shared.open(Purpose::Save, call)?;
    let request = SaveRequest {
        message: args.message,
        name: args.name,
        description: args.description,
        kind: Some(match args.kind {
            None | Some(SaveKind::Manual) => Kind::Manual,
            Some(SaveKind::Feature) => Kind::Feature,
        }),
        step: args.step,
        session: args.session,
        agent: args.agent.or_else(|| call.client.clone()),
        metadata: args.metadata.unwrap_or_default(),
        ..SaveRequest::default()
    };
    let saved = workspace.save(&request, call.now.timestamp())?;
    let mut notes = Notes::default();
    Ok(SaveAnswer {
        created: saved.created,
        checkpoint: BoundedCheckpoint::new(&saved.checkpoint, Detail::Full),
        skipped: answers::skipped("skipped", &saved.skipped, &mut notes),
        dropped: answers::skipped("dropped", &saved.dropped, &mut notes),
        truncated: notes.into_inner(),
    })
}

impl SaveArgs {
    fn check(&self) -> Result<(), Failure> {
        let texts = [
            ("message", &self.message, MAX_MESSAGE_BYTES),
            ("name", &self.name, MAX_NAME_BYTES),
            ("description", &self.description, MAX_DESCRIPTION_BYTES),
            ("session", &self.session, MAX_NAME_BYTES),
            ("agent", &self.agent, MAX_NAME_BYTES),
        ];
        for (name, text, max_bytes) in texts {
            limited(name, text.as_deref().unwrap_or_default(), max_bytes)?;
        }
        let metadata = self.metadata.as_ref().map(serde_json::to_string).transpose();
        let metadata = metadata.map_err(|error| Failure::usage(error.to_string()))?;
        limited("metadata", metadata.as_deref().unwrap_or_default(), MAX_METADATA_BYTES)
    }
}
