//! Obstacles in the way of a restore. A restore that fails changes nothing.

use std::process::Command;

use backtrail::{ErrorCode, ListFilter, RestoreRequest, SaveRequest};
use backtrail_testkit::{Found, TestWorkspace, git_directory_bytes};

use super::*;

#[test]
fn a_special_file_in_the_way_is_a_conflict() {
    let ws = TestWorkspace::new();
    ws.write("pipe", "was a file\n");
    ws.write("d/below", "1\n");
    ws.write("other", "1\n");
    let one = ws.save();
    ws.remove("pipe");
    make_fifo(&ws, "pipe");
    ws.remove("d");
    make_fifo(&ws, "d");
    ws.write("other", "2\n");
    let before = ws.manifest();
    let request = RestoreRequest::whole(one.id);
    assert_eq!(ws.open().plan_restore(&request).unwrap().conflicts.len(), 2);
    let checkpoints = ws.open().list(&ListFilter::default()).unwrap().len();
    assert_eq!(ws.open().restore(&request, ws.now()).unwrap_err().code(), ErrorCode::Conflict);
    before.assert_same(&ws.manifest(), "a refused restore");
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap().len(), checkpoints, "no checkpoint was taken");
    let outcome = ws.open().restore(&RestoreRequest { skip_conflicts: true, ..request }, ws.now()).unwrap();
    let conflicts: Vec<_> = outcome.conflicts.iter().map(|conflict| conflict.path.to_text().into_owned()).collect();
    assert_eq!(conflicts, ["d", "pipe"]);
    assert_eq!(ws.read("other").unwrap(), b"1\n");
    assert_eq!(ws.manifest().0[&b"pipe"[..]], Found::Special);
    assert_eq!(ws.manifest().0[&b"d"[..]], Found::Special);
    undo(&ws);
    before.assert_same(&ws.manifest(), "undone");
}

/// Regression: a path that was not restored was reported as added.
#[test]
fn a_path_below_an_obstacle_is_not_reported_as_changed() {
    let ws = TestWorkspace::new();
    ws.write("d/e/f", "1\n");
    ws.write("k", "1\n");
    let one = ws.save();
    ws.remove("d");
    make_fifo(&ws, "d");
    ws.write("k", "2\n");
    let request = RestoreRequest { skip_conflicts: true, ..request_for_paths(&ws, &one, &["d/e/f", "k"]) };
    let outcome = ws.open().restore(&request, ws.now()).unwrap();
    let changed: Vec<_> = outcome.changes.iter().map(|change| change.path.to_text()).collect();
    assert_eq!(changed, ["k"]);
    assert_eq!(outcome.conflicts.len(), 1);
}

#[test]
fn a_special_file_that_is_newer_than_the_checkpoint_stays() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    ws.write("new/file", "1\n");
    make_fifo(&ws, "new/pipe");
    restore(&ws, &one);
    assert!(!ws.exists("new/file"));
    assert_eq!(ws.manifest().0[&b"new/pipe"[..]], Found::Special);
}

#[test]
fn an_oversized_file_in_the_place_of_a_captured_one_is_a_conflict() {
    let ws = TestWorkspace::new();
    ws.write("backtrail.toml", "[scan]\nmax_file_bytes = 100\n");
    ws.write("a", "small\n");
    let one = ws.save();
    ws.write("a", [b'y'; 300]);
    let error = ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);
    assert_eq!(ws.read("a").unwrap(), [b'y'; 300]);
}

#[test]
fn a_directory_with_ignored_files_is_not_replaced_by_a_file() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.log\n");
    ws.write("x", "was a file\n");
    let one = ws.save();
    ws.remove("x");
    ws.write("x/new", "1\n");
    ws.write("x/kept.log", "ignored\n");
    let before = ws.manifest();
    let request = RestoreRequest::whole(one.id);
    assert_eq!(ws.open().restore(&request, ws.now()).unwrap_err().code(), ErrorCode::Conflict);
    before.assert_same(&ws.manifest(), "a refused restore");
    let outcome = ws.open().restore(&RestoreRequest { skip_conflicts: true, ..request }, ws.now()).unwrap();
    assert_eq!(outcome.conflicts.len(), 1);
    before.assert_same(&ws.manifest(), "the whole directory was in the way");
}

/// Removes one blob from the store, as a bad disk would.
fn lose_blob(ws: &TestWorkspace, bytes: &[u8]) {
    let lost = backtrail_testkit::blob_id(bytes);
    let listing = ws.store_git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    let listing = String::from_utf8(listing).unwrap();
    let kept: String = listing.lines().filter(|id| *id != lost).map(|id| format!("{id}\n")).collect();
    assert_ne!(kept.len(), listing.len(), "the blob is there at first");
    let packs = ws.store().join("objects/pack");
    let list = ws.outside().join("objects");
    std::fs::write(&list, kept).unwrap();
    let old: Vec<_> = std::fs::read_dir(&packs).unwrap().map(|entry| entry.unwrap().path()).collect();
    let script = format!("git pack-objects -q '{}/pack' < '{}'", packs.display(), list.display());
    let made = Command::new("sh").arg("-c").arg(script).current_dir(ws.store()).status().unwrap();
    assert!(made.success());
    old.into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn a_restore_that_lacks_a_blob_changes_nothing() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.write("lost", "the bytes that are lost\n");
    let one = ws.save();
    ws.write("a", "2\n");
    ws.write("lost", "2\n");
    ws.write("new", "2\n");
    let two = ws.save();
    ws.write("a", "3\n");
    lose_blob(&ws, b"the bytes that are lost\n");
    let before = ws.manifest();
    let error = ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreDamaged, "{error}");
    before.assert_same(&ws.manifest(), "a restore from a damaged store");
    assert!(!ws.store().join("backtrail/journal").exists());
    restore_paths(&ws, &one, &["a"]);
    assert_eq!(ws.read("a").unwrap(), b"1\n", "undamaged paths can be restored");
    restore(&ws, &two);
    assert_eq!(ws.read("a").unwrap(), b"2\n", "other checkpoints are not affected");
}

#[test]
fn a_missing_workspace_keeps_its_history() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    let workspace = ws.open();
    std::fs::rename(ws.root(), ws.base().join("unmounted")).unwrap();
    assert_eq!(workspace.restore(&RestoreRequest::whole(one.id), ws.now()).unwrap_err().code(), ErrorCode::Io);
    assert!(workspace.save(&SaveRequest::default(), ws.now()).is_err());
    assert!(!ws.root().exists(), "it is not created again");
    std::fs::rename(ws.base().join("unmounted"), ws.root()).unwrap();
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap().len(), 1);
    ws.write("a", "2\n");
    restore(&ws, &one);
    assert_eq!(ws.read("a").unwrap(), b"1\n");
}

#[test]
fn files_that_git_changed_since_the_checkpoint_are_restored() {
    let ws = TestWorkspace::new();
    ws.write(".gitattributes", "* text eol=crlf ident\n");
    ws.write("a", "$Id$\n");
    ws.write("untracked", "1\n");
    ws.git_init();
    let (old, one) = (ws.manifest(), ws.save());
    ws.git(&["checkout", "-q", "-b", "other"]);
    ws.write("a", "2\r\n");
    ws.git(&["commit", "-q", "-a", "-m", "by the agent"]);
    ws.git(&["clean", "-fdxq"]);
    ws.git(&["rm", "-q", "--cached", "untracked"]);
    ws.remove("untracked");
    ws.write("conflict", "1\n");
    let before = git_directory_bytes(&ws.path(".git"));
    restore(&ws, &one);
    old.assert_same(&ws.manifest(), "restored");
    undo(&ws);
    before.assert_same(&git_directory_bytes(&ws.path(".git")), ".git");
    ws.remove(".git");
    restore(&ws, &one);
    old.assert_same(&ws.manifest(), "restored without .git");
}
