//! Restores of real trees: the paths that a restore changes, and the paths that it must not touch.

mod flips;
mod left_out;
mod links;
mod obstacles;
mod ordinary;
mod owners;
mod plan;
mod scope;
mod staging;
mod types;
mod writers;

use std::{os::unix::fs::MetadataExt, process::Command};

use backtrail::{ChangeStatus, Checkpoint, RestoreOutcome, RestoreRequest, Scope};
use backtrail_testkit::TestWorkspace;

#[track_caller]
fn restore(ws: &TestWorkspace, to: &Checkpoint) -> RestoreOutcome {
    ws.open().restore(&RestoreRequest::whole(to.id), ws.now()).unwrap()
}

fn request_for_paths(ws: &TestWorkspace, to: &Checkpoint, paths: &[&str]) -> RestoreRequest {
    let scope = Scope::of_paths(paths.iter().map(|path| ws.workspace_path(path)).collect());
    RestoreRequest { scope, ..RestoreRequest::whole(to.id) }
}

#[track_caller]
fn restore_paths(ws: &TestWorkspace, to: &Checkpoint, paths: &[&str]) -> RestoreOutcome {
    ws.open().restore(&request_for_paths(ws, to, paths), ws.now()).unwrap()
}

#[track_caller]
fn undo(ws: &TestWorkspace) -> RestoreOutcome {
    ws.open().undo(ws.now()).unwrap().unwrap()
}

#[track_caller]
fn redo(ws: &TestWorkspace) -> RestoreOutcome {
    ws.open().redo(ws.now()).unwrap().unwrap()
}

fn make_fifo(ws: &TestWorkspace, name: &str) {
    assert!(Command::new("mkfifo").arg(ws.path(name)).status().unwrap().success());
}

fn changes(outcome: &RestoreOutcome) -> Vec<(String, ChangeStatus)> {
    outcome.changes.iter().map(|change| (change.path.to_text().into_owned(), change.status)).collect()
}

/// The inode, the times and the mode of a path. It differs if the path was touched.
type Stamp = (u64, i64, i64, i64, i64, u32);

fn stamp(ws: &TestWorkspace, name: &str) -> Stamp {
    let found = std::fs::symlink_metadata(ws.path(name)).unwrap();
    (found.ino(), found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec(), found.mode())
}

fn stamps(ws: &TestWorkspace, except: &[&str]) -> Vec<(String, Stamp)> {
    let paths = ws.manifest().0.into_keys().map(|path| String::from_utf8(path).unwrap());
    paths.filter(|path| !except.contains(&path.as_str())).map(|path| (path.clone(), stamp(ws, &path))).collect()
}

/// Saves the tree of `before`, changes it with `after`, and moves between the two by restore, undo and redo. The tree
/// must be exact each time.
#[track_caller]
fn assert_round_trip(before: impl Fn(&TestWorkspace), after: impl Fn(&TestWorkspace)) {
    let ws = TestWorkspace::new();
    ws.write("beside", "untouched\n");
    before(&ws);
    let (old, one) = (ws.manifest(), ws.save());
    after(&ws);
    let new = ws.manifest();
    restore(&ws, &one);
    old.assert_same(&ws.manifest(), "restored");
    undo(&ws);
    new.assert_same(&ws.manifest(), "undone");
    redo(&ws);
    old.assert_same(&ws.manifest(), "redone");
    undo(&ws);
    let two = ws.save();
    restore(&ws, &one);
    old.assert_same(&ws.manifest(), "restored again");
    restore(&ws, &two);
    new.assert_same(&ws.manifest(), "restored to the second");
    ws.assert_store_is_sound();
}
