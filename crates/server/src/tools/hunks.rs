//! `hunks`.

use backtrail::{Change, HunkChoice, Only, RestoreRequest, RevertRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Shared, count,
    show::{MAX_CHANGES, USUAL_CHANGES},
};
use crate::{
    access::{self, Purpose, RevertWords},
    answers::{self, Notes, ShownChange},
    failure::Failure,
    running::Call,
};

pub(super) const ABOUT: &str = "List the hunks that a restore or a revert would change on disk, each with an id. Pass \
some ids as `hunks` to restore_plan or revert_plan, with the same checkpoint or the same thing to take back, to do only \
those. Name `restore`, or one of `revert`, `turn` and `session`; without any, the hunks are the changes on disk since \
the last checkpoint. The old side is the file on disk. Hunks of precious files, such as .env, are not shown.";

const USUAL_BYTES: usize = 50_000;
const MAX_BYTES: usize = 1_000_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HunksArgs {
    /// The checkpoint to restore; @ by default.
    restore: Option<String>,
    /// The thing to take back: a checkpoint, turn:N, or FROM..TO.
    revert: Option<String>,
    /// Take back the agent's work for the prompt that is this far from the last, from 1.
    turn: Option<u64>,
    /// Take back the agent's work in this session; next to turn:N, the session of that prompt.
    session: Option<String>,
    /// Only these files and directories, relative to the workspace; everything by default.
    paths: Option<Vec<String>>,
    /// The maximum length of all lines together in bytes, from 1 to 1000000; 50000 by default.
    max_bytes: Option<u64>,
    /// The maximum number of changes to list, from 1 to 1000; 200 by default.
    limit: Option<u64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct HunksAnswer {
    /// The changes, sorted by path. Changes of text have `hunks`.
    changes: Vec<ShownChange>,
    /// The total number of changes.
    changes_total: u64,
    /// Notes on truncated parts of this answer; empty if nothing was truncated.
    truncated: Vec<String>,
}

pub(super) fn run(shared: &Shared, call: &Call, args: HunksArgs) -> Result<HunksAnswer, Failure> {
    let limit = count("limit", args.limit, USUAL_CHANGES, MAX_CHANGES)?;
    let max_bytes = count("max_bytes", args.max_bytes, USUAL_BYTES, MAX_BYTES)?;
    let (workspace, precious) = shared.open(Purpose::Scan, call)?;
    let scope = access::scope(&workspace, args.paths.as_deref().unwrap_or_default())?;
    let words = RevertWords { what: args.revert, turn: args.turn, session: args.session };
    let found: Vec<Change> = match (&args.restore, words.is_empty()) {
        (Some(_), false) => {
            return Err(Failure::usage("restore can't be combined with revert, turn or session"));
        }
        (restore, true) => {
            let target = access::checkpoint(&workspace, restore.as_deref().unwrap_or("@"), &call.now)?;
            let hunks = HunkChoice::Listed;
            let request = RestoreRequest { scope, only: Only::All, hunks, ..RestoreRequest::whole(target) };
            workspace.plan_restore(&request)?.changes
        }
        (None, false) => {
            let target = words.target(&workspace, &call.now)?;
            let request = RevertRequest { scope, hunks: HunkChoice::Listed, ..RevertRequest::whole(target) };
            workspace.plan_revert(&request)?.restore.changes
        }
    };
    let mut notes = Notes::default();
    let mut changes = answers::changes(&found, limit, &precious, &mut notes);
    answers::limit_hunks(&mut changes, max_bytes, &mut notes);
    Ok(HunksAnswer { changes, changes_total: found.len() as u64, truncated: notes.into_inner() })
}
