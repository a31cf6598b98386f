//! A full disk: operations that free space still work. The tests that mount a small file system need privileges.

use std::io::Write;

use backtrail::{CheckpointId, ErrorCode, Kind, RestoreRequest, SaveRequest, Settings};
use backtrail_testkit::{
    Random, TestWorkspace,
    crash::{Driver, Ended, Fault},
};

use crate::refused::Mounted;

const DRIVER: Driver = Driver { child_test: "crash::child" };
const ENOSPC: i32 = 28;

/// Returns a workspace whose stores are on a small file system of their own, or `None` if it can't be mounted.
fn on_small_disk() -> Option<(TestWorkspace, Mounted)> {
    let ws = TestWorkspace::new();
    let mounted = Mounted::over(ws.home()).filter(|mounted| mounted.remount("size=4m"));
    if mounted.is_none() {
        println!("skipped: mounting needs privileges");
    }
    Some((ws, mounted?))
}

/// Fills the file system of the store.
fn fill_disk(ws: &TestWorkspace) {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(ws.home().join("filler")).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
}

/// Saves checkpoints of a file that compresses badly, each in a pack of its own.
fn save_some(ws: &TestWorkspace, count: usize) -> Vec<CheckpointId> {
    let mut random = Random::new(11);
    let mut save = |_| {
        ws.write("noise", random.bytes(40_000));
        ws.save().id
    };
    (0..count).map(&mut save).collect()
}

/// Regression: a deletion failed if its entry was the first one in the log of operations, because there was no room.
#[test]
fn a_checkpoint_is_deleted_on_a_full_disk_with_an_empty_log() {
    let Some((ws, _mounted)) = on_small_disk() else { return };
    let ids = save_some(&ws, 3);
    assert!(!ws.store().join("backtrail/ops").exists());
    fill_disk(&ws);
    ws.open().delete(&ids[..1], false, ws.now()).unwrap();
    let left: Vec<_> = ws.open().list(&Default::default()).unwrap().into_iter().map(|one| one.id).collect();
    assert_eq!(left, [ids[2], ids[1]]);
    assert_eq!(ws.open().verify().unwrap().damaged.len(), 0);
}

/// `prune` removes data before it writes anything. Writes that then find no room are left to a later prune.
#[test]
fn prune_reclaims_space_on_a_full_disk() {
    let Some((ws, _mounted)) = on_small_disk() else { return };
    let ids = save_some(&ws, 20);
    ws.open().delete(&ids[..15], false, ws.now()).unwrap();
    fill_disk(&ws);
    let pruned = ws.open().prune(ws.now()).unwrap();
    assert!(pruned.bytes_after + 400_000 < pruned.bytes_before, "{} {}", pruned.bytes_before, pruned.bytes_after);
    assert_eq!(ws.open().verify().unwrap().damaged.len(), 0);
    let kept = ws.read("noise").unwrap();
    std::fs::remove_file(ws.home().join("filler")).unwrap();
    ws.open().restore(&RestoreRequest::whole(ids[15]), ws.now()).unwrap();
    assert_ne!(ws.read("noise").unwrap(), kept);
    ws.open().undo(ws.now()).unwrap();
    assert_eq!(ws.read("noise").unwrap(), kept);
    ws.assert_store_is_sound();
}

/// One run deletes the checkpoints that the policy expires, logs the deletions and reclaims the space.
#[test]
fn prune_applies_the_policy_on_a_full_disk() {
    let Some((ws, _mounted)) = on_small_disk() else { return };
    let mut random = Random::new(12);
    for _ in 0..5 {
        ws.write("noise", random.bytes(40_000));
        ws.save_with(&SaveRequest { kind: Some(Kind::Automatic), ..SaveRequest::default() });
    }
    assert!(!ws.store().join("backtrail/ops").exists());
    fill_disk(&ws);
    let mut settings = Settings::default();
    settings.retention.automatic = 2;
    let pruned = ws.open_with(&ws.root(), settings).prune(ws.now()).unwrap();
    assert_eq!((pruned.deleted.len(), pruned.kept), (3, 2));
    assert!(pruned.bytes_after + 100_000 < pruned.bytes_before, "{} {}", pruned.bytes_before, pruned.bytes_after);
    assert_eq!(ws.open().verify().unwrap().damaged.len(), 0);
}

#[test]
fn prune_fails_if_it_can_reclaim_nothing_on_a_full_disk() {
    let Some((ws, _mounted)) = on_small_disk() else { return };
    save_some(&ws, 3);
    fill_disk(&ws);
    let error = ws.open().prune(ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::NoSpace, "{error}");
    assert_eq!(ws.open().verify().unwrap().damaged.len(), 0);
    assert_eq!(ws.open().list(&Default::default()).unwrap().len(), 3);
}

/// Needs no privileges: the first attempt to write the log entry finds no room, and the second one does.
#[test]
fn a_log_entry_without_room_is_written_after_the_stat_cache_is_removed() {
    let prepared = || {
        let ws = TestWorkspace::new();
        ws.write("file", "1\n");
        ws.save_with(&SaveRequest { name: Some("one".into()), ..SaveRequest::default() });
        ws.write("file", "2\n");
        ws.save();
        ws
    };
    let points = DRIVER.points(&prepared().base(), "delete one");
    let log_entry = points.iter().position(|point| point == "append to store file").unwrap();
    let ws = prepared();
    assert!(ws.store().join("backtrail/stat-cache").exists());
    assert_eq!(DRIVER.run(&ws.base(), "delete one", log_entry + 1, Fault::Error(ENOSPC)), Ended::Done);
    assert!(!ws.store().join("backtrail/stat-cache").exists(), "the stat cache was not removed to make room");
    assert_eq!(ws.open().list(&Default::default()).unwrap().len(), 1);
    assert!(!ws.save_with(&SaveRequest::default()).created, "the next scan works without the stat cache");
}
