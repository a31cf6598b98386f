//! The log of events stays small, whichever operation writes to it.

use std::{fs, os::fd::AsFd, time::Duration};

use backtrail::{ErrorCode, Options};
use backtrail_testkit::TestWorkspace;
use rustix::fs::{FlockOperation, flock};

/// Regression: the file grew without limit if only failures were logged.
#[test]
fn the_log_stays_small_if_only_failures_are_logged() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let id = ws.save().id;
    let file = ws.store().join("backtrail/events.jsonl");
    let line = format!("{}\n", serde_json::json!({"event": "error", "message": "x".repeat(1_000)}));
    fs::write(&file, line.repeat(1_100)).unwrap();
    let impatient = ws.open_as(&ws.root(), Options { patience: Duration::ZERO, ..Options::default() });
    let fail = || impatient.pin(&id, ws.now()).unwrap_err().code();

    let lock = fs::File::open(ws.store().join("backtrail/lock")).unwrap();
    flock(lock.as_fd(), FlockOperation::LockExclusive).unwrap();
    assert_eq!(fail(), ErrorCode::Busy);
    assert!(fs::metadata(&file).unwrap().len() > 1 << 20, "the log was truncated while another process held the lock");
    assert_eq!(ws.open().events().unwrap().len(), 1_101);
    flock(lock.as_fd(), FlockOperation::Unlock).unwrap();

    fs::remove_dir(ws.store().join("refs/pinned")).ok();
    fs::write(ws.store().join("refs/pinned"), "").unwrap();
    assert_eq!(fail(), ErrorCode::Io);
    assert!(fs::metadata(&file).unwrap().len() < 600 << 10);
    let kept = ws.open().events().unwrap();
    assert!(kept.last().unwrap().contains("\"io\""), "{:?}", kept.last());
}
