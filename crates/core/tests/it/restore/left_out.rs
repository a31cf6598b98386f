//! What a checkpoint left out is not touched, and what it holds comes back.

use backtrail_testkit::{Found, TestWorkspace};

use super::*;

#[test]
fn what_was_not_captured_is_not_touched() {
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
fn a_rule_that_came_after_the_checkpoint_protects_what_it_names() {
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
fn what_a_checkpoint_holds_comes_back_though_it_is_ignored_by_now() {
    let ws = TestWorkspace::new();
    ws.write("config", "one\n");
    let one = ws.save();
    ws.write(".gitignore", "config\n");
    ws.write("config", "two, ignored by now\n");
    let new = ws.manifest();
    restore(&ws, &one);
    assert_eq!(ws.read("config").unwrap(), b"one\n");
    assert!(ws.is_in_store(b"two, ignored by now\n"), "the safety checkpoint covers it");
    undo(&ws);
    new.assert_same(&ws.manifest(), "undone");
    ws.remove("config");
    let new = ws.manifest();
    restore(&ws, &one);
    assert_eq!(ws.read("config").unwrap(), b"one\n");
    undo(&ws);
    new.assert_same(&ws.manifest(), "what the restore made is gone again");
}

#[test]
fn what_a_checkpoint_left_out_stays_when_the_rule_is_gone() {
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
fn a_deleted_env_file_comes_back() {
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
