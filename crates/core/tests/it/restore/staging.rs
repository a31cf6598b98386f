//! Where the files of a restore are made ready, and that nothing of the user's is taken for such a place.

use std::path::Path;

use backtrail_testkit::TestWorkspace;

use super::{restore, undo};
use crate::hostile::crc32;

/// Named as a staging area is, it was neither captured nor spared.
#[test]
fn a_directory_that_is_named_like_a_staging_area_is_the_users() {
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

/// What moves into the workspace between the note and the making is not what the note is about.
#[test]
fn a_directory_of_the_users_under_a_name_that_was_noted_is_not_cleared() {
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
    assert!(!path.exists(), "the note has done its duty");
}

/// To find out where a file can be renamed to, two names were moved that nobody was expected to have.
#[test]
fn no_name_is_moved_to_find_out_what_can_be() {
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
    edited.assert_same(&ws.manifest(), "there and back");
}
