//! `workspaces`: lists every workspace that has a store, and forgets or adopts stores.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use backtrail::{Start, WorkspaceEntry, json::WorkspacesJson, locate};
use clap::Args;

use crate::{
    failure::Failure,
    invocation::Invocation,
    output::{AdoptedJson, ForgottenJson, bytes, plural, shell_path, visible_path, workspaces_text},
    question::{ask, can_be_asked, is_yes},
};

/// List every workspace that has a store
#[derive(Debug, Args)]
pub(crate) struct WorkspacesArgs {
    /// Remove the stores of workspaces that are gone for good; a workspace on a disk that is not mounted is not gone
    #[arg(long, conflicts_with_all = ["forget", "adopt"])]
    prune: bool,
    /// Remove the store of this workspace, or this store, with all its checkpoints; needs --yes; the files of the
    /// workspace are not changed
    #[arg(long, value_name = "DIR")]
    forget: Option<PathBuf>,
    /// Use this store for the current directory, or for that of -w: for a workspace that was moved to another disk or
    /// created again
    ///
    /// The history continues there. Refused while the directory that the store belongs to still exists. If the
    /// directory has a store already, that one is kept.
    #[arg(long, value_name = "STORE", conflicts_with = "forget")]
    adopt: Option<PathBuf>,
    /// Confirm the removal: --forget needs this, and --prune does not ask
    #[arg(long)]
    yes: bool,
}

/// Remove the store of a workspace, with all its checkpoints
///
/// The older form of `workspaces --forget DIR`. The files of the workspace are not changed.
#[derive(Debug, Args)]
pub(crate) struct ForgetArgs {
    /// The workspace
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Confirm the removal
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &WorkspacesArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    if let Some(directory) = &args.forget {
        return forget_one(directory, args.yes, invocation);
    }
    if let Some(store) = &args.adopt {
        return adopt(store, invocation);
    }
    if args.yes && !args.prune {
        return Err(Failure::usage("--yes has no effect here", Some("use it with --prune or --forget DIR")));
    }
    let mut found = backtrail::workspaces(&invocation.stores()?)?;
    note_where_one_stands(&mut found, invocation);
    if args.prune && may_forget_gone(&found, args.yes, invocation)? {
        forget_gone(&mut found, invocation)?;
    }
    let output = &invocation.output;
    if output.is_json() {
        output.json(&WorkspacesJson::from(found.as_slice()))?;
        return Ok(ExitCode::SUCCESS);
    }
    output.text(&workspaces_text(&found, &invocation.now, output.paint))?;
    if found.is_empty() {
        output.note("no workspace has a store yet; take a checkpoint with: backtrail save");
    } else if found.iter().any(|entry| entry.is_gone) {
        output.note("to bring back a deleted workspace, create its directory again and run there: backtrail restore @");
        output.note("remove the stores of workspaces that are gone for good with: backtrail workspaces --prune");
    }
    Ok(ExitCode::SUCCESS)
}

/// Marks the workspace of the current directory as moved if its old path is gone. A move to a distant place can't be
/// seen from the old path.
fn note_where_one_stands(found: &mut [WorkspaceEntry], invocation: &Invocation) {
    let Ok(location) = invocation.location() else { return };
    if let Some(entry) = found.iter_mut().find(|entry| entry.store == location.store && !entry.exists) {
        entry.is_gone = false;
        entry.moved_to = Some(location.root);
    }
}

/// Binds a store to the current directory.
fn adopt(store: &Path, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace_right_here()?;
    let adopted = workspace.adopt(&store_named(store, invocation)?, invocation.now.timestamp())?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&AdoptedJson::new(workspace.root(), &adopted.store))?;
    } else {
        let (root, store) = (visible_path(workspace.root()), visible_path(&adopted.store));
        output.done(&format!("{root} now uses the store {store}; see its history with: backtrail list"))?;
    }
    if let Some(kept) = adopted.kept {
        let adopt = format!("backtrail workspaces --adopt {}", shell_path(&kept));
        output.tell(&format!("its previous store is kept: {}; go back to it with: {adopt}", kept.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the store that the user named by its path, or by its name in the directory of the stores.
fn store_named(store: &Path, invocation: &Invocation) -> Result<PathBuf, Failure> {
    let path = invocation.file(store)?;
    let is_name = store.components().count() == 1 && !path.exists();
    Ok(if is_name { invocation.stores()?.join(store) } else { path })
}

pub(crate) fn forget(args: &ForgetArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    forget_one(&args.directory, args.yes, invocation)
}

/// Returns whether stores without a workspace may be removed. On a terminal, the user sees them and is asked. A script
/// has consented with `--prune`.
fn may_forget_gone(found: &[WorkspaceEntry], yes: bool, invocation: &Invocation) -> Result<bool, Failure> {
    let gone: Vec<&WorkspaceEntry> = found.iter().filter(|entry| entry.is_gone).collect();
    if yes || gone.is_empty() || !can_be_asked(invocation) {
        return Ok(true);
    }
    let listed = gone.iter().map(|entry| format!("  {}: {}\n", visible_path(&entry.path), extent(entry)));
    let what = plural(gone.len(), "store");
    let text = format!("these workspaces are gone:\n{}", listed.collect::<String>());
    invocation.output.text(&text)?;
    let answer = ask(&format!("remove {what} with all checkpoints? (y/n) "), invocation)?;
    if is_yes(answer.as_deref()) {
        return Ok(true);
    }
    invocation.output.note("nothing was removed");
    Ok(false)
}

fn forget_gone(found: &mut Vec<WorkspaceEntry>, invocation: &Invocation) -> Result<(), Failure> {
    for entry in found.extract_if(.., |entry| entry.is_gone) {
        backtrail::forget(&entry.store, None, invocation.patience())?;
        invocation.output.note(&format!("removed the store of {}: {}", entry.path.display(), extent(&entry)));
    }
    Ok(())
}

fn forget_one(directory: &Path, yes: bool, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let entry = find(directory, invocation)?;
    if !yes {
        let hint = format!("confirm with: backtrail workspaces --forget {} --yes", shell_path(&entry.path));
        let message = format!("this removes the store of {} for good: {}", entry.path.display(), extent(&entry));
        return Err(Failure::usage(message, Some(&hint)));
    }
    backtrail::forget(&entry.store, Some(&one_spelling(&invocation.file(directory)?)), invocation.patience())?;
    let output = &invocation.output;
    if output.is_json() {
        output.json(&ForgottenJson::new(&entry.path))?;
    } else {
        output.done(&format!("removed the store of {}: {}", visible_path(&entry.path), extent(&entry)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn extent(entry: &WorkspaceEntry) -> String {
    format!("{}, {}", plural(entry.checkpoints, "checkpoint"), bytes(entry.bytes))
}

/// Returns the workspace that this directory is or was.
fn find(directory: &Path, invocation: &Invocation) -> Result<WorkspaceEntry, Failure> {
    let stores = invocation.stores()?;
    let path = one_spelling(&invocation.file(directory)?);
    // The store of a moved workspace still records the old path.
    let store = locate(&Start::At(path.clone()), &stores, None).ok().map(|location| location.store);
    let entries = backtrail::workspaces(&stores)?;
    // If a new directory has this path, the path means that one. Otherwise it means the workspace that had it last.
    let by_path =
        || entries.iter().filter(|entry| !path.is_dir() && entry.path == path).min_by_key(|entry| !entry.is_gone);
    // The user can also name the store itself: this is the only way to distinguish stores with the same path.
    let is_named = |entry: &&WorkspaceEntry| one_spelling(&entry.store) == path || Some(&entry.store) == store.as_ref();
    let found = entries.iter().find(is_named).or_else(by_path);
    found.cloned().ok_or_else(|| {
        let message = format!("{} is not a workspace with a store", path.display());
        Failure::usage(message, Some("list the workspaces with: backtrail workspaces"))
    })
}

/// Returns the canonical path, as stores record it. If the path is gone, only its existing part is resolved.
fn one_spelling(path: &Path) -> PathBuf {
    if let Ok(canonical) = path.canonicalize() {
        return canonical;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => one_spelling(parent).join(name),
        _ => path.to_owned(),
    }
}
