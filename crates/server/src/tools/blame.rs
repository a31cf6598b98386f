//! `blame`.

use backtrail::json::BlameJson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Shared, count};
use crate::{
    access::{self, Purpose},
    answers::Notes,
    failure::Failure,
    running::Call,
};

pub(super) const ABOUT: &str = "Find out which checkpoint introduced each line of a file, with the prompt, the agent, \
the tool and the time. Lines without a checkpoint are only on disk. The lines themselves are not shown, and precious \
files, such as .env, have no answer.";

const USUAL_RANGES: usize = 200;
const MAX_RANGES: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BlameArgs {
    /// The file, relative to the workspace.
    path: String,
    /// The checkpoint whose lines are meant: an id, a name, @, ID~N, latest, step:N, turn:N, before:ID, ago:20m,
    /// at:14:30; the file on disk by default.
    checkpoint: Option<String>,
    /// The first line, from 1; 1 by default.
    first: Option<u64>,
    /// The last line; the last one of the file by default.
    last: Option<u64>,
    /// The maximum number of ranges to list, from 1 to 1000; 200 by default.
    limit: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BlameAnswer {
    /// The path, relative to the workspace.
    path: String,
    /// The checkpoint whose lines these are; null for the file on disk.
    at: Option<String>,
    /// The lines, grouped by their origin.
    ranges: Vec<backtrail::json::BlameRangeJson>,
    /// The total number of ranges.
    ranges_total: u64,
    /// True if the path is precious. Then its lines are not listed.
    hidden: bool,
    /// Notes on truncated parts of this answer; empty if nothing was truncated.
    truncated: Vec<String>,
}

pub(super) fn run(shared: &Shared, call: &Call, args: BlameArgs) -> Result<BlameAnswer, Failure> {
    let limit = count("limit", args.limit, USUAL_RANGES, MAX_RANGES)?;
    let (workspace, precious) = shared.open(Purpose::Look, call)?;
    let path = access::path(&workspace, &args.path)?;
    let at = args.checkpoint.as_ref().map(|word| access::checkpoint(&workspace, word, &call.now)).transpose()?;
    let is_part = args.first.is_some() || args.last.is_some();
    let lines = is_part.then(|| args.first.unwrap_or(1)..=args.last.unwrap_or(u64::MAX));
    let BlameJson { path: named, at, mut ranges } = BlameJson::from(&workspace.blame(&path, at, lines.as_ref())?);
    let hidden = precious.contains(&path);
    let mut notes = Notes::default();
    let ranges_total = ranges.len() as u64;
    if hidden {
        ranges.clear();
    }
    notes.cut_list("ranges", &mut ranges, limit, |range| range.prompt.as_ref().map_or(0, String::len));
    Ok(BlameAnswer {
        path: named,
        at,
        ranges,
        ranges_total: if hidden { 0 } else { ranges_total },
        hidden,
        truncated: notes.into_inner(),
    })
}
