//! Somebody who writes, or puts something else there, at the worst moment of a restore.

use super::*;

/// Killed while the directory is in the staging area, where nothing can be done with it.
#[test]
fn a_directory_that_takes_the_place_of_a_file_at_the_worst_moment_is_given_back() {
    let prepared = || {
        let ws = TestWorkspace::new();
        ws.write("kept", "k\n");
        save_as(&ws, "one");
        ws.write("file", "as the scan saw it\n");
        ws
    };
    let points = DRIVER.points(&prepared().base(), "displaced file one");
    let moves: Vec<usize> = (1..=points.len()).filter(|point| points[point - 1] == "move into place").collect();
    for taken in [false, true] {
        let ws = prepared();
        assert_eq!(DRIVER.run(&ws.base(), "displaced file one", moves[1], Fault::Kill), Ended::Killed);
        assert!(!ws.exists("file"), "it is in the staging area");
        if taken {
            ws.write("file", "somebody's\n");
        }
        let recovered = ws.open().recover(Way::Forward, ws.now()).unwrap();
        let place = if taken { "file.kept-1/inside" } else { "file/inside" };
        assert_eq!(ws.read(place).unwrap(), INTRUDER.as_bytes());
        assert!(recovered.conflicts.iter().any(|conflict| conflict.path.to_text() == "file"), "{recovered:?}");
        assert_no_leftovers(&ws, "a directory");
        ws.save();
    }
}

#[test]
fn what_two_wrote_into_one_file_at_the_worst_moments_is_kept_and_told() {
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
    assert_eq!(DRIVER.run(&ws.base(), "intruded-abort file", 0, Fault::Kill), Ended::Done, "both are told");
    assert_eq!(ws.read("file").unwrap(), b"as the scan saw it\n");
    // In checkpoints that can be listed and restored, not just somewhere in the store.
    for wanted in [INTRUDER, SECOND_INTRUDER] {
        let holds = |id: &backtrail::CheckpointId| {
            ws.tree_in_store(id)
                .iter()
                .any(|(path, _, blob)| path == b"file" && *blob == backtrail_testkit::blob_id(wanted.as_bytes()))
        };
        let all = ws.open().list(&ListFilter::default()).unwrap();
        assert!(all.iter().any(|found| holds(&found.id)), "{wanted:?} is in no checkpoint");
    }
    ws.assert_store_is_sound();
    assert_no_leftovers(&ws, "two intruders");
}

/// The branch stayed, and yet the outcome said that git stood where it had not gone, with the index of there.
#[test]
fn a_branch_that_is_locked_at_the_worst_moment_keeps_head_and_index_with_it() {
    use crate::restore_git::{standing, two_commits_in};
    let ws = TestWorkspace::new();
    two_commits_in(&ws);
    let before = standing(&ws);
    let ended = DRIVER.run(&ws.base(), "git-locked refs/heads/main one", 0, Fault::Kill);
    assert_eq!(ended, Ended::Done, "what stayed is told, and where git stands");
    ws.remove(".git/refs/heads/main.lock");
    assert_eq!(standing(&ws)[..4], before[..4]);
    assert_eq!(ws.read("file").unwrap(), b"edited, not committed\n");
    ws.open().undo(ws.now()).unwrap().unwrap();
    assert_eq!(standing(&ws), before);
    assert_no_leftovers(&ws, "a locked branch");
}

/// The ref that keeps a commit can't be made: the branch is not taken from it.
#[test]
fn a_commit_that_can_not_be_kept_keeps_its_branch() {
    use crate::restore_git::{standing, two_commits_in};
    let ws = TestWorkspace::new();
    two_commits_in(&ws);
    let before = standing(&ws);
    let kept = format!("refs/backtrail/{}", before[1]);
    assert_eq!(DRIVER.run(&ws.base(), &format!("git-locked {kept} one"), 0, Fault::Kill), Ended::Done);
    assert_eq!(standing(&ws)[..4], before[..4]);
}

fn an_intruder_loses_nothing(prepare: impl Fn(&TestWorkspace), step: &str) {
    let ws = TestWorkspace::new();
    ws.write("kept", "k\n");
    prepare(&ws);
    ws.write("file", "as the scan saw it\n");
    let operation = format!("intruded {step} file one");
    assert_eq!(DRIVER.run(&ws.base(), &operation, 0, Fault::Kill), Ended::Done, "{step}");
    let is_kept =
        ws.read("file").is_some_and(|bytes| bytes == INTRUDER.as_bytes()) || ws.is_in_store(INTRUDER.as_bytes());
    assert!(is_kept, "{step}: what was written in between is lost");
    assert!(ws.is_in_store(b"as the scan saw it\n"), "{step}: what the scan saw is lost");
    // What was kept of it is a later safety checkpoint than the one that undo needs.
    let mut settings = backtrail::Settings::default();
    settings.retention.safety = 1;
    ws.open_with(&ws.root(), settings).prune(ws.now()).unwrap();
    assert!(ws.is_in_store(b"as the scan saw it\n"), "{step}: undo needs it, and retention took it");
    ws.assert_store_is_sound();
    assert_no_leftovers(&ws, step);
}

#[test]
fn what_is_written_right_before_a_file_is_replaced_is_kept() {
    let replaced = |ws: &TestWorkspace| {
        ws.write("file", "one\n");
        save_as(ws, "one");
    };
    an_intruder_loses_nothing(replaced, "exchange");
}

#[test]
fn what_is_written_right_before_a_file_is_removed_is_kept() {
    let removed = |ws: &TestWorkspace| drop(save_as(ws, "one"));
    an_intruder_loses_nothing(removed, "move");
}

#[test]
fn a_directory_that_becomes_a_link_in_the_middle_of_a_restore_is_not_followed() {
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
    outside.assert_same(&Manifest::of(&ws.outside()), "what the link leads to");
    // The first file's directory was open when it was moved; the second was not reached, and nothing of it is lost.
    assert_eq!(ws.read("aside/a").unwrap(), b"one\n");
    assert_eq!(ws.read("aside/b").unwrap(), b"unsaved\n");
    assert!(ws.is_in_store(b"unsaved\n"));
    ws.assert_store_is_sound();
}
