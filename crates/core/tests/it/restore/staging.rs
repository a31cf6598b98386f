//! Staging areas. No directory of the user's may be mistaken for one.

use std::path::Path;

use backtrail_testkit::TestWorkspace;

use super::{restore, undo};
use crate::hostile::crc32;

/// Regression: a directory of the user's with the name of a staging area was neither captured nor kept.
#[test]
fn a_directory_with_the_name_of_a_staging_area_is_captured_and_kept() {
    let memory = Path::new("/dev/shm");
    let elsewhere = || if memory.is_dir() { TestWorkspace::with_stores_below(memory) } else { TestWorkspace::new() };
    for ws in [TestWorkspace::new(), elsewhere()] {
        let area = ".backtrail-f36cf7ecd1fcfda0";
        ws.write(format!("{area}/notes"), "precious\n");
        ws.write(format!("{area}/.gitignore"), "*.o\n");
        ws.write("x", "1\n");
        let saved = ws.save();
        let before = ws.manifest();
        ws.write("x", "2\n");
        restore(&ws, &saved);
        before.assert_same(&ws.manifest(), "after the restore");
        ws.remove(area);
        restore(&ws, &saved);
        before.assert_same(&ws.manifest(), "brought back");
    }
}

/// The store notes the name of a staging area before it creates the directory. A directory that the user moves to that
/// name in between is not a staging area.
#[test]
fn a_users_directory_at_a_noted_staging_area_is_not_cleared() {
    let ws = TestWorkspace::new();
    let area = ".backtrail-0123456789abcdef";
    ws.write("x", "1\n");
    ws.save();
    ws.write(format!("{area}/notes"), "precious\n");
    let note = serde_json::json!([{ "in": "workspace", "parent": "", "name": area }]).to_string();
    let path = ws.store().join("backtrail/staging");
    std::fs::write(&path, format!("{:08x} {note}\n", crc32(note.as_bytes()))).unwrap();
    let saved = ws.save();
    assert_eq!(ws.read(format!("{area}/notes")).unwrap(), b"precious\n");
    assert!(saved.files_changed.contains(&ws.workspace_path(format!("{area}/notes"))));
    assert!(!path.exists(), "the note is removed");
}

/// Regression: to find out whether files can be renamed to another directory, a restore moved two probe names, which
/// the user may have.
#[test]
fn a_restore_does_not_move_files_to_probe_the_file_system() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    let ws = TestWorkspace::with_stores_below(memory);
    ws.write(".backtrail-probe-from", "mine\n");
    ws.write("d/x", "1\n");
    let saved = ws.save();
    ws.write("d/x", "2\n");
    let edited = ws.manifest();
    restore(&ws, &saved);
    undo(&ws);
    edited.assert_same(&ws.manifest(), "restored and undone");
}
