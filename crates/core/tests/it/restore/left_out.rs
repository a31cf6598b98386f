//! Paths that a checkpoint skipped are not touched, and paths that it holds are restored.

use backtrail_testkit::{Found, TestWorkspace};

use super::*;

#[test]
fn paths_that_were_not_captured_are_not_touched() {
    let ws = TestWorkspace::new();
    ws.write("backtrail.toml", "[scan]\nmax_file_bytes = 100\n");
    ws.write(".gitignore", "*.log\nbuild/\n");
    ws.write("a", "1\n");
    ws.write("d/a", "1\n");
    ws.write("d/kept.log", "ignored\n");
    ws.write("build/out", "ignored\n");
    ws.write("large", [b'x'; 200]);
    let one = ws.save();
    ws.write("a", "2\n");
    ws.remove("d/a");
    ws.write("d/kept.log", "ignored, edited\n");
    ws.write("build/more", "ignored\n");
    ws.write("large", [b'y'; 300]);
    ws.write("new/large", [b'z'; 300]);
    ws.write("new/file", "1\n");
    ws.write("new.log", "ignored\n");
    let names = ["d/kept.log", "build", "build/out", "build/more", "large", "new/large", "new.log"];
    let before: Vec<_> =
        names.iter().map(|name| (ws.manifest().0[name.as_bytes()].clone(), stamp(&ws, name))).collect();
    restore(&ws, &one);
    assert_eq!((ws.read("a").unwrap(), ws.read("d/a").unwrap()), (b"1\n".to_vec(), b"1\n".to_vec()));
    assert!(!ws.exists("new/file"));
    let after: Vec<_> = names.iter().map(|name| (ws.manifest().0[name.as_bytes()].clone(), stamp(&ws, name))).collect();
    assert_eq!(before, after);
}

#[test]
fn a_rule_that_is_newer_than_the_checkpoint_protects_the_paths_that_it_ignores() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    ws.write(".gitignore", "data/\n");
    ws.write("data/results", "hours of work\n");
    restore(&ws, &one);
    assert!(!ws.exists(".gitignore"));
    assert_eq!(ws.read("data/results").unwrap(), b"hours of work\n");
}

#[test]
fn a_captured_file_is_restored_although_it_is_ignored_now() {
    let ws = TestWorkspace::new();
    ws.write("config", "one\n");
    let one = ws.save();
    ws.write(".gitignore", "config\n");
    ws.write("config", "two, ignored by now\n");
    let new = ws.manifest();
    restore(&ws, &one);
    assert_eq!(ws.read("config").unwrap(), b"one\n");
    assert!(ws.is_in_store(b"two, ignored by now\n"), "the safety checkpoint has it");
    undo(&ws);
    new.assert_same(&ws.manifest(), "undone");
    ws.remove("config");
    let new = ws.manifest();
    restore(&ws, &one);
    assert_eq!(ws.read("config").unwrap(), b"one\n");
    undo(&ws);
    new.assert_same(&ws.manifest(), "the restored file is removed again");
}

#[test]
fn paths_that_a_checkpoint_skipped_stay_when_the_rule_is_gone() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "data/\n*.log\n");
    ws.write("a", "1\n");
    ws.write("data/results", "hours of work\n");
    ws.write("x.log", "log\n");
    let one = ws.save();
    ws.write(".gitignore", "");
    ws.write("data/more", "more work\n");
    let two = ws.save();
    assert!(ws.paths_in_store(&two.id).contains(&"data/results".to_owned()));
    restore(&ws, &one);
    assert_eq!(ws.read("data/results").unwrap(), b"hours of work\n");
    assert_eq!(ws.read("data/more").unwrap(), b"more work\n");
    assert_eq!(ws.read("x.log").unwrap(), b"log\n");
}

#[test]
fn a_deleted_env_file_is_restored() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", ".env\n");
    ws.write_mode(".env", "SECRET=1\n", 0o600);
    ws.git_init();
    let one = ws.save();
    ws.remove(".env");
    restore(&ws, &one);
    assert_eq!(ws.manifest().0[&b".env"[..]], Found::File(0o600, b"SECRET=1\n".to_vec()));
    undo(&ws);
    assert!(!ws.exists(".env"));
}

fn mode_of(ws: &TestWorkspace, name: &str) -> u32 {
    std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(ws.path(name)).unwrap().permissions()) & 0o7777
}

/// The undo of a restore that skipped a file must skip it, too.
#[test]
fn a_file_that_a_restore_skipped_is_not_touched_by_undo() {
    let ws = TestWorkspace::new();
    ws.write("f", "small");
    let one = ws.save();
    ws.write("backtrail.toml", "[scan]\nmax_file_bytes = 100\n");
    ws.write("f", [0; 500]);
    ws.save();
    let before = ws.manifest();
    let request = RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(one.id) };
    let outcome = ws.open().restore(&request, ws.now()).unwrap();
    assert_eq!(outcome.conflicts.len(), 1, "{:?}", outcome.conflicts);
    let undone = ws.open().undo(ws.now()).unwrap().unwrap();
    assert_eq!(undone.conflicts, []);
    before.assert_same(&ws.manifest(), "undo");
}

/// A restored file may be larger than a limit that was lowered after the checkpoint.
#[test]
fn a_restored_file_over_the_current_limit_can_be_undone() {
    let ws = TestWorkspace::new();
    ws.write("big", [7; 500]);
    let one = ws.save();
    ws.remove("big");
    ws.write("backtrail.toml", "[scan]\nmax_file_bytes = 100\n");
    ws.save();
    let before = ws.manifest();
    ws.open().restore(&request_for_paths(&ws, &one, &["big"]), ws.now()).unwrap();
    assert_eq!(ws.read("big").unwrap(), [7; 500]);
    // A second restore has nothing to do.
    let again = ws.open().restore(&request_for_paths(&ws, &one, &["big"]), ws.now()).unwrap();
    assert_eq!((again.changes.len(), again.conflicts.len()), (0, 0));
    ws.open().undo(ws.now()).unwrap().unwrap();
    before.assert_same(&ws.manifest(), "undo");
    ws.open().redo(ws.now()).unwrap().unwrap();
    assert_eq!(ws.read("big").unwrap(), [7; 500]);
}

/// A private directory that now contains only ignored files is still the captured directory: its permissions come back.
#[test]
fn permissions_of_a_directory_with_ignored_files_are_restored() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.o\n");
    ws.write("a/secret", "s");
    ws.chmod("a", 0o700);
    let one = ws.save();
    ws.remove("a/secret");
    ws.write("a/x.o", "o");
    ws.chmod("a", 0o755);
    ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap();
    assert_eq!(mode_of(&ws, "a"), 0o700);

    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.o\n");
    ws.mkdir("a");
    ws.chmod("a", 0o755);
    let one = ws.save();
    ws.chmod("a", 0o700);
    ws.write("a/secret", "s");
    ws.write("a/x.o", "o");
    let before = ws.manifest();
    ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap();
    assert_eq!(mode_of(&ws, "a"), 0o755);
    ws.open().undo(ws.now()).unwrap().unwrap();
    before.assert_same(&ws.manifest(), "undo");
}
