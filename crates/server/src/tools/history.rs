//! `file_history`.

use backtrail::json::VersionJson;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Shared, count};
use crate::{
    access::{self, Purpose},
    answers::Notes,
    failure::Failure,
    running::Call,
};

pub(super) const ABOUT: &str = "List every version of one file or directory, newest first, including deletions: the \
first checkpoint that has it, and what happened to it there. To restore one, call restore_plan with that checkpoint.";

const USUAL_VERSIONS: usize = 50;
const MAX_VERSIONS: usize = 500;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryArgs {
    /// The file or directory, relative to the workspace.
    path: String,
    /// The maximum number of versions to list, from 1 to 500; 50 by default.
    limit: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct HistoryAnswer {
    /// The path, relative to the workspace.
    path: String,
    /// The versions, newest first.
    versions: Vec<VersionJson>,
    /// The total number of versions.
    versions_total: u64,
    /// True if the path is precious. Then its contents, sizes and line counts are not shown.
    hidden: bool,
    /// Notes on truncated parts of this answer; empty if nothing was truncated.
    truncated: Vec<String>,
}

pub(super) fn run(shared: &Shared, call: &Call, args: HistoryArgs) -> Result<HistoryAnswer, Failure> {
    let limit = count("limit", args.limit, USUAL_VERSIONS, MAX_VERSIONS)?;
    let (workspace, precious) = shared.open(Purpose::Look, call)?;
    let path = access::path(&workspace, &args.path)?;
    let found = workspace.history(&path)?;
    let hidden = precious.contains(&path);
    let mut notes = Notes::default();
    let mut versions: Vec<VersionJson> = found.iter().map(VersionJson::from).collect();
    notes.cut_list("versions", &mut versions, limit, |_| 0);
    if hidden {
        for version in &mut versions {
            (version.bytes, version.insertions, version.deletions, version.binary) = (None, 0, 0, false);
        }
    }
    Ok(HistoryAnswer {
        path: path.to_text().into_owned(),
        versions,
        versions_total: found.len() as u64,
        hidden,
        truncated: notes.into_inner(),
    })
}
