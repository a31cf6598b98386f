//! FIFOs and sockets are named, and never opened.

use std::{os::unix::net::UnixListener, process::Command};

use backtrail::{Reason, SaveRequest};
use backtrail_testkit::TestWorkspace;

fn fifo(ws: &TestWorkspace, name: &str) {
    assert!(Command::new("mkfifo").arg(ws.path(name)).status().unwrap().success());
}

#[test]
fn special_files_are_left_out_and_named() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "1");
    fifo(&ws, "d/pipe");
    let _socket = UnixListener::bind(ws.path("socket")).unwrap();
    let saved = ws.save_with(&SaveRequest::default());
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["d/a"]);
    let skipped: Vec<_> =
        saved.skipped.iter().map(|skipped| (skipped.path.to_text().into_owned(), skipped.reason)).collect();
    assert_eq!(skipped, [("d/pipe".to_owned(), Reason::Special), ("socket".to_owned(), Reason::Special)]);
    assert!(saved.checkpoint.complete);
    let again = ws.save_with(&SaveRequest::default());
    assert!(!again.created);
    assert_eq!(again.skipped, saved.skipped, "a save that finds nothing new still names them");
}

#[test]
fn a_file_that_becomes_special_is_not_called_deleted() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.write("b", "1");
    ws.save();
    ws.remove("a");
    fifo(&ws, "a");
    assert_eq!(ws.open().status(None).unwrap().changes, []);
    ws.write("b", "2");
    let saved = ws.save();
    assert_eq!(saved.files_changed, [ws.workspace_path("b")]);
    assert_eq!(ws.open().show(&saved.id).unwrap().changes.len(), 1);
    ws.remove("a");
    ws.write("a", "2");
    let back = ws.save();
    assert_eq!(ws.paths_in_store(&back.id), ["a", "b"]);
}

#[test]
fn a_directory_with_nothing_but_a_special_file_is_no_empty_directory() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.mkdir("run");
    fifo(&ws, "run/pipe");
    let saved = ws.save();
    assert_eq!(saved.files_changed, [ws.workspace_path("a")]);
}

#[test]
fn rules_and_settings_that_are_special_files_do_not_block() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    fifo(&ws, ".gitignore");
    fifo(&ws, "backtrail.toml");
    let saved = ws.save();
    assert_eq!(ws.paths_in_store(&saved.id), ["a"]);
}
