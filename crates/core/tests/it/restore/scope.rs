//! Restores of some paths, or of the state alone: everything else stays as it is.

use std::os::unix::fs::PermissionsExt;

use backtrail::{ChangeStatus, ErrorCode, Only, RestoreRequest};
use backtrail_testkit::TestWorkspace;

use super::*;

#[test]
fn a_restore_of_paths_leaves_the_rest_as_it_is() {
    let ws = TestWorkspace::new();
    for name in ["a", "b", "d/x", "d/y", "d/e/z", "new-later/old"] {
        ws.write(name, "1\n");
    }
    let one = ws.save();
    for name in ["a", "b", "d/x", "d/y", "d/e/z", "added"] {
        ws.write(name, "2\n");
    }
    ws.write("d/e/new", "2\n");
    let (new, current) = (ws.manifest(), ws.open().current().unwrap());
    let before = stamps(&ws, &["d", "d/x", "d/e", "d/e/z", "d/e/new"]);
    let outcome = restore_paths(&ws, &one, &["d/x", "d/e"]);
    let expected =
        [("d/e/new", ChangeStatus::Deleted), ("d/e/z", ChangeStatus::Modified), ("d/x", ChangeStatus::Modified)];
    assert_eq!(changes(&outcome), expected.map(|(path, status)| (path.to_owned(), status)));
    assert_eq!(stamps(&ws, &["d", "d/x", "d/e", "d/e/z", "d/e/new"]), before);
    assert_eq!((ws.read("d/x").unwrap(), ws.read("d/e/z").unwrap()), (b"1\n".to_vec(), b"1\n".to_vec()));
    assert_eq!(ws.open().current().unwrap(), current, "`@` does not move");
    ws.write("b", "edited after\n");
    undo(&ws);
    assert_eq!(ws.read("b").unwrap(), b"edited after\n", "undo keeps to the scope");
    ws.write("b", "2\n");
    new.assert_same(&ws.manifest(), "undone");
}

#[test]
fn a_path_below_a_deleted_directory_is_restored_and_undo_removes_it_again() {
    let ws = TestWorkspace::new();
    ws.write("d/e/f/x", "1\n");
    ws.write("d/e/y", "1\n");
    ws.chmod("d/e", 0o700);
    let one = ws.save();
    ws.remove("d");
    let new = ws.manifest();
    restore_paths(&ws, &one, &["d/e/f/x"]);
    let found: Vec<_> = ws.manifest().0.into_keys().map(|path| String::from_utf8(path).unwrap()).collect();
    assert_eq!(found, ["d", "d/e", "d/e/f", "d/e/f/x"]);
    assert_eq!(stamp(&ws, "d/e").5 & 0o7777, 0o700);
    undo(&ws);
    new.assert_same(&ws.manifest(), "undone");
    redo(&ws);
    assert_eq!(ws.read("d/e/f/x").unwrap(), b"1\n");
}

#[test]
fn a_path_below_a_directory_that_became_a_file_is_restored() {
    let ws = TestWorkspace::new();
    ws.write("d/x", "1\n");
    ws.write("d/y", "1\n");
    let one = ws.save();
    ws.remove("d");
    ws.write("d", "a file, never saved\n");
    let new = ws.manifest();
    restore_paths(&ws, &one, &["d/x"]);
    assert_eq!(ws.read("d/x").unwrap(), b"1\n");
    assert!(!ws.exists("d/y") && ws.is_in_store(b"a file, never saved\n"));
    undo(&ws);
    new.assert_same(&ws.manifest(), "undone");
}

#[test]
fn a_restore_can_be_undone_after_a_restored_path_was_deleted() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.write("b", "1\n");
    let one = ws.save();
    ws.remove("a");
    ws.write("b", "2\n");
    restore_paths(&ws, &one, &["a", "b"]);
    ws.remove("a");
    undo(&ws);
    assert!(!ws.exists("a"));
    assert_eq!(ws.read("b").unwrap(), b"2\n");
    redo(&ws);
    assert!(!ws.exists("a"));
    assert_eq!(ws.read("b").unwrap(), b"1\n");
}

#[test]
fn an_unknown_path_is_an_error() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    ws.write("a", "2\n");
    let error = ws.open().restore(&request_for_paths(&ws, &one, &["a", "nowhere"]), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnknownPath);
    assert_eq!(ws.read("a").unwrap(), b"2\n");
}

#[test]
fn a_scoped_safety_checkpoint_is_restored_within_its_scope() {
    let ws = TestWorkspace::new();
    ws.write("x", "1\n");
    ws.write("y", "1\n");
    let one = ws.save();
    ws.write("x", "2\n");
    ws.write("y", "2\n");
    let safety = restore_paths(&ws, &one, &["x"]).safety.unwrap();
    let two = ws.save();
    ws.open().restore(&RestoreRequest::whole(safety), ws.now()).unwrap();
    assert_eq!((ws.read("x").unwrap(), ws.read("y").unwrap()), (b"2\n".to_vec(), b"2\n".to_vec()));
    // Outside of its scope, its tree is that of an older checkpoint. If it became `@`, `y` would be shown as changed.
    assert_eq!(ws.open().current().unwrap(), Some(two.id), "a restore of paths does not move `@`");
}

#[test]
fn files_and_state_can_be_restored_separately() {
    let ws = TestWorkspace::new();
    ws.write("backtrail.toml", "[state]\nfeatures = \"feature_list.json\"\nprogress = \"progress.md\"\n");
    ws.write(".gitignore", "progress.md\n");
    ws.write("progress.md", "one\n");
    ws.write("feature_list.json", "[]");
    ws.write("code", "one\n");
    let one = ws.save();
    for name in ["progress.md", "feature_list.json", "code"] {
        ws.write(name, "two\n");
    }
    let two = ws.save();
    let read =
        || ["progress.md", "feature_list.json", "code"].map(|name| String::from_utf8(ws.read(name).unwrap()).unwrap());
    let only = |only: Only| RestoreRequest { only, ..RestoreRequest::whole(one.id) };
    ws.open().restore(&only(Only::Files), ws.now()).unwrap();
    assert_eq!(read(), ["two\n", "two\n", "one\n"]);
    assert_eq!(ws.open().current().unwrap(), Some(one.id));
    undo(&ws);
    assert_eq!(read(), ["two\n", "two\n", "two\n"]);
    ws.open().restore(&only(Only::State), ws.now()).unwrap();
    assert_eq!(read(), ["one\n", "[]", "two\n"]);
    assert_eq!(ws.open().current().unwrap(), Some(two.id), "a restore of the state alone does not move `@`");
    undo(&ws);
    assert_eq!(read(), ["two\n", "two\n", "two\n"]);
}

/// A restore creates the parent directories of a named path. Undo removes them unless they contain something else.
#[test]
fn undo_of_one_path_keeps_other_files_in_its_parent_directories() {
    let ws = TestWorkspace::new();
    ws.write("d/e/x", "1\n");
    ws.write("d/y", "1\n");
    ws.write("f/g/x", "1\n");
    let one = ws.save();
    ws.remove("d");
    ws.remove("f");
    restore_paths(&ws, &one, &["d/e/x", "f/g/x"]);
    ws.write("d/other.txt", "mine\n");
    let before = ws.manifest();
    undo(&ws);
    assert!(!ws.exists("d/e") && !ws.exists("f"));
    assert_eq!(ws.read("d/other.txt").unwrap(), b"mine\n");
    ws.open().redo(ws.now()).unwrap().unwrap();
    before.assert_same(&ws.manifest(), "redone");
    ws.write("d/other.txt", "edited\n");
    ws.write("d/e/more", "mine, too\n");
    undo(&ws);
    assert!(!ws.exists("d/e/x") && !ws.exists("f"));
    assert_eq!(ws.read("d/other.txt").unwrap(), b"edited\n");
    assert_eq!(ws.read("d/e/more").unwrap(), b"mine, too\n");
}

#[test]
fn undo_keeps_a_file_that_replaced_a_restored_parent_directory() {
    let ws = TestWorkspace::new();
    ws.write("d/x", "1\n");
    let one = ws.save();
    ws.remove("d");
    ws.write("d", "was a file\n");
    restore_paths(&ws, &one, &["d/x"]);
    undo(&ws);
    assert_eq!(ws.read("d").unwrap(), b"was a file\n", "undo restores the file that the directory had replaced");
    ws.remove("d");
    restore_paths(&ws, &one, &["d/x"]);
    ws.remove("d");
    ws.write("d", "a file by now\n");
    undo(&ws);
    assert_eq!(ws.read("d").unwrap(), b"a file by now\n");
    ws.remove("d");
    ws.open().redo(ws.now()).unwrap().unwrap();
    assert!(!ws.exists("d"), "`d` itself was not in the scope");
}

/// Regression: the safety checkpoint took the permissions of a parent directory from the previous checkpoint, and a
/// private directory came back open to other users.
#[test]
fn a_parent_directory_of_a_path_is_restored_with_its_permissions() {
    let ws = TestWorkspace::new();
    ws.write("d/x", "1\n");
    let one = ws.save();
    ws.chmod("d", 0o700);
    ws.write("d/x", "2\n");
    restore_paths(&ws, &one, &["d/x"]);
    ws.remove("d");
    undo(&ws);
    assert_eq!(ws.read("d/x").unwrap(), b"2\n");
    assert_eq!(std::fs::metadata(ws.path("d")).unwrap().permissions().mode() & 0o7777, 0o700);
}
