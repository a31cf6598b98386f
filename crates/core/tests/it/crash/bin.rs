//! A deletion, its undo, and emptying the bin are done for all of their checkpoints, or for none.

use std::collections::{BTreeMap, BTreeSet};

use backtrail::{Checkpoint, CheckpointId, RestoreRequest};
use backtrail_testkit::{
    TestWorkspace,
    crash::{Ended, Fault},
};

use super::{DRIVER, EIO, ENOSPC, assert_no_leftovers, by_name, make_every_kind_of_change};

fn prepared() -> TestWorkspace {
    let ws = TestWorkspace::new();
    make_every_kind_of_change(&ws);
    ws.open().pin(&by_name(&ws, "one").id, ws.now()).unwrap();
    ws
}

fn with_deletion() -> (TestWorkspace, BTreeSet<CheckpointId>) {
    let ws = prepared();
    let ids: Vec<_> = ["one", "two"].map(|name| by_name(&ws, name).id).to_vec();
    ws.open().delete(&ids, false, ws.now()).unwrap();
    (ws, ids.into_iter().collect())
}

/// The names of the checkpoints that exist, and of those in the bin, each with its id.
fn found(ws: &TestWorkspace) -> [BTreeMap<String, CheckpointId>; 2] {
    let named = |checkpoint: Checkpoint| (checkpoint.name.unwrap_or_default(), checkpoint.id);
    let listed = ws.open().list(&Default::default()).unwrap().into_iter().map(named).collect();
    let binned = ws.open().deleted().unwrap().into_iter().map(|deleted| named(deleted.checkpoint)).collect();
    [listed, binned]
}

/// Returns the names alone: the ids differ from one workspace to the next.
fn names([listed, binned]: &[BTreeMap<String, CheckpointId>; 2]) -> [BTreeSet<String>; 2] {
    [listed, binned].map(|found| found.keys().cloned().collect())
}

/// Stops the operation at each of its points. What is found then must be what was there before it, or after it, and
/// the next command must leave it so.
fn sweep(name: &str, make: &dyn Fn() -> TestWorkspace, operation: &str) {
    let ws = make();
    let old = names(&found(&ws));
    let points = DRIVER.points(&ws.base(), operation);
    let new = names(&found(&ws));
    assert_ne!(old, new, "{name} does nothing");
    for point in 1..=points.len() {
        for fault in [Fault::Kill, Fault::Error(EIO), Fault::Error(ENOSPC)] {
            let what = format!("{name}, {fault:?} at point {point} ({})", points[point - 1]);
            let ws = make();
            let ended = DRIVER.run(&ws.base(), operation, point, fault);
            let mut kept = found(&ws);
            let seen = names(&kept);
            // On a full disk, checkpoints may be deleted for good, which frees space.
            let gone = [new[0].clone(), BTreeSet::new()];
            let may_be_gone = fault == Fault::Error(ENOSPC) && seen == gone;
            assert!(seen == old || seen == new || may_be_gone, "{what}, {ended:?}: {seen:?}");
            if ended == Ended::Done {
                assert!(seen == new || may_be_gone, "{what}: reported as done");
            }
            let verified = ws.open().verify().unwrap();
            assert!(verified.damaged.is_empty(), "{what}: {:?}", verified.damaged);
            ws.write("after", "the next command works\n");
            let saved = ws.save().id;
            kept[0].insert(String::new(), saved);
            assert_eq!(found(&ws), kept, "{what}: the next save changed it");
            assert_no_leftovers(&ws, &what);
            assert_refs_agree(&ws, &kept, &what);
            ws.assert_store_is_sound();
            // Every byte of a checkpoint in the bin is there.
            if !kept[1].is_empty() {
                assert_eq!(ws.open().undo(ws.now()).unwrap().unwrap().undeleted.len(), kept[1].len(), "{what}");
                let first = *kept[1].values().next().unwrap();
                ws.open()
                    .restore(
                        &RestoreRequest { exact: true, skip_conflicts: true, ..RestoreRequest::whole(first) },
                        ws.now(),
                    )
                    .unwrap();
            }
        }
    }
}

fn assert_refs_agree(ws: &TestWorkspace, [listed, binned]: &[BTreeMap<String, CheckpointId>; 2], what: &str) {
    for (below, expected) in [("refs/checkpoints", listed), ("refs/deleted", binned)] {
        let refs = String::from_utf8(ws.store_git(&["for-each-ref", "--format=%(objectname)", below])).unwrap();
        let ids: BTreeSet<CheckpointId> = refs.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(ids, expected.values().copied().collect(), "{what}: {below}");
    }
}

#[test]
fn delete_is_done_or_not_after_a_kill_at_every_point() {
    sweep("delete of two", &prepared, "delete one two");
}

#[test]
fn the_undo_of_a_deletion_is_done_or_not_after_a_kill_at_every_point() {
    sweep("undo of delete", &|| with_deletion().0, "undo");
}

#[test]
fn the_redo_of_a_deletion_is_done_or_not_after_a_kill_at_every_point() {
    let make = || {
        let (ws, _) = with_deletion();
        ws.open().undo(ws.now()).unwrap();
        ws
    };
    sweep("redo of delete", &make, "redo");
}

#[test]
fn emptying_the_bin_is_done_or_not_after_a_kill_at_every_point() {
    sweep("empty the bin", &|| with_deletion().0, "empty-bin");
}
