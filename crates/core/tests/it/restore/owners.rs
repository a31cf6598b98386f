//! Ownership of restored entries if root restores another user's workspace. These tests need root.

use std::os::unix::{
    fs::{PermissionsExt, chown, lchown},
    process::CommandExt,
};

use backtrail::SaveRequest;
use backtrail_testkit::TestWorkspace;

use super::*;
use crate::other_user::{self, OTHER_USER, is_root};

fn owner(ws: &TestWorkspace, name: &str) -> (u32, u32) {
    let found = std::fs::symlink_metadata(ws.path(name)).unwrap();
    (found.uid(), found.gid())
}

fn mode(ws: &TestWorkspace, name: &str) -> u32 {
    std::fs::metadata(ws.path(name)).unwrap().permissions().mode() & 0o7777
}

#[test]
fn entries_that_root_restores_belong_to_the_owner_of_the_workspace() {
    if !is_root() {
        return;
    }
    let ws = TestWorkspace::new();
    ws.write("d/e/file", "1\n");
    ws.symlink("file", "d/e/link");
    ws.symlink("nowhere", "link");
    ws.mkdir("empty");
    let one = ws.save();
    for name in ["d", "link", "empty"] {
        ws.remove(name);
    }
    chown(ws.root(), Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    // With the set-group-id bit, the kernel sets the group of new entries. The user must be set nonetheless.
    ws.chmod("", 0o2755);
    restore(&ws, &one);
    for name in ["d", "d/e", "d/e/file", "d/e/link", "link", "empty"] {
        assert_eq!(owner(&ws, name), (OTHER_USER, OTHER_USER), "{name}");
    }
    assert_eq!(mode(&ws, "d"), 0o755);
}

#[test]
fn a_restore_never_makes_a_file_run_as_another_user() {
    if !is_root() {
        return;
    }
    let ws = TestWorkspace::new();
    ws.write("tool", "1\n");
    chown(ws.path("tool"), Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    ws.chmod("tool", 0o6755);
    ws.write_mode("own", "1\n", 0o4755);
    let one = ws.save();
    let shown = ws.open().status(None).unwrap();
    assert_eq!(shown.changes, [], "bits that are not captured are not compared");
    ws.remove("tool");
    ws.write("tool", "2\n");
    restore(&ws, &one);
    assert_eq!(
        (mode(&ws, "tool"), owner(&ws, "tool").0),
        (0o755, 0),
        "set-user-id bits of another user do not apply to root's file"
    );
    assert_eq!(mode(&ws, "own"), 0o4755);
    // The set-user-id bit of root's file does not apply to another user's file either.
    ws.remove("own");
    ws.write("own", "2\n");
    chown(ws.path("own"), Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    restore(&ws, &one);
    assert_eq!((mode(&ws, "own"), owner(&ws, "own").0), (0o755, OTHER_USER));
}

/// Set-user-id bits in another user's store were captured from files of that user, and must not apply to files of root.
#[test]
fn another_users_store_makes_nothing_run_as_root() {
    if !is_root() {
        return;
    }
    let ws = TestWorkspace::new();
    ws.write_mode("tool", "1\n", 0o4755);
    let one = ws.save();
    chown_to_other_user(&ws.base());
    chown(ws.store(), Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    ws.remove("tool");
    ws.write("tool", "2\n");
    restore(&ws, &one);
    assert_eq!((mode(&ws, "tool"), owner(&ws, "tool").0), (0o755, 0));
    ws.chmod("tool", 0o644);
    restore(&ws, &one);
    assert_eq!(mode(&ws, "tool"), 0o755);
}

fn chown_to_other_user(place: &std::path::Path) {
    lchown(place, Some(OTHER_USER), Some(OTHER_USER)).unwrap();
    if place.symlink_metadata().unwrap().is_dir() {
        std::fs::read_dir(place).unwrap().for_each(|entry| chown_to_other_user(&entry.unwrap().path()));
    }
}

/// Root captures files that their owner can't read. A restore by the owner must not stop half-way once such a file is
/// unreadable again.
#[test]
fn a_restore_of_unreadable_files_can_be_finished_by_an_ordinary_user() {
    if !is_root() {
        return;
    }
    let (_directory, program) = other_user::program();
    let prepared = || {
        let ws = TestWorkspace::new();
        ws.write_mode("set-in-place", "1\n", 0o000);
        ws.write_mode("edited", "1\n", 0o200);
        ws.write_mode("gone", "1\n", 0o000);
        ws.write("closed/file", "1\n");
        ws.chmod("closed", 0o300);
        ws.write("last", "1\n");
        ws.save_with(&SaveRequest { name: Some("one".into()), ..SaveRequest::default() });
        ws.chmod("set-in-place", 0o644);
        ws.chmod("edited", 0o644);
        ws.chmod("closed", 0o755);
        ws.write("edited", "2\n");
        ws.remove("gone");
        ws.remove("closed");
        ws.write("last", "2\n");
        chown_to_other_user(&ws.base());
        ws
    };
    let run = |ws: &TestWorkspace, operation: &str, point: usize| {
        let mut command = Command::new(&program);
        command.args(["crash::child", "--exact", "--nocapture"]).current_dir("/").uid(OTHER_USER).gid(OTHER_USER);
        command.env("BACKTRAIL_CRASH_PLACE", ws.base()).env("BACKTRAIL_CRASH_OPERATION", operation);
        let output = command.env("BACKTRAIL_CRASH_POINT", point.to_string()).output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for point in 1.. {
        for operation in ["recover", "abort"] {
            let ws = prepared();
            let before = ws.manifest();
            let (is_done, restore_output) = run(&ws, "restore one", point);
            let (is_recovered, recover_output) = run(&ws, operation, 0);
            assert!(is_recovered, "killed at {point}, then {operation}: {restore_output}{recover_output}");
            let tree = ws.manifest();
            let is_new = ws.read("last").unwrap() == b"1\n";
            if is_new {
                assert_eq!(
                    (mode(&ws, "set-in-place"), mode(&ws, "edited"), mode(&ws, "gone")),
                    (0, 0o200, 0),
                    "{point}"
                );
                assert_eq!((mode(&ws, "closed"), ws.read("closed/file").unwrap()), (0o300, b"1\n".to_vec()), "{point}");
            } else {
                before.assert_same(&tree, &format!("killed at {point}, then {operation}"));
            }
            if is_done {
                return;
            }
        }
    }
}
