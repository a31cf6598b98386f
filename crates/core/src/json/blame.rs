//! The JSON answer of `blame`.

use serde::Serialize;

use super::timestamp;
use crate::{
    model::{Author, WorkspacePath},
    operations::blame::{Blame, BlameRange},
};

/// The JSON answer of `blame`.
#[derive(Debug, Clone, Serialize)]
pub struct BlameJson {
    /// The path, relative to the workspace.
    pub path: String,
    /// The checkpoint whose lines these are; null for the file on disk.
    pub at: Option<String>,
    /// The lines, grouped by their origin.
    pub ranges: Vec<BlameRangeJson>,
}

impl From<&Blame> for BlameJson {
    fn from(blame: &Blame) -> Self {
        Self {
            path: blame.path.to_text().into_owned(),
            at: blame.at.map(|id| id.to_string()),
            ranges: blame.ranges.iter().map(|range| BlameRangeJson::new(range, &blame.path)).collect(),
        }
    }
}

/// Adjacent lines with the same origin.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(rename = "BlameRange"))]
pub struct BlameRangeJson {
    /// The number of the first line, from 1.
    pub start: u64,
    /// The number of lines.
    pub lines: u64,
    /// The checkpoint that introduced the lines; null for lines that are only on disk.
    pub checkpoint: Option<String>,
    /// The path that the file had in that checkpoint.
    pub path: String,
    /// The author of the checkpoint's changes: the agent of its session, or `other`; null if that is not known.
    pub author: Option<Author>,
    /// The number of the prompt in its session.
    pub turn: Option<u64>,
    /// The id of the agent's session.
    pub session: Option<String>,
    /// The name of the agent.
    pub agent: Option<String>,
    /// The tool that had run, or was about to run.
    pub tool: Option<String>,
    /// The prompt.
    pub prompt: Option<String>,
    /// The time when the checkpoint was taken; null for lines that are only on disk.
    pub timestamp: Option<String>,
    /// True if the lines may come from a deleted checkpoint before this one.
    pub approximate: bool,
}

impl BlameRangeJson {
    fn new(range: &BlameRange, path: &WorkspacePath) -> Self {
        let origin = range.origin.as_ref();
        let of = origin.map(|origin| &origin.checkpoint.origin);
        Self {
            start: range.start,
            lines: range.lines,
            checkpoint: origin.map(|origin| origin.checkpoint.id.to_string()),
            path: origin.map_or(path, |origin| &origin.path).to_text().into_owned(),
            author: of.and_then(|of| of.author),
            turn: of.and_then(|of| of.turn),
            session: of.and_then(|of| of.session.clone()),
            agent: of.and_then(|of| of.agent.clone()),
            tool: of.and_then(|of| of.tool.clone()),
            prompt: origin.and_then(|origin| origin.prompt.clone()),
            timestamp: origin.map(|origin| timestamp(origin.checkpoint.time)),
            approximate: origin.is_some_and(|origin| origin.approximate),
        }
    }
}
