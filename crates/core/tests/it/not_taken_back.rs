//! [`Workspace::not_taken_back`](backtrail::Workspace::not_taken_back) lists the paths that differ after a restore.

use std::{
    fs::{self, File, FileTimes},
    os::unix::fs::symlink,
    path::Path,
};

use backtrail::RestoreRequest;
use backtrail_testkit::TestWorkspace;

const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n";

/// Saves, runs `act`, restores, and returns the paths that still differ.
fn paths_left_after(ws: &TestWorkspace, act: impl FnOnce(&Path)) -> Vec<String> {
    let checkpoint = ws.save().id;
    let workspace = ws.open();
    let before = workspace.survey().unwrap();
    act(&ws.root());
    let request = RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(checkpoint) };
    workspace.restore(&request, ws.now()).unwrap();
    let found = workspace.not_taken_back(&before, &checkpoint).unwrap();
    found.iter().map(|path| path.to_text().into_owned()).collect()
}

#[test]
fn changed_created_and_deleted_ignored_files_are_listed() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.log\n");
    for name in ["changed.log", "gone.log", "same.log", "dir/also.log", "k"] {
        ws.write(name, "1\n");
    }
    let found = paths_left_after(&ws, |root| {
        fs::write(root.join("changed.log"), "22\n").unwrap();
        fs::write(root.join("made.log"), "new\n").unwrap();
        fs::remove_file(root.join("gone.log")).unwrap();
        ws.remove("dir");
        fs::write(root.join("k"), "2\n").unwrap();
        fs::write(root.join("captured"), "new\n").unwrap();
    });
    assert_eq!(found, ["changed.log", "dir", "gone.log", "made.log"]);
    assert_eq!(fs::read_to_string(ws.root().join("k")).unwrap(), "1\n");
}

#[test]
fn nothing_is_listed_if_the_restore_brings_everything_back() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.log\nout/\n");
    ws.write("a/k", "1\n");
    ws.write("a/x.log", "1\n");
    ws.write("out/deep/x", "1\n");
    ws.write("empty/.keep", "");
    let found = paths_left_after(&ws, |root| {
        fs::remove_file(root.join("a/k")).unwrap();
        ws.remove("empty");
        fs::write(root.join("a/new"), "1\n").unwrap();
        fs::create_dir_all(root.join("b/c")).unwrap();
        fs::write(root.join("b/c/d"), "1\n").unwrap();
        fs::write(root.join(".gitignore"), "nothing\n").unwrap();
    });
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_new_or_removed_directory_is_one_entry() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "out/\n");
    for name in ["out/old/1", "out/old/2/3", "out/kept/a", "out/kept/b"] {
        ws.write(name, "1\n");
    }
    let found = paths_left_after(&ws, |root| {
        ws.remove("out/old");
        fs::remove_file(root.join("out/kept/a")).unwrap();
        fs::create_dir_all(root.join("out/new/in")).unwrap();
        fs::write(root.join("out/new/in/x"), "1\n").unwrap();
        fs::write(root.join("out/kept/c"), "1\n").unwrap();
    });
    assert_eq!(found, ["out/kept/a", "out/kept/c", "out/new", "out/old"]);
}

/// A program can set the size and the modification time, but not the change time.
#[test]
fn a_rewrite_with_the_same_size_and_time_is_listed() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "*.log\n");
    ws.write("x.log", "1\n");
    let time = fs::metadata(ws.root().join("x.log")).unwrap().modified().unwrap();
    let found = paths_left_after(&ws, |root| {
        fs::write(root.join("x.log"), "2\n").unwrap();
        let file = File::options().write(true).open(root.join("x.log")).unwrap();
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
    });
    assert_eq!(found, ["x.log"]);
}

#[test]
fn rebuildable_directories_are_compared_at_their_top_level() {
    let ws = TestWorkspace::new();
    ws.write("target/CACHEDIR.TAG", TAG);
    ws.write("target/debug/deps/x", "1\n");
    ws.write("target/info", "1\n");
    ws.write("k", "1\n");
    let found = paths_left_after(&ws, |root| {
        fs::write(root.join("target/debug/deps/x"), "22\n").unwrap();
        fs::write(root.join("target/info"), "22\n").unwrap();
        fs::create_dir(root.join("target/release")).unwrap();
    });
    assert_eq!(found, ["target/info", "target/release"]);
}

/// A command must not be able to hide its changes behind a mark.
#[test]
fn a_new_mark_hides_nothing() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "data/\n");
    ws.write("data/deep/x", "1\n");
    ws.write("k", "1\n");
    let found = paths_left_after(&ws, |root| {
        fs::write(root.join("data/CACHEDIR.TAG"), TAG).unwrap();
        fs::write(root.join("data/deep/x"), "22\n").unwrap();
    });
    assert_eq!(found, ["data/CACHEDIR.TAG", "data/deep/x"]);
}

/// A restore does not bring back the rule file, so its rule hides new files from the restore.
#[test]
fn a_rule_outside_the_checkpoint_hides_nothing() {
    let ws = TestWorkspace::new();
    ws.git(&["init", "-q"]);
    ws.write("a.txt", "1\n");
    let found = paths_left_after(&ws, |root| {
        fs::create_dir_all(root.join(".git/info")).unwrap();
        fs::write(root.join(".git/info/exclude"), "*.txt\n").unwrap();
        fs::write(root.join("a.txt"), "22\n").unwrap();
        fs::write(root.join("new.txt"), "1\n").unwrap();
    });
    assert_eq!(found, ["new.txt"]);
    assert_eq!(fs::read_to_string(ws.root().join("a.txt")).unwrap(), "1\n");
}

#[test]
fn git_directories_are_not_compared_and_symlinks_are_not_followed() {
    let ws = TestWorkspace::new();
    ws.git(&["init", "-q"]);
    ws.write(".gitignore", "*.link\n");
    symlink(ws.outside(), ws.root().join("same.link")).unwrap();
    symlink(ws.outside(), ws.root().join("other.link")).unwrap();
    let outside = ws.outside();
    let found = paths_left_after(&ws, |root| {
        fs::write(outside.join("x"), "1\n").unwrap();
        fs::write(root.join(".git/description"), "changed\n").unwrap();
        fs::remove_file(root.join("other.link")).unwrap();
        symlink("elsewhere", root.join("other.link")).unwrap();
    });
    assert_eq!(found, ["other.link"]);
}

#[test]
fn a_skipped_file_that_became_a_directory_is_listed() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "x\nd\n");
    ws.write("x", "1\n");
    ws.write("d/in", "1\n");
    ws.write("k", "1\n");
    let found = paths_left_after(&ws, |root| {
        fs::remove_file(root.join("x")).unwrap();
        fs::create_dir(root.join("x")).unwrap();
        ws.remove("d");
        fs::write(root.join("d"), "1\n").unwrap();
    });
    assert_eq!(found, ["d", "x"]);
}

#[test]
fn permission_bits_of_skipped_directories_are_compared() {
    use std::os::unix::fs::PermissionsExt;
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "out/\n");
    ws.write("out/x", "1\n");
    ws.write("kept/k", "1\n");
    let found = paths_left_after(&ws, |root| {
        for name in ["out", "kept"] {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o700)).unwrap();
        }
    });
    assert_eq!(found, ["out"]);
}
