//! Restore plans as values, and edits between undo and redo.

use backtrail::{ErrorCode, RestoreRequest};
use backtrail_testkit::{TestWorkspace, git_directory_bytes};

use super::*;

#[test]
fn the_hash_of_a_plan_is_stable_and_depends_on_every_change() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.write("d/b", "1\n");
    let one = ws.save();
    ws.write("a", "2\n");
    let request = RestoreRequest::whole(one.id);
    let hash = |request: &RestoreRequest| ws.open().plan_restore(request).unwrap().hash;
    let first = hash(&request);
    assert_eq!(hash(&request), first);
    ws.remove("a");
    ws.write("a", "2\n");
    assert_eq!(hash(&request), first, "times are not part of the hash");
    assert_ne!(hash(&RestoreRequest { exact: true, ..request.clone() }), first);
    assert_ne!(hash(&request_for_paths(&ws, &one, &["a"])), first);
    ws.chmod("a", 0o600);
    assert_ne!(hash(&request), first, "permission bits are part of the hash");
    ws.chmod("a", 0o644);
    ws.write("a", "3\n");
    let with_plan = |hash: &str| RestoreRequest { plan: Some(hash.to_owned()), ..request.clone() };
    let error = ws.open().restore(&with_plan(&first), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::PlanChanged);
    assert_eq!(ws.read("a").unwrap(), b"3\n");
    let outcome = ws.open().restore(&with_plan(&hash(&request)), ws.now()).unwrap();
    assert_eq!(ws.read("a").unwrap(), b"1\n");
    assert!(outcome.applied);
}

#[test]
fn planning_a_restore_writes_nothing() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    ws.write("a", "2\n");
    ws.write("new", "2\n");
    let (before, store) = (stamps(&ws, &[]), git_directory_bytes(&ws.store()));
    let plan = ws.open().plan_restore(&RestoreRequest::whole(one.id)).unwrap();
    assert_eq!(plan.changes.len(), 2);
    assert_eq!(stamps(&ws, &[]), before);
    store.assert_same(&git_directory_bytes(&ws.store()), "the store");
}

#[test]
fn redo_brings_back_edits_made_before_the_undo() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    ws.write("a", "2\n");
    ws.save();
    restore(&ws, &one);
    ws.write("a", "edited after the restore\n");
    ws.write("b", "new after the restore\n");
    let edited = ws.manifest();
    undo(&ws);
    assert_eq!(ws.read("a").unwrap(), b"2\n");
    assert!(!ws.exists("b"));
    redo(&ws);
    edited.assert_same(&ws.manifest(), "redone");
    undo(&ws);
    restore(&ws, &one);
    assert!(ws.open().redo(ws.now()).unwrap().is_none(), "a new restore clears the redo");
}

#[test]
fn undo_can_return_to_a_workspace_without_a_current_checkpoint() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    ws.write("a", "2\n");
    let safety = restore(&ws, &one).safety.unwrap();
    ws.open().delete(&[one.id], false, ws.now()).unwrap();
    assert_eq!(ws.open().current().unwrap(), None, "its checkpoint was deleted");
    ws.open().restore(&RestoreRequest::whole(safety), ws.now()).unwrap();
    assert_eq!(ws.open().current().unwrap(), Some(safety));
    undo(&ws);
    assert_eq!(ws.read("a").unwrap(), b"1\n");
    assert_eq!(ws.open().current().unwrap(), None);
    redo(&ws);
    assert_eq!(ws.open().current().unwrap(), Some(safety));
}
