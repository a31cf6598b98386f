//! `fork` and `adopt`.

use std::{ffi::OsString, path::PathBuf};

use backtrail::{
    AdoptRequest, ForkRequest, LeftOut, OptionsOf,
    json::{ForkJson, ForksJson, MovedFileJson},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Shared, count,
    restore::RestoreAnswer,
    revert::{moved_files, on_conflict, paths},
    show::{MAX_CHANGES, USUAL_CHANGES},
};
use crate::{
    access::{self, Purpose, limited},
    answers::Notes,
    failure::Failure,
    running::Call,
};

pub(super) const ABOUT_FORK: &str = "Make a second workspace with the files of a checkpoint, or of the disk, for an \
attempt side by side. It lies beside this workspace, in a new directory WORKSPACE-NAME, and has its own checkpoints. \
Directories that checkpoints skip, such as node_modules, are links to those here. `adopt` brings its work back.";

pub(super) const ABOUT_ADOPT: &str = "Bring the work of a fork back into this workspace. Call it twice: with the \
`directory` it shows what would change, and changes nothing; then with the `plan` of that answer it does so, if the \
files have not changed since. Edits on both sides are merged. A safety checkpoint is taken first, and `undo` takes the \
adoption back. The fork stays as it is.";

/// The maximum number of forks that one call makes.
const MAX_FORKS: usize = 16;
const MAX_NAME_BYTES: usize = 64;
const MAX_DIRECTORY_BYTES: usize = 4_096;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ForkArgs {
    /// The last part of the new directory's name: letters, digits, `.`, `_` and `-`. In the workspace `site`, `try`
    /// makes the directory `site-try` beside it.
    name: String,
    /// The checkpoint: an id, a name, @, ID~N, latest, step:N, turn:N, before:ID, ago:20m, at:14:30; the files on disk
    /// by default.
    checkpoint: Option<String>,
    /// Make this many forks, from 1 to 16, with -1, -2 and so on after the name.
    count: Option<u64>,
    /// Copy what checkpoints skip, instead of linking to its directories.
    with_left_out: Option<bool>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ForkAnswer {
    /// The forks that were made.
    forks: Vec<ForkJson>,
}

pub(super) fn fork(shared: &Shared, call: &Call, args: ForkArgs) -> Result<ForkAnswer, Failure> {
    let directories = directories(shared, &args)?;
    let (workspace, _) = shared.open(Purpose::Save, call)?;
    let from = args.checkpoint.as_ref().map(|word| access::checkpoint(&workspace, word, &call.now)).transpose()?;
    let request = ForkRequest {
        from,
        directories,
        stores: shared.access.stores()?,
        left_out: if args.with_left_out.unwrap_or(false) { LeftOut::Copied } else { LeftOut::Linked },
        may_hold_git: false,
    };
    let forked = workspace.fork(&request, call.now.timestamp())?;
    Ok(ForkAnswer { forks: ForksJson::from(forked.as_slice()).forks })
}

/// Returns the directories to make. Agents can only make directories whose names begin with that of the workspace, so
/// that no other program takes them for its own.
fn directories(shared: &Shared, args: &ForkArgs) -> Result<Vec<PathBuf>, Failure> {
    limited("name", &args.name, MAX_NAME_BYTES)?;
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    if args.name.is_empty() || !args.name.chars().all(is_plain) {
        let message = format!("{:?} can't be part of a directory's name", args.name);
        return Err(Failure::usage(message).with_hint("use letters, digits, `.`, `_` and `-`"));
    }
    let named = |suffix: &str| {
        let root = shared.access.root();
        let mut name: OsString = root.file_name().unwrap_or_default().to_owned();
        name.push(format!("-{}{suffix}", args.name));
        root.with_file_name(name)
    };
    Ok(match args.count {
        None => vec![named("")],
        wanted => (1..=count("count", wanted, 1, MAX_FORKS)?).map(|number| named(&format!("-{number}"))).collect(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AdoptArgs {
    /// The directory of the fork: the path that fork answered with. Shows a plan.
    directory: Option<String>,
    /// Leave files with conflicts as they are, instead of refusing the whole adoption.
    skip_conflicts: Option<bool>,
    /// Write overlapping lines into the files with conflict markers, instead of refusing.
    markers: Option<bool>,
    /// The maximum number of changes to list, from 1 to 1000; 200 by default.
    limit: Option<u64>,
    /// The `plan` from an answer of adopt. Carries it out; all other arguments are left out.
    plan: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct AdoptAnswer {
    #[serde(flatten)]
    restore: RestoreAnswer,
    /// The changed paths whose lines are merged with edits in the workspace.
    merged: Vec<String>,
    /// Always empty: the files of a fork belong to no other session.
    shared: Vec<String>,
    /// Files that are changed at the paths to which they were moved.
    moved: Vec<MovedFileJson>,
}

pub(super) fn adopt(shared: &Shared, call: &Call, args: AdoptArgs) -> Result<AdoptAnswer, Failure> {
    let AdoptArgs { directory, skip_conflicts, markers, limit, plan } = args;
    match (directory, plan) {
        (Some(directory), None) => {
            limited("directory", &directory, MAX_DIRECTORY_BYTES)?;
            let directory = shared.access.root().join(directory);
            let on_conflict = on_conflict(skip_conflicts, markers)?;
            let request = AdoptRequest { directory, on_conflict, plan: None };
            show_plan(shared, call, request, count("limit", limit, USUAL_CHANGES, MAX_CHANGES)?)
        }
        (None, Some(plan)) if skip_conflicts.is_none() && markers.is_none() && limit.is_none() => {
            carry_out(shared, call, &plan)
        }
        _ => Err(Failure::usage("give either `directory`, to see a plan, or only `plan`, to carry it out")),
    }
}

fn show_plan(shared: &Shared, call: &Call, request: AdoptRequest, limit: usize) -> Result<AdoptAnswer, Failure> {
    let (workspace, precious) = shared.open(Purpose::Scan, call)?;
    let options = |root: &std::path::Path| shared.access.options_at(root);
    let plan = workspace.plan_adopt_fork(&request, OptionsOf(&options), call.now.timestamp())?;
    shared.plans.remember_adopt(&plan.hash, request);
    let restore = RestoreAnswer::planned(&plan, &[], limit, &precious);
    Ok(AdoptAnswer::new(restore, &plan.merged, &plan.moved))
}

fn carry_out(shared: &Shared, call: &Call, plan: &str) -> Result<AdoptAnswer, Failure> {
    let request = shared.plans.adopt(plan)?;
    let (workspace, precious) = shared.open(Purpose::Restore, call)?;
    let options = |root: &std::path::Path| shared.access.options_at(root);
    let done = workspace.adopt_fork(&request, OptionsOf(&options), call.now.timestamp())?;
    let restore = RestoreAnswer::done(&done, &[], &precious).about(None);
    Ok(AdoptAnswer::new(restore, &done.merged, &done.moved))
}

impl AdoptAnswer {
    fn new(mut restore: RestoreAnswer, merged: &[backtrail::WorkspacePath], moved: &[backtrail::Moved]) -> Self {
        let mut notes = Notes::default();
        let merged = paths("merged", merged, &mut notes);
        let moved = moved_files(moved, &mut notes);
        restore.truncated.extend(notes.into_inner());
        Self { restore, merged, shared: Vec::new(), moved }
    }
}
