//! `checkpoint_save`.

use backtrail::{Author, Kind, Origin, SaveRequest, json::SkippedJson};
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
    /// A message that describes the checkpoint; made of the changed paths by default.
    message: Option<String>,
    /// A name by which the checkpoint can be found later.
    name: Option<String>,
    /// A longer description.
    description: Option<String>,
    /// `manual` (the default), or `feature` if a feature is complete. The user can't delete a `feature` one by mistake.
    kind: Option<SaveKind>,
    /// The number of your current step.
    step: Option<u64>,
    /// The id of your session.
    session: Option<String>,
    /// Your name; the name of the client program by default.
    agent: Option<String>,
    /// `agent` if you made the changes since the previous checkpoint, `other` if you did not; unknown by default.
    author: Option<Author>,
    /// Any data to keep with the checkpoint.
    metadata: Option<Map<String, Value>>,
}

/// Kinds that retention never deletes, and that do not count towards the limits of other kinds.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum SaveKind {
    Manual,
    Feature,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SaveAnswer {
    /// True if a checkpoint was created. Otherwise `checkpoint` is the one that the workspace stands on.
    created: bool,
    /// The checkpoint.
    checkpoint: BoundedCheckpoint,
    /// Paths that were skipped. Does not include ignored paths.
    skipped: Vec<SkippedJson>,
    /// Paths that the previous checkpoint held, that are still on disk, and that this one could not capture. Changes to
    /// them can't be taken back. Tell the user.
    dropped: Vec<SkippedJson>,
    /// Notes on truncated parts of this answer; empty if nothing was truncated.
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
        metadata: args.metadata.unwrap_or_default(),
        origin: Origin {
            step: args.step,
            session: args.session,
            agent: args.agent.or_else(|| call.client.clone()),
            author: args.author,
            ..Origin::default()
        },
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
