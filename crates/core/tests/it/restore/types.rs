//! Restores of files, directories and links whose type, permissions, names or contents changed.

use std::os::unix::fs::PermissionsExt;

use backtrail::ChangeStatus;
use backtrail_testkit::{TestWorkspace, git, git_directory_bytes};

use super::*;

#[test]
fn a_file_that_became_a_directory_is_restored() {
    assert_round_trip(
        |ws| ws.write("x", "file\n"),
        |ws| {
            ws.remove("x");
            ws.write("x/deep/inside", "new\n");
            ws.mkdir("x/empty");
        },
    );
}

#[test]
fn a_directory_that_became_a_link_is_restored() {
    assert_round_trip(
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
fn a_link_that_became_a_file_and_a_file_that_became_a_link_are_restored() {
    assert_round_trip(
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
fn unusual_links_are_restored_exactly() {
    let long = "l/".repeat(2_000);
    assert_round_trip(
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
fn permission_bits_are_restored_exactly() {
    assert_round_trip(
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
fn a_change_of_permissions_alone_is_made_in_place() {
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
fn empty_directories_are_restored_and_new_ones_are_removed() {
    assert_round_trip(
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
fn empty_files_are_distinguished_from_missing_files() {
    assert_round_trip(
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
fn a_moved_file_is_restored_and_its_new_path_is_removed() {
    assert_round_trip(
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
fn files_with_unusual_names_are_restored() {
    let names: [&[u8]; 7] =
        [b"new\nline", b"tab\t\"quote\"\\", b"\xff\xfe", "漢字".as_bytes(), "🦀/é".as_bytes(), b" ", b"-rf"];
    assert_round_trip(
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
fn permissions_of_a_hard_link_outside_are_not_changed() {
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
    // The kernel's clock for file times ticks only every few milliseconds.
    std::thread::sleep(std::time::Duration::from_millis(30));
    restore(&ws, &one);
    assert_eq!(stamps(&ws, &["d", "d/edited"]), before);
    let restored = stamp(&ws, "d/edited");
    assert_ne!((edited.1, edited.2), (restored.1, restored.2), "a restored file gets a new mtime");
}

#[test]
fn a_restore_without_changes_writes_nothing() {
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
    assert!(ws.open().undo(ws.now()).unwrap().is_none(), "there is nothing to undo");
}

#[test]
fn a_restore_without_changes_moves_the_current_checkpoint() {
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
fn files_of_nested_repositories_are_restored_and_their_git_directories_are_kept() {
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
    assert!(ws.exists("cloned/.git"), "a repository that is newer than the checkpoint is kept");
    before.iter().zip(gits()).for_each(|(before, after)| before.assert_same(&after, ".git"));
    assert!(!ws.exists("cloned/file"));
    let mut now = ws.manifest();
    now.0.remove(&b"cloned"[..]);
    old.assert_same(&now, "everything else");
    undo(&ws);
    assert_eq!(ws.read("cloned/file").unwrap(), b"1\n");
    assert_eq!(ws.read("inner/file").unwrap(), b"2\n");
    before.iter().zip(gits()).for_each(|(before, after)| before.assert_same(&after, ".git"));
}

/// Contains so many entries that trees, files and directories are handled in parallel.
#[test]
fn many_files_in_many_directories_are_restored() {
    let path = |number: usize| format!("d{}/e{}/f{number}", number % 20, number % 340);
    assert_round_trip(
        |ws| (0..680).for_each(|number| ws.write(path(number), format!("{number}\n"))),
        |ws| {
            (0..680).step_by(3).for_each(|number| ws.write(path(number), "edited\n"));
            (1..680).step_by(3).for_each(|number| ws.remove(path(number)));
            (0..300).for_each(|number| ws.write(format!("new/{}/{number}", number % 50), "new\n"));
        },
    );
}
