//! Another process writes to a file or replaces it at the worst moment of a restore.

use super::*;

/// The restore is killed while that directory is in the staging area, so recovery has to move it back.
#[test]
fn a_directory_that_replaces_a_file_during_a_restore_is_moved_back() {
    let prepared = || {
        let ws = TestWorkspace::new();
        ws.write("kept", "k\n");
        save_as(&ws, "one");
        ws.write("file", "as the scan saw it\n");
        ws
    };
    let points = DRIVER.points(&prepared().base(), "displaced file one");
    let moves: Vec<usize> = (1..=points.len()).filter(|point| points[point - 1] == "move into place").collect();
    for is_path_taken in [false, true] {
        let ws = prepared();
        assert_eq!(DRIVER.run(&ws.base(), "displaced file one", moves[1], Fault::Kill), Ended::Killed);
        assert!(!ws.exists("file"), "the directory is in the staging area");
        if is_path_taken {
            ws.write("file", "of another process\n");
        }
        let recovered = ws.open().recover(Way::Forward, ws.now()).unwrap();
        let place = if is_path_taken { "file.kept-1/inside" } else { "file/inside" };
        assert_eq!(ws.read(place).unwrap(), LATE_WRITE.as_bytes());
        assert!(recovered.conflicts.iter().any(|conflict| conflict.path.to_text() == "file"), "{recovered:?}");
        assert_no_leftovers(&ws, "a directory in place of a file");
        ws.save();
    }
}

#[test]
fn two_writes_to_one_file_during_a_restore_are_kept_and_reported() {
    let prepared = || {
        let ws = TestWorkspace::new();
        ws.write("file", "one\n");
        save_as(&ws, "one");
        ws.write("file", "as the scan saw it\n");
        ws
    };
    let points = DRIVER.points(&prepared().base(), "intruded exchange file one");
    let exchange = points.iter().position(|point| point == "exchange").unwrap() + 1;
    let ws = prepared();
    let killed = DRIVER.run(&ws.base(), "intruded exchange file one", exchange + 1, Fault::Kill);
    assert_eq!((killed, ws.read("file").unwrap()), (Ended::Killed, b"one\n".to_vec()));
    assert_eq!(DRIVER.run(&ws.base(), "intruded-abort file", 0, Fault::Kill), Ended::Done, "both writes are reported");
    assert_eq!(ws.read("file").unwrap(), b"as the scan saw it\n");
    // Both must be in checkpoints that can be listed and restored, not only in the store.
    for wanted in [LATE_WRITE, SECOND_LATE_WRITE] {
        let holds = |id: &backtrail::CheckpointId| {
            ws.tree_in_store(id)
                .iter()
                .any(|(path, _, blob)| path == b"file" && *blob == backtrail_testkit::blob_id(wanted.as_bytes()))
        };
        let all = ws.open().list(&ListFilter::default()).unwrap();
        assert!(all.iter().any(|found| holds(&found.id)), "{wanted:?} is in no checkpoint");
    }
    ws.assert_store_is_sound();
    assert_no_leftovers(&ws, "two writes during a restore");
}

/// Regression: the branch did not move, but the outcome reported the new commit, and the index was the new commit's.
#[test]
fn a_branch_locked_during_a_restore_keeps_its_head_and_index() {
    use crate::restore_git::{standing, two_commits_in};
    let ws = TestWorkspace::new();
    two_commits_in(&ws);
    let before = standing(&ws);
    let ended = DRIVER.run(&ws.base(), "git-locked refs/heads/main one", 0, Fault::Kill);
    assert_eq!(ended, Ended::Done, "the outcome reports the branch that stayed and the commit of HEAD");
    ws.remove(".git/refs/heads/main.lock");
    assert_eq!(standing(&ws)[..4], before[..4]);
    assert_eq!(ws.read("file").unwrap(), b"edited, not committed\n");
    ws.open().undo(ws.now()).unwrap().unwrap();
    assert_eq!(standing(&ws), before);
    assert_no_leftovers(&ws, "a locked branch");
}

/// The ref that keeps the old commit can't be created, so the branch must not move.
#[test]
fn a_branch_does_not_move_if_its_commit_cannot_be_kept() {
    use crate::restore_git::{standing, two_commits_in};
    let ws = TestWorkspace::new();
    two_commits_in(&ws);
    let before = standing(&ws);
    let kept = format!("refs/backtrail/{}", before[1]);
    assert_eq!(DRIVER.run(&ws.base(), &format!("git-locked {kept} one"), 0, Fault::Kill), Ended::Done);
    assert_eq!(standing(&ws)[..4], before[..4]);
}

fn assert_write_during_restore_is_kept(prepare: impl Fn(&TestWorkspace), step: &str) {
    let ws = TestWorkspace::new();
    ws.write("kept", "k\n");
    prepare(&ws);
    ws.write("file", "as the scan saw it\n");
    let operation = format!("intruded {step} file one");
    assert_eq!(DRIVER.run(&ws.base(), &operation, 0, Fault::Kill), Ended::Done, "{step}");
    let is_kept =
        ws.read("file").is_some_and(|bytes| bytes == LATE_WRITE.as_bytes()) || ws.is_in_store(LATE_WRITE.as_bytes());
    assert!(is_kept, "{step}: the write during the restore is lost");
    assert!(ws.is_in_store(b"as the scan saw it\n"), "{step}: the content that the scan saw is lost");
    // The write is kept in a later safety checkpoint than the one that undo needs.
    let mut settings = backtrail::Settings::default();
    settings.retention.safety = 1;
    ws.open_with(&ws.root(), settings).prune(ws.now()).unwrap();
    assert!(ws.is_in_store(b"as the scan saw it\n"), "{step}: retention removed content that undo needs");
    ws.assert_store_is_sound();
    assert_no_leftovers(&ws, step);
}

#[test]
fn a_write_right_before_a_file_is_replaced_is_kept() {
    let replaced = |ws: &TestWorkspace| {
        ws.write("file", "one\n");
        save_as(ws, "one");
    };
    assert_write_during_restore_is_kept(replaced, "exchange");
}

#[test]
fn a_write_right_before_a_file_is_removed_is_kept() {
    let removed = |ws: &TestWorkspace| drop(save_as(ws, "one"));
    assert_write_during_restore_is_kept(removed, "move");
}

#[test]
fn a_directory_that_becomes_a_symlink_during_a_restore_is_not_followed() {
    let ws = TestWorkspace::new();
    for name in ["d/a", "d/b"] {
        ws.write(name, "one\n");
    }
    save_as(&ws, "one");
    for name in ["d/a", "d/b"] {
        ws.write(name, "unsaved\n");
    }
    for name in ["a", "b"] {
        std::fs::write(ws.outside().join(name), "outside\n").unwrap();
    }
    let outside = Manifest::of(&ws.outside());
    assert_eq!(DRIVER.run(&ws.base(), "swapped d one", 0, Fault::Kill), Ended::Done);
    outside.assert_same(&Manifest::of(&ws.outside()), "the target of the link");
    // The directory was open for the first file when it was moved. The second file was not reached and is not lost.
    assert_eq!(ws.read("aside/a").unwrap(), b"one\n");
    assert_eq!(ws.read("aside/b").unwrap(), b"unsaved\n");
    assert!(ws.is_in_store(b"unsaved\n"));
    ws.assert_store_is_sound();
}
