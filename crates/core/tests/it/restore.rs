//! What a restore does to real trees, and what it leaves alone: the hard cases that can be tried here, one by one.

use std::{
    os::unix::{
        fs::{MetadataExt, PermissionsExt},
        process::CommandExt,
    },
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
};

use backtrail::{
    ChangeStatus, Checkpoint, ErrorCode, ListFilter, Only, RestoreOutcome, RestoreRequest, SaveRequest, Scope,
};
use backtrail_testkit::{Found, Manifest, TestWorkspace, git, git_directory_bytes};

#[track_caller]
fn restore(ws: &TestWorkspace, to: &Checkpoint) -> RestoreOutcome {
    ws.open().restore(&RestoreRequest::whole(to.id), ws.now()).unwrap()
}

fn of_paths(ws: &TestWorkspace, to: &Checkpoint, paths: &[&str]) -> RestoreRequest {
    let scope = Scope::of_paths(paths.iter().map(|path| ws.workspace_path(path)).collect());
    RestoreRequest { scope, ..RestoreRequest::whole(to.id) }
}

#[track_caller]
fn restore_paths(ws: &TestWorkspace, to: &Checkpoint, paths: &[&str]) -> RestoreOutcome {
    ws.open().restore(&of_paths(ws, to, paths), ws.now()).unwrap()
}

#[track_caller]
fn undo(ws: &TestWorkspace) -> RestoreOutcome {
    ws.open().undo(ws.now()).unwrap().unwrap()
}

#[track_caller]
fn redo(ws: &TestWorkspace) -> RestoreOutcome {
    ws.open().redo(ws.now()).unwrap().unwrap()
}

fn fifo(ws: &TestWorkspace, name: &str) {
    assert!(Command::new("mkfifo").arg(ws.path(name)).status().unwrap().success());
}

fn changes(outcome: &RestoreOutcome) -> Vec<(String, ChangeStatus)> {
    outcome.changes.iter().map(|change| (change.path.to_text().into_owned(), change.status)).collect()
}

/// What tells whether somebody touched a path: its inode, its times and its bits.
type Stamp = (u64, i64, i64, i64, i64, u32);

fn stamp(ws: &TestWorkspace, name: &str) -> Stamp {
    let found = std::fs::symlink_metadata(ws.path(name)).unwrap();
    (found.ino(), found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec(), found.mode())
}

fn stamps(ws: &TestWorkspace, except: &[&str]) -> Vec<(String, Stamp)> {
    let paths = ws.manifest().0.into_keys().map(|path| String::from_utf8(path).unwrap());
    paths.filter(|path| !except.contains(&path.as_str())).map(|path| (path.clone(), stamp(ws, &path))).collect()
}

/// Saves `before`, makes `after` of it, and goes there and back: each way the tree must be exact.
#[track_caller]
fn there_and_back(before: impl Fn(&TestWorkspace), after: impl Fn(&TestWorkspace)) {
    let ws = TestWorkspace::new();
    ws.write("beside", "untouched\n");
    before(&ws);
    let (old, one) = (ws.manifest(), ws.save());
    after(&ws);
    let new = ws.manifest();
    restore(&ws, &one);
    old.assert_same(&ws.manifest(), "restored");
    undo(&ws);
    new.assert_same(&ws.manifest(), "undone");
    redo(&ws);
    old.assert_same(&ws.manifest(), "redone");
    undo(&ws);
    let two = ws.save();
    restore(&ws, &one);
    old.assert_same(&ws.manifest(), "restored again");
    restore(&ws, &two);
    new.assert_same(&ws.manifest(), "restored to the second");
    ws.assert_store_is_sound();
}

#[test]
fn a_file_that_became_a_directory() {
    there_and_back(
        |ws| ws.write("x", "file\n"),
        |ws| {
            ws.remove("x");
            ws.write("x/deep/inside", "new\n");
            ws.mkdir("x/empty");
        },
    );
}

#[test]
fn a_directory_that_became_a_link() {
    there_and_back(
        |ws| {
            ws.write("x/deep/inside", "1\n");
            ws.write("other/deep/inside", "other\n");
        },
        |ws| {
            ws.remove("x");
            ws.symlink("other", "x");
        },
    );
}

#[test]
fn a_link_that_became_a_file_and_a_file_that_became_a_link() {
    there_and_back(
        |ws| {
            ws.symlink("beside", "link");
            ws.write("file", "bytes\n");
        },
        |ws| {
            ws.remove("link");
            ws.write("link", "no link\n");
            ws.remove("file");
            ws.symlink("beside", "file");
        },
    );
}

#[test]
fn odd_links_are_exact() {
    let long = "l/".repeat(2_000);
    there_and_back(
        |ws| {
            ws.symlink("nowhere", "dangling");
            ws.symlink("circle-b", "circle-a");
            ws.symlink("circle-a", "circle-b");
            ws.symlink("/etc/passwd", "absolute");
            ws.symlink(&long, "long");
            ws.symlink("../outside", "up");
            ws.symlink(".", "self");
            ws.symlink(b"\xff\n", "raw");
        },
        |ws| {
            for name in ["dangling", "circle-a", "absolute", "long", "up", "self", "raw"] {
                ws.remove(name);
            }
            ws.write("dangling", "1\n");
            ws.symlink("circle-a", "circle-a");
        },
    );
}

#[test]
fn a_link_to_the_outside_is_never_written_through() {
    let ws = TestWorkspace::new();
    std::fs::write(ws.outside().join("file"), "outside\n").unwrap();
    std::fs::create_dir(ws.outside().join("directory")).unwrap();
    std::fs::write(ws.outside().join("directory/in"), "outside, too\n").unwrap();
    ws.write("file", "inside\n");
    ws.write("directory/in", "inside, too\n");
    let (old, one) = (ws.manifest(), ws.save());
    let outside = Manifest::of(&ws.outside());
    ws.remove("file");
    ws.symlink(ws.outside().join("file").to_str().unwrap(), "file");
    ws.remove("directory");
    ws.symlink(ws.outside().join("directory").to_str().unwrap(), "directory");
    let new = ws.manifest();
    restore(&ws, &one);
    old.assert_same(&ws.manifest(), "restored");
    outside.assert_same(&Manifest::of(&ws.outside()), "the outside");
    undo(&ws);
    new.assert_same(&ws.manifest(), "undone");
    restore_paths(&ws, &one, &["directory/in"]);
    assert_eq!(ws.read("directory/in").unwrap(), b"inside, too\n");
    assert!(!ws.path("directory").is_symlink());
    undo(&ws);
    new.assert_same(&ws.manifest(), "undone");
    outside.assert_same(&Manifest::of(&ws.outside()), "the outside");
}

#[test]
fn a_parent_that_was_swapped_for_a_link_since_the_plan_is_refused() {
    let ws = TestWorkspace::new();
    ws.write("d/file", "1\n");
    let one = ws.save();
    ws.write("d/file", "2\n");
    let plan = ws.open().plan_restore(&RestoreRequest::whole(one.id)).unwrap();
    std::fs::write(ws.outside().join("file"), "outside\n").unwrap();
    ws.rename("d", "moved");
    ws.symlink(ws.outside().to_str().unwrap(), "d");
    let before = ws.manifest();
    let request = RestoreRequest { plan: Some(plan.hash), ..RestoreRequest::whole(one.id) };
    let error = ws.open().restore(&request, ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::PlanChanged);
    before.assert_same(&ws.manifest(), "a refused restore");
    assert_eq!(std::fs::read(ws.outside().join("file")).unwrap(), b"outside\n");
}

#[test]
fn a_parent_that_is_swapped_for_a_link_all_the_time_is_never_written_through() {
    let ws = TestWorkspace::new();
    for number in 0..40 {
        ws.write(format!("d/{number}"), format!("old {number}\n"));
    }
    let one = ws.save();
    for number in 0..40 {
        ws.write(format!("d/{number}"), format!("new {number}\n"));
    }
    let two = ws.save();
    for number in 0..40 {
        std::fs::write(ws.outside().join(number.to_string()), "outside\n").unwrap();
    }
    let outside = Manifest::of(&ws.outside());
    let is_done = AtomicBool::new(false);
    let (root, target) = (ws.root(), ws.outside());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0.. {
                if is_done.load(Ordering::SeqCst) {
                    break;
                }
                if std::fs::rename(root.join("d"), root.join("aside")).is_ok() {
                    drop(std::os::unix::fs::symlink(&target, root.join("d")));
                    std::thread::yield_now();
                    drop(std::fs::remove_file(root.join("d")));
                    // Where the restore has made a directory by now, that one stays.
                    if std::fs::rename(root.join("aside"), root.join("d")).is_err() {
                        drop(std::fs::rename(root.join("aside"), root.join(format!("aside-{round}"))));
                    }
                }
            }
        });
        for _ in 0..10 {
            // Any answer will do, as long as nothing outside is touched.
            drop(ws.open().restore(&RestoreRequest::whole(one.id), ws.now()));
            drop(ws.open().restore(&RestoreRequest::whole(two.id), ws.now()));
        }
        is_done.store(true, Ordering::SeqCst);
    });
    outside.assert_same(&Manifest::of(&ws.outside()), "the outside");
    ws.open().recover(false, ws.now()).unwrap();
    ws.assert_store_is_sound();
}

#[test]
fn permission_bits_come_back_exactly() {
    there_and_back(
        |ws| {
            ws.write_mode("plain", "1\n", 0o644);
            ws.write_mode("tool", "1\n", 0o755);
            ws.write_mode("secret", "1\n", 0o600);
            ws.write_mode("setuid", "1\n", 0o4755);
            ws.write_mode("read-only", "1\n", 0o444);
            ws.write_mode("gone-secret", "1\n", 0o600);
            ws.write_mode("edited-secret", "1\n", 0o600);
            ws.write("closed/file", "1\n");
            ws.chmod("closed", 0o700);
        },
        |ws| {
            ws.chmod("plain", 0o755);
            ws.chmod("tool", 0o644);
            ws.chmod("secret", 0o644);
            ws.chmod("setuid", 0o755);
            ws.chmod("read-only", 0o666);
            ws.remove("gone-secret");
            ws.remove("edited-secret");
            ws.write_mode("edited-secret", "2\n", 0o644);
            ws.chmod("closed", 0o2775);
        },
    );
}

#[test]
fn a_change_of_bits_alone_is_set_in_place() {
    let ws = TestWorkspace::new();
    ws.write_mode("tool", "1\n", 0o755);
    let one = ws.save();
    ws.chmod("tool", 0o644);
    let before = stamp(&ws, "tool");
    let outcome = restore(&ws, &one);
    assert_eq!(changes(&outcome), [("tool".to_owned(), ChangeStatus::ModeChanged)]);
    let after = stamp(&ws, "tool");
    assert_eq!((before.0, before.1, before.2), (after.0, after.1, after.2), "inode and mtime");
    assert_eq!(after.5 & 0o7777, 0o755);
}

#[test]
fn empty_directories_come_back_and_new_ones_go() {
    there_and_back(
        |ws| {
            ws.mkdir("empty/inner");
            ws.mkdir("gets-a-file");
            ws.write("loses-its-file/file", "1\n");
        },
        |ws| {
            ws.remove("empty");
            ws.mkdir("new/deep/er");
            ws.write("gets-a-file/file", "1\n");
            ws.remove("loses-its-file/file");
        },
    );
}

#[test]
fn an_empty_file_is_not_an_absent_one() {
    there_and_back(
        |ws| {
            ws.write("empty", "");
            ws.write("full", "1\n");
        },
        |ws| {
            ws.remove("empty");
            ws.write("full", "");
            ws.write("new-empty", "");
        },
    );
}

#[test]
fn a_move_is_taken_back_at_both_ends() {
    there_and_back(
        |ws| {
            ws.write("from/file", "1\n");
            ws.write("README", "1\n");
        },
        |ws| {
            ws.rename("from/file", "to/file");
            ws.rename("README", "Readme");
        },
    );
}

#[test]
fn odd_names_come_back() {
    let names: [&[u8]; 7] =
        [b"new\nline", b"tab\t\"quote\"\\", b"\xff\xfe", "漢字".as_bytes(), "🦀/é".as_bytes(), b" ", b"-rf"];
    there_and_back(
        |ws| names.iter().for_each(|name| ws.write(name, "1\n")),
        |ws| {
            names.iter().for_each(|name| ws.remove(name));
            ws.write(b"\xff\n\xfd", "2\n");
            ws.write("x".repeat(255), "2\n");
        },
    );
}

#[test]
fn hard_links_are_not_written_through() {
    let ws = TestWorkspace::new();
    ws.write("one", "old\n");
    std::fs::hard_link(ws.path("one"), ws.path("two")).unwrap();
    std::fs::hard_link(ws.path("one"), ws.outside().join("three")).unwrap();
    let saved = ws.save();
    std::fs::write(ws.path("one"), "edited through all names\n").unwrap();
    restore(&ws, &saved);
    assert_eq!((ws.read("one").unwrap(), ws.read("two").unwrap()), (b"old\n".to_vec(), b"old\n".to_vec()));
    assert_eq!(std::fs::read(ws.outside().join("three")).unwrap(), b"edited through all names\n");
}

#[test]
fn the_bits_of_a_file_with_a_name_outside_are_not_changed_there() {
    let ws = TestWorkspace::new();
    ws.write_mode("one", "1\n", 0o600);
    let saved = ws.save();
    std::fs::hard_link(ws.path("one"), ws.outside().join("two")).unwrap();
    ws.chmod("one", 0o644);
    restore(&ws, &saved);
    assert_eq!(stamp(&ws, "one").5 & 0o7777, 0o600);
    let outside = std::fs::metadata(ws.outside().join("two")).unwrap();
    assert_eq!(outside.permissions().mode() & 0o7777, 0o644, "the other name keeps its bits");
}

#[test]
fn a_special_file_in_the_way_is_a_conflict() {
    let ws = TestWorkspace::new();
    ws.write("pipe", "was a file\n");
    ws.write("d/below", "1\n");
    ws.write("other", "1\n");
    let one = ws.save();
    ws.remove("pipe");
    fifo(&ws, "pipe");
    ws.remove("d");
    fifo(&ws, "d");
    ws.write("other", "2\n");
    let before = ws.manifest();
    let request = RestoreRequest::whole(one.id);
    assert_eq!(ws.open().plan_restore(&request).unwrap().conflicts.len(), 2);
    let checkpoints = ws.open().list(&ListFilter::default()).unwrap().len();
    assert_eq!(ws.open().restore(&request, ws.now()).unwrap_err().code(), ErrorCode::Conflict);
    before.assert_same(&ws.manifest(), "a refused restore");
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap().len(), checkpoints, "and nothing is written");
    let outcome = ws.open().restore(&RestoreRequest { skip_conflicts: true, ..request }, ws.now()).unwrap();
    let conflicts: Vec<_> = outcome.conflicts.iter().map(|conflict| conflict.path.to_text().into_owned()).collect();
    assert_eq!(conflicts, ["d", "pipe"]);
    assert_eq!(ws.read("other").unwrap(), b"1\n");
    assert_eq!(ws.manifest().0[&b"pipe"[..]], Found::Special);
    assert_eq!(ws.manifest().0[&b"d"[..]], Found::Special);
    undo(&ws);
    before.assert_same(&ws.manifest(), "undone");
}

#[test]
fn a_special_file_that_came_later_stays() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    ws.write("new/file", "1\n");
    fifo(&ws, "new/pipe");
    restore(&ws, &one);
    assert!(!ws.exists("new/file"));
    assert_eq!(ws.manifest().0[&b"new/pipe"[..]], Found::Special);
}

#[test]
fn untouched_files_keep_inode_and_times() {
    let ws = TestWorkspace::new();
    ws.write("same", "1\n");
    ws.write("d/same", "1\n");
    ws.write("d/edited", "1\n");
    ws.symlink("same", "link");
    ws.write("far/away", "1\n");
    let one = ws.save();
    ws.write("d/edited", "2\n");
    let edited = stamp(&ws, "d/edited");
    let before = stamps(&ws, &["d", "d/edited"]);
    // The kernel's clock for files ticks every few milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(30));
    restore(&ws, &one);
    assert_eq!(stamps(&ws, &["d", "d/edited"]), before);
    let restored = stamp(&ws, "d/edited");
    assert_ne!((edited.1, edited.2), (restored.1, restored.2), "a file that changes gets a new time");
}

#[test]
fn a_restore_of_what_is_there_writes_nothing() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.write("d/b", "1\n");
    let one = ws.save();
    let files = || git_directory_bytes(&ws.store());
    let (before, store) = (stamps(&ws, &[]), files());
    let outcome = restore(&ws, &one);
    assert!(outcome.applied && outcome.changes.is_empty() && outcome.safety.is_none());
    assert_eq!(stamps(&ws, &[]), before);
    store.assert_same(&files(), "the store");
    assert!(ws.open().undo(ws.now()).unwrap().is_none(), "there is nothing to take back");
}

#[test]
fn a_restore_of_what_is_there_moves_where_the_workspace_stands() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    ws.write("a", "2\n");
    let two = ws.save();
    ws.write("a", "1\n");
    assert!(restore(&ws, &one).safety.is_none());
    assert_eq!(ws.open().current().unwrap(), Some(one.id));
    undo(&ws);
    assert_eq!(ws.open().current().unwrap(), Some(two.id));
    assert_eq!(ws.read("a").unwrap(), b"1\n");
}

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
fn an_oversized_file_in_the_place_of_a_captured_one_is_a_conflict() {
    let ws = TestWorkspace::new();
    ws.write("backtrail.toml", "[scan]\nmax_file_bytes = 100\n");
    ws.write("a", "small\n");
    let one = ws.save();
    ws.write("a", [b'y'; 300]);
    let error = ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Conflict);
    assert_eq!(ws.read("a").unwrap(), [b'y'; 300]);
}

#[test]
fn a_directory_with_ignored_files_does_not_give_way_to_a_file() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.log\n");
    ws.write("x", "was a file\n");
    let one = ws.save();
    ws.remove("x");
    ws.write("x/new", "1\n");
    ws.write("x/kept.log", "ignored\n");
    let before = ws.manifest();
    let request = RestoreRequest::whole(one.id);
    assert_eq!(ws.open().restore(&request, ws.now()).unwrap_err().code(), ErrorCode::Conflict);
    before.assert_same(&ws.manifest(), "a refused restore");
    let outcome = ws.open().restore(&RestoreRequest { skip_conflicts: true, ..request }, ws.now()).unwrap();
    assert_eq!(outcome.conflicts.len(), 1);
    before.assert_same(&ws.manifest(), "all of it was in the way");
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
    assert_eq!(ws.open().current().unwrap(), current, "the workspace stands where it stood");
    ws.write("b", "edited after\n");
    undo(&ws);
    assert_eq!(ws.read("b").unwrap(), b"edited after\n", "undo keeps to the scope");
    ws.write("b", "2\n");
    new.assert_same(&ws.manifest(), "undone");
}

#[test]
fn a_path_below_a_deleted_directory_comes_back_and_undo_removes_it_again() {
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
fn a_path_below_what_is_a_file_by_now() {
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
fn a_restored_path_that_was_deleted_since_can_still_be_undone() {
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
fn a_path_that_is_nowhere_is_an_error() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    ws.write("a", "2\n");
    let error = ws.open().restore(&of_paths(&ws, &one, &["a", "nowhere"]), ws.now()).unwrap_err();
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
    // Its tree outside of the scope is that of an older checkpoint: standing on it would show `y` as changed.
    assert_eq!(ws.open().current().unwrap(), Some(two.id), "a restore of paths does not move the workspace");
}

#[test]
fn nested_repositories_get_their_files_back_and_keep_their_git() {
    let ws = TestWorkspace::new();
    ws.write("top", "1\n");
    ws.git_init();
    ws.write("inner/file", "1\n");
    let inner = ws.path("inner");
    git(&inner, &["init", "-q"]);
    git(&inner, &["add", "-A"]);
    git(&inner, &["commit", "-q", "-m", "inner"]);
    ws.write("inner/dirty", "1\n");
    let (old, one) = (ws.manifest(), ws.save());
    ws.write("inner/file", "2\n");
    ws.remove("inner/dirty");
    git(&inner, &["add", "-A"]);
    git(&inner, &["commit", "-q", "-m", "by the agent"]);
    ws.write("cloned/file", "1\n");
    git(&ws.path("cloned"), &["init", "-q"]);
    let gits = || ["", "inner", "cloned"].map(|name| git_directory_bytes(&ws.path(name).join(".git")));
    let before = gits();
    restore(&ws, &one);
    assert!(ws.exists("cloned/.git"), "a repository that came later is kept");
    before.iter().zip(gits()).for_each(|(before, after)| before.assert_same(&after, ".git"));
    assert!(!ws.exists("cloned/file"));
    let mut now = ws.manifest();
    now.0.remove(&b"cloned"[..]);
    old.assert_same(&now, "the rest");
    undo(&ws);
    assert_eq!(ws.read("cloned/file").unwrap(), b"1\n");
    assert_eq!(ws.read("inner/file").unwrap(), b"2\n");
    before.iter().zip(gits()).for_each(|(before, after)| before.assert_same(&after, ".git"));
}

#[test]
fn files_and_state_can_be_restored_apart() {
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
    assert_eq!(ws.open().current().unwrap(), Some(two.id), "state alone does not move the workspace");
    undo(&ws);
    assert_eq!(read(), ["two\n", "two\n", "two\n"]);
}

#[test]
fn the_hash_of_a_plan_is_stable_and_notices_every_change() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.write("d/b", "1\n");
    let one = ws.save();
    ws.write("a", "2\n");
    let request = RestoreRequest::whole(one.id);
    let hash = |request: &RestoreRequest| ws.open().plan_restore(request).unwrap().hash;
    let first = hash(&request);
    assert_eq!(hash(&request), first);
    ws.remove("a");
    ws.write("a", "2\n");
    assert_eq!(hash(&request), first, "times don't count");
    assert_ne!(hash(&RestoreRequest { exact: true, ..request.clone() }), first);
    assert_ne!(hash(&of_paths(&ws, &one, &["a"])), first);
    ws.chmod("a", 0o600);
    assert_ne!(hash(&request), first, "permission bits count");
    ws.chmod("a", 0o644);
    ws.write("a", "3\n");
    let with_plan = |hash: &str| RestoreRequest { plan: Some(hash.to_owned()), ..request.clone() };
    let error = ws.open().restore(&with_plan(&first), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::PlanChanged);
    assert_eq!(ws.read("a").unwrap(), b"3\n");
    let outcome = ws.open().restore(&with_plan(&hash(&request)), ws.now()).unwrap();
    assert_eq!(ws.read("a").unwrap(), b"1\n");
    assert!(outcome.applied);
}

#[test]
fn a_plan_writes_nothing() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    ws.write("a", "2\n");
    ws.write("new", "2\n");
    let (before, store) = (stamps(&ws, &[]), git_directory_bytes(&ws.store()));
    let plan = ws.open().plan_restore(&RestoreRequest::whole(one.id)).unwrap();
    assert_eq!(plan.changes.len(), 2);
    assert_eq!(stamps(&ws, &[]), before);
    store.assert_same(&git_directory_bytes(&ws.store()), "the store");
}

#[test]
fn redo_brings_back_edits_made_before_the_undo() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    ws.write("a", "2\n");
    ws.save();
    restore(&ws, &one);
    ws.write("a", "edited after the restore\n");
    ws.write("b", "new after the restore\n");
    let edited = ws.manifest();
    undo(&ws);
    assert_eq!(ws.read("a").unwrap(), b"2\n");
    assert!(!ws.exists("b"));
    redo(&ws);
    edited.assert_same(&ws.manifest(), "redone");
    undo(&ws);
    restore(&ws, &one);
    assert!(ws.open().redo(ws.now()).unwrap().is_none(), "a new restore clears what could be redone");
}

#[test]
fn an_export_is_the_checkpoint() {
    let ws = TestWorkspace::new();
    ws.write_mode("secret", "1\n", 0o600);
    ws.write_mode("d/tool", "1\n", 0o755);
    ws.mkdir("empty");
    ws.symlink("/etc/passwd", "link");
    ws.write("d/\n\u{fffd}", "1\n");
    let (old, one) = (ws.manifest(), ws.save());
    ws.write("secret", "2\n");
    let to = ws.outside().join("new/export");
    assert_eq!(ws.open().export(&one.id, &to).unwrap(), 4);
    old.assert_same(&Manifest::of(&to), "exported");
    let error = ws.open().export(&one.id, &to).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Usage, "not empty");
    old.assert_same(&Manifest::of(&to), "and left alone");
}

#[test]
fn the_history_of_a_path_has_every_version() {
    let ws = TestWorkspace::new();
    ws.write("beside", "1\n");
    let mut expected = Vec::new();
    let mut save = |status: Option<(ChangeStatus, Option<u64>)>| {
        let saved = ws.save_with(&SaveRequest { allow_empty: true, ..SaveRequest::default() }).checkpoint;
        expected.extend(status.map(|(status, bytes)| (saved.id, status, bytes)));
        saved
    };
    save(None);
    ws.write("p", "1\n");
    let first = save(Some((ChangeStatus::Added, Some(2))));
    ws.write("beside", "2\n");
    save(None);
    ws.chmod("p", 0o755);
    save(Some((ChangeStatus::ModeChanged, Some(2))));
    ws.write("p", "longer\n");
    save(Some((ChangeStatus::Modified, Some(7))));
    ws.remove("p");
    save(Some((ChangeStatus::Deleted, None)));
    ws.symlink("beside", "p");
    save(Some((ChangeStatus::Added, Some(6))));
    restore(&ws, &first);
    expected.reverse();
    let found = ws.open().history(&ws.workspace_path("p")).unwrap();
    let found: Vec<_> = found.iter().map(|version| (version.checkpoint, version.status, version.bytes)).collect();
    assert_eq!(found, expected);
    let error = ws.open().history(&ws.workspace_path("nowhere")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnknownPath);
}

/// Takes one blob out of the store, as a bad disk would.
fn lose_blob(ws: &TestWorkspace, bytes: &[u8]) {
    let lost = backtrail_testkit::blob_id(bytes);
    let listing = ws.store_git(&["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
    let listing = String::from_utf8(listing).unwrap();
    let kept: String = listing.lines().filter(|id| *id != lost).map(|id| format!("{id}\n")).collect();
    assert_ne!(kept.len(), listing.len(), "the blob is there at first");
    let packs = ws.store().join("objects/pack");
    let list = ws.outside().join("objects");
    std::fs::write(&list, kept).unwrap();
    let old: Vec<_> = std::fs::read_dir(&packs).unwrap().map(|entry| entry.unwrap().path()).collect();
    let script = format!("git pack-objects -q '{}/pack' < '{}'", packs.display(), list.display());
    let made = Command::new("sh").arg("-c").arg(script).current_dir(ws.store()).status().unwrap();
    assert!(made.success());
    old.into_iter().for_each(|path| std::fs::remove_file(path).unwrap());
}

#[test]
fn a_missing_blob_changes_nothing() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.write("lost", "the bytes that are lost\n");
    let one = ws.save();
    ws.write("a", "2\n");
    ws.write("lost", "2\n");
    ws.write("new", "2\n");
    let two = ws.save();
    ws.write("a", "3\n");
    lose_blob(&ws, b"the bytes that are lost\n");
    let before = ws.manifest();
    let error = ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::StoreDamaged, "{error}");
    before.assert_same(&ws.manifest(), "a restore from a damaged store");
    assert!(!ws.store().join("backtrail/journal").exists());
    restore_paths(&ws, &one, &["a"]);
    assert_eq!(ws.read("a").unwrap(), b"1\n", "what is whole can be restored");
    restore(&ws, &two);
    assert_eq!(ws.read("a").unwrap(), b"2\n", "other checkpoints are not affected");
}

#[test]
fn a_workspace_that_vanished_keeps_its_history() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    let workspace = ws.open();
    std::fs::rename(ws.root(), ws.base().join("unmounted")).unwrap();
    assert_eq!(workspace.restore(&RestoreRequest::whole(one.id), ws.now()).unwrap_err().code(), ErrorCode::Io);
    assert!(workspace.save(&SaveRequest::default(), ws.now()).is_err());
    assert!(!ws.root().exists(), "it is not made anew");
    std::fs::rename(ws.base().join("unmounted"), ws.root()).unwrap();
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap().len(), 1);
    ws.write("a", "2\n");
    restore(&ws, &one);
    assert_eq!(ws.read("a").unwrap(), b"1\n");
}

#[test]
fn what_git_did_in_between_does_not_matter() {
    let ws = TestWorkspace::new();
    ws.write(".gitattributes", "* text eol=crlf ident\n");
    ws.write("a", "$Id$\n");
    ws.write("untracked", "1\n");
    ws.git_init();
    let (old, one) = (ws.manifest(), ws.save());
    ws.git(&["checkout", "-q", "-b", "other"]);
    ws.write("a", "2\r\n");
    ws.git(&["commit", "-q", "-a", "-m", "by the agent"]);
    ws.git(&["clean", "-fdxq"]);
    ws.git(&["rm", "-q", "--cached", "untracked"]);
    ws.remove("untracked");
    ws.write("conflict", "1\n");
    let before = git_directory_bytes(&ws.path(".git"));
    restore(&ws, &one);
    old.assert_same(&ws.manifest(), "restored");
    undo(&ws);
    before.assert_same(&git_directory_bytes(&ws.path(".git")), ".git");
    ws.remove(".git");
    restore(&ws, &one);
    old.assert_same(&ws.manifest(), "restored without .git");
}

/// Somebody writes a file over and over while it is restored to and fro: what was there last, and all that a restore
/// took away, is in the workspace or in the store.
fn written_all_the_time(keeps_all: bool, write: impl Fn(&TestWorkspace, usize, &[u8]) + Sync) {
    let ws = TestWorkspace::new();
    for number in 0..3 {
        ws.write(format!("busy{number}"), "one\n");
        ws.write(format!("d/quiet{number}"), "one\n");
    }
    let one = ws.save();
    for number in 0..3 {
        ws.write(format!("busy{number}"), "two\n");
        ws.write(format!("d/quiet{number}"), "two\n");
    }
    let two = ws.save();
    let is_done = AtomicBool::new(false);
    let base = ws.base();
    let rounds = 15;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let ws = TestWorkspace::attach(&base);
            let mut last = vec![b"two\n".to_vec(); 3];
            let mut taken = Vec::new();
            let mut version = 0_u64;
            while !is_done.load(Ordering::SeqCst) {
                let number = (version % 3) as usize;
                version += 1;
                let bytes = format!("version {version} of {number}\n").into_bytes();
                // Nobody else writes here: where it is gone, a restore took it.
                if ws.read(format!("busy{number}")).is_some_and(|found| found != last[number]) {
                    taken.push(last[number].clone());
                }
                write(&ws, number, &bytes);
                last[number] = bytes;
                if version.is_multiple_of(7) {
                    std::thread::sleep(std::time::Duration::from_millis(3));
                }
            }
            (last, taken)
        });
        for _ in 0..rounds {
            for target in [&one, &two] {
                let request = RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(target.id) };
                let outcome = ws.open().restore(&request, ws.now()).unwrap();
                let kept = ws.blobs_in_store();
                for conflict in outcome.conflicts.iter().filter_map(|conflict| conflict.kept) {
                    let bytes = ws.store_git(&["cat-file", "blob", &conflict.to_string()]);
                    assert!(kept.contains(&bytes), "a conflict names bytes that are kept");
                }
                let quiet = if target.id == one.id { b"one\n" } else { b"two\n" };
                (0..3).for_each(|number| assert_eq!(ws.read(format!("d/quiet{number}")).unwrap(), quiet));
            }
        }
        is_done.store(true, Ordering::SeqCst);
        let (last, taken) = writer.join().unwrap();
        let stored = ws.blobs_in_store();
        assert!(!taken.is_empty(), "no restore ever met the writer");
        for bytes in taken.iter().filter(|_| keeps_all) {
            assert!(stored.contains(bytes), "what a restore took is lost: {:?}", String::from_utf8_lossy(bytes));
        }
        for (number, bytes) in last.iter().enumerate() {
            let is_kept = ws.manifest().holds(bytes) || stored.contains(bytes);
            assert!(is_kept, "the last version of busy{number} is lost: {:?}", String::from_utf8_lossy(bytes));
        }
    });
    ws.assert_store_is_sound();
}

#[test]
fn a_file_that_is_written_in_place_all_the_time_is_not_lost() {
    // A write through an open handle may come after the last look at what was set aside: only the last one counts.
    written_all_the_time(false, |ws, number, bytes| {
        std::fs::write(ws.path(format!("busy{number}")), bytes).unwrap();
    });
}

#[test]
fn a_file_that_is_replaced_all_the_time_is_not_lost() {
    written_all_the_time(true, |ws, number, bytes| {
        let draft = ws.outside().join(format!("draft{number}"));
        std::fs::write(&draft, bytes).unwrap();
        std::fs::rename(draft, ws.path(format!("busy{number}"))).unwrap();
    });
}

#[test]
fn bytes_that_an_open_file_got_after_it_was_replaced_are_kept() {
    use std::io::Write;
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let one = ws.save();
    ws.write("a", "2\n");
    let mut open = std::fs::File::options().append(true).open(ws.path("a")).unwrap();
    open.write_all(b"written before the restore\n").unwrap();
    restore(&ws, &one);
    assert!(ws.is_in_store(b"2\nwritten before the restore\n"));
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn run_as_an_ordinary_user() {
    const NOBODY: u32 = 65_534;
    if !is_root() {
        return;
    }
    // The build directory may be closed to others.
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = Command::new(&program);
    command.arg("restore::ordinary::").current_dir("/").env("HOME", "/nonexistent").gid(NOBODY).uid(NOBODY);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(!said.contains("running 0 tests"), "{said}");
}

/// Nothing is refused to root: there these run once more as another user, in a process of their own.
mod ordinary {
    use super::*;

    #[test]
    fn an_incomplete_checkpoint_removes_nothing_unless_exact() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        ws.write("a", "1\n");
        ws.write_mode("closed", "1\n", 0o000);
        let one = ws.save();
        assert!(!one.complete);
        ws.chmod("closed", 0o600);
        ws.write("closed", "edited\n");
        ws.write("a", "2\n");
        ws.write("new/file", "2\n");
        ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap();
        assert_eq!(ws.read("a").unwrap(), b"1\n");
        assert_eq!(ws.read("new/file").unwrap(), b"2\n");
        let exact = RestoreRequest { exact: true, ..RestoreRequest::whole(one.id) };
        ws.open().restore(&exact, ws.now()).unwrap();
        assert!(!ws.exists("new"));
        assert_eq!(ws.read("closed").unwrap(), b"edited\n", "what it could not read it says nothing about");
    }

    #[test]
    fn an_unreadable_file_is_not_touched() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        ws.write("a", "1\n");
        ws.write("b", "1\n");
        let one = ws.save();
        ws.write("b", "2\n");
        ws.write("a", "2\n");
        ws.write_mode("new", "2\n", 0o000);
        ws.chmod("a", 0o000);
        let request = RestoreRequest::whole(one.id);
        assert_eq!(ws.open().restore(&request, ws.now()).unwrap_err().code(), ErrorCode::Conflict);
        assert_eq!(ws.read("b").unwrap(), b"2\n");
        let outcome = ws.open().restore(&RestoreRequest { skip_conflicts: true, ..request }, ws.now()).unwrap();
        // What would have to go and can't be read is told as well.
        assert_eq!(outcome.conflicts.iter().map(|conflict| conflict.path.to_text()).collect::<Vec<_>>(), ["a", "new"]);
        assert_eq!(ws.read("b").unwrap(), b"1\n");
        ws.chmod("a", 0o644);
        ws.chmod("new", 0o644);
        assert_eq!((ws.read("a").unwrap(), ws.read("new").unwrap()), (b"2\n".to_vec(), b"2\n".to_vec()));
    }

    #[test]
    fn a_directory_that_its_owner_closed_is_opened_and_closed_again() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        ws.write("d/e/a", "1\n");
        ws.write("d/gone", "1\n");
        ws.chmod("d/e", 0o555);
        ws.chmod("d", 0o555);
        let (old, one) = (ws.manifest(), ws.save());
        ws.chmod("d", 0o755);
        ws.chmod("d/e", 0o755);
        ws.write("d/e/a", "2\n");
        ws.write("d/e/new", "2\n");
        ws.remove("d/gone");
        ws.chmod("d/e", 0o555);
        ws.chmod("d", 0o555);
        let new = ws.manifest();
        restore(&ws, &one);
        old.assert_same(&ws.manifest(), "restored");
        undo(&ws);
        new.assert_same(&ws.manifest(), "undone");
        ws.chmod("d", 0o755);
        ws.chmod("d/e", 0o755);
    }

    #[test]
    fn a_workspace_that_can_t_be_written_changes_nothing() {
        if is_root() {
            return;
        }
        let ws = TestWorkspace::new();
        ws.write("a", "1\n");
        ws.write("d/b", "1\n");
        let one = ws.save();
        ws.write("a", "2\n");
        ws.write("d/b", "2\n");
        ws.chmod("", 0o555);
        let before = ws.manifest();
        let restored = ws.open().restore(&RestoreRequest::whole(one.id), ws.now());
        let after = ws.manifest();
        ws.chmod("", 0o755);
        match restored {
            Ok(_) => assert_eq!((ws.read("a").unwrap(), ws.read("d/b").unwrap()), (b"1\n".to_vec(), b"1\n".to_vec())),
            Err(error) => {
                assert_eq!(error.code(), ErrorCode::Io, "{error}");
                before.assert_same(&after, "a refused restore");
                assert!(!ws.store().join("backtrail/journal").exists());
            }
        }
        restore(&ws, &one);
        assert_eq!((ws.read("a").unwrap(), ws.read("d/b").unwrap()), (b"1\n".to_vec(), b"1\n".to_vec()));
    }
}
