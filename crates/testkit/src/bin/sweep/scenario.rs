//! The operations that are swept, each with its preparation.

use backtrail_testkit::Random;

use crate::{
    fault::{Fault, Point},
    place::Place,
    strace,
};

/// An operation.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) prepare: fn(&Place),
    /// The arguments of the program. `{elsewhere}` is a directory beside the workspace.
    pub(crate) command: &'static [&'static str],
    /// Set if a restore was interrupted before. Then finishing it and taking it back are both correct.
    pub(crate) is_interrupted: bool,
    /// A fault that is injected every time, to simulate a system that lacks a feature.
    pub(crate) always: Option<&'static str>,
    /// The exit status of a successful run.
    pub(crate) exit: i32,
    /// The changes that a command started by the program makes to the workspace.
    pub(crate) done_by_command: Option<fn(&Place)>,
    /// Set if the user's repository moves with the files.
    pub(crate) moves_git: bool,
}

pub(crate) const fn scenario(name: &'static str, prepare: fn(&Place), command: &'static [&'static str]) -> Scenario {
    Scenario {
        name,
        prepare,
        command,
        is_interrupted: false,
        always: None,
        exit: 0,
        done_by_command: None,
        moves_git: false,
    }
}

pub(crate) fn all() -> Vec<Scenario> {
    vec![
        scenario("first save", first, &["save", "-m", "first"]),
        scenario("save", edited, &["save", "-m", "swept"]),
        scenario("save with attachment", edited, &["save", "-m", "swept", "--name", "n", "--attach", "log=edited"]),
        scenario("save that tidies", crowded, &["save", "-m", "swept"]),
        scenario("restore", edited, &["restore", "one"]),
        scenario("restore of paths", edited, &RESTORE_PATHS),
        scenario("restore after a save", saved, &["restore", "one"]),
        Scenario {
            always: Some("inject=renameat2:error=EINVAL"),
            ..scenario("restore without exchange", edited, &["restore", "one"])
        },
        Scenario { moves_git: true, ..scenario("restore --git", committed, &["restore", "one", "--git"]) },
        Scenario { moves_git: true, ..scenario("undo of restore --git", reset, &["undo"]) },
        scenario("undo", restored, &["undo"]),
        scenario("redo", undone, &["redo"]),
        scenario("revert", edited_elsewhere, &["revert", "two"]),
        scenario("undo of a revert", reverted, &["undo"]),
        scenario("revert of a hunk", two_hunks, &["revert", "two", "--hunk", HUNK]),
        scenario("adopt", forked, &["adopt", "{elsewhere}/fork"]),
        Scenario {
            exit: 0,
            ..scenario("bisect --in-place", edited, &["bisect", "--in-place", "--", "test", "-e", "deleted"])
        },
        scenario("delete", edited, &["delete", "one"]),
        scenario("delete of a pinned one", pinned, &["delete", "one"]),
        scenario("delete of packed refs", crowded_and_packed, &["delete", "one"]),
        scenario("prune", deleted, &["prune"]),
        scenario("pin", edited, &["pin", "one"]),
        scenario("step", edited, &["step", "--session", "s", "edited"]),
        Scenario {
            exit: 3,
            done_by_command: Some(|place| {
                std::fs::rename(place.path("ws/same"), place.path("ws/moved")).unwrap();
            }),
            ..scenario("try", edited, &["try", "--", "sh", "-c", "mv same moved; exit 3"])
        },
        scenario("export", edited, &["export", "one", "{elsewhere}/out"]),
        Scenario { is_interrupted: true, ..scenario("recover", interrupted, &["recover"]) },
        Scenario { is_interrupted: true, ..scenario("recover --abort", interrupted, &["recover", "--abort"]) },
        scenario("first save of much", large, &["save", "-m", "first"]),
        scenario("restore of many", many, &["restore", "one"]),
    ]
}

/// The first hunk of `two_hunks`.
const HUNK: &str = "86f9e8eecec431fd";

const RESTORE_PATHS: [&str; 7] = ["restore", "one", "edited", "dir-to-file", "file-to-dir/inside", "nested", "deleted"];

fn first(place: &Place) {
    place.write("a", "1\n");
    place.write("nested/x", "2\n");
    place.link("a", "link");
    init(place, "ws");
    init(place, "ws/nested");
}

/// Writes so much data that a part of it is sealed as a pack while the rest is still being written.
fn large(place: &Place) {
    first(place);
    for number in 0..3 {
        std::fs::write(place.path(&format!("ws/large-{number}")), Random::new(number).bytes(2 << 20)).unwrap();
    }
}

/// Writes so many files that a restore handles them in parallel.
fn many(place: &Place) {
    let path = |number: usize| format!("d{}/{number}", number % 7);
    init(place, "ws");
    (0..45).for_each(|number| place.write(&path(number), &format!("{number}\n")));
    place.ok(&["save", "-m", "one", "--name", "one"]);
    (0..30).for_each(|number| place.write(&path(number), "edited\n"));
    (30..40).for_each(|number| place.remove(&path(number)));
    (50..60).for_each(|number| place.write(&path(number), "only on disk\n"));
}

fn init(place: &Place, directory: &str) {
    assert!(place.git(&place.path(directory), &["init", "-q"]).status.success());
}

/// Saves every kind of entry as `one`, then every kind of change as `two`, then makes unsaved edits.
fn edited(place: &Place) {
    saved(place);
    place.write("edited", "unsaved work\n");
    place.write("unsaved", "only on disk\n");
    place.write(".env", "SECRET=unsaved\n");
}

fn saved(place: &Place) {
    place.write(".gitignore", "*.o\nignored/\n.env\n");
    place.write(".env", "SECRET=1\n");
    place.write("ignored/x", "never captured\n");
    place.write("same", "same\n");
    place.write("edited", "one\n");
    place.write("deleted", "comes back\n");
    place.write("mode", "m\n");
    place.write("secret", "s\n");
    place.chmod("secret", 0o600);
    place.write("file-to-dir", "was a file\n");
    place.write("dir-to-file/a/b", "was in a directory\n");
    place.link("same", "link");
    place.link("edited", "link-to-file");
    place.write("file-to-link", "was a file, too\n");
    place.write("dir-to-link/inner", "below a directory\n");
    place.link("same", "link-to-dir");
    place.mkdir("empty/inner");
    place.mkdir("closed");
    place.write("closed/file", "in a closed directory\n");
    place.chmod("closed", 0o755);
    place.write("linked", "hard\n");
    std::fs::hard_link(place.path("ws/linked"), place.path("ws/linked-too")).unwrap();
    place.write("nested/file", "in a nested repository\n");
    init(place, "ws");
    assert!(place.git(&place.path("ws"), &["add", "-A"]).status.success());
    init(place, "ws/nested");
    place.ok(&["save", "-m", "one", "--name", "one"]);

    place.write("edited", "two\n");
    place.remove("deleted");
    place.chmod("mode", 0o755);
    place.remove("file-to-dir");
    place.write("file-to-dir/inside/deep", "new inside\n");
    place.remove("dir-to-file");
    place.write("dir-to-file", "now a file\n");
    place.remove("link");
    place.link("edited", "link");
    place.remove("link-to-file");
    place.write("link-to-file", "now a file\n");
    place.remove("file-to-link");
    place.link("same", "file-to-link");
    place.remove("dir-to-link");
    place.link("/nowhere/at/all", "dir-to-link");
    place.remove("link-to-dir");
    place.write("link-to-dir/file", "below what was a link\n");
    place.remove("empty");
    place.mkdir("other-empty");
    place.write("closed/file", "edited in there\n");
    place.chmod("closed", 0o500);
    place.write("linked", "edited through one name\n");
    place.write("nested/file", "edited\n");
    place.write("nested/new", "new in nested\n");
    place.write("added/deep/file", "added\n");
    place.ok(&["save", "-m", "two", "--name", "two"]);
}

/// Takes so many checkpoints that the next save merges packs and packs refs.
fn crowded(place: &Place) {
    place.write("a", "0\n");
    place.ok(&["save", "-m", "one", "--name", "one"]);
    for number in 0..100 {
        // Every second checkpoint has no new content, so its pack contains nothing but the commit.
        place.write("a", &format!("{}\n", number / 2));
        place.ok(&["save", "-m", "more", "--allow-empty"]);
    }
    place.write("a", "unsaved\n");
}

fn crowded_and_packed(place: &Place) {
    crowded(place);
    place.ok(&["save", "-m", "packs the refs"]);
    place.write("a", "unsaved again\n");
}

fn restored(place: &Place) {
    edited(place);
    place.ok(&["restore", "one"]);
    place.write("after the restore", "edit\n");
}

fn undone(place: &Place) {
    restored(place);
    place.ok(&["undo"]);
    place.write("after the undo", "edit\n");
}

/// Saves every kind of change as `two`, then makes unsaved edits that a revert of it keeps.
fn edited_elsewhere(place: &Place) {
    saved(place);
    place.write("unsaved", "only on disk\n");
    place.write(".env", "SECRET=unsaved\n");
}

fn reverted(place: &Place) {
    edited_elsewhere(place);
    place.ok(&["revert", "two"]);
    place.write("after the revert", "edit\n");
}

/// Saves two hunks of one file as `two`.
fn two_hunks(place: &Place) {
    let text = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n8\n9\n{last}\n");
    place.write("file", &text("1", "10"));
    place.ok(&["save", "-m", "one", "--name", "one"]);
    place.write("file", &text("agent", "agent"));
    place.write("new", "new\n");
    place.ok(&["save", "-m", "two", "--name", "two"]);
}

/// Makes a fork, and edits the same file there and here.
fn forked(place: &Place) {
    let text = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n8\n9\n{last}\n");
    place.write("both", &text("1", "10"));
    place.write("gone", "g\n");
    place.ok(&["save", "-m", "one", "--name", "one"]);
    let fork = place.path("elsewhere/fork");
    place.ok(&["fork", &fork.display().to_string()]);
    std::fs::write(fork.join("both"), text("fork", "10")).unwrap();
    std::fs::write(fork.join("new"), "n\n").unwrap();
    std::fs::remove_file(fork.join("gone")).unwrap();
    place.write("both", &text("1", "here"));
}

fn pinned(place: &Place) {
    edited(place);
    place.ok(&["pin", "one"]);
}

fn deleted(place: &Place) {
    edited(place);
    place.ok(&["delete", "one"]);
}

/// Prepares a repository that has moved on since the checkpoint, with unsaved edits.
fn committed(place: &Place) {
    let git = |words: &[&str]| assert!(place.git(&place.path("ws"), words).status.success(), "git {words:?}");
    place.write("a", "1\n");
    place.write("d/b", "2\n");
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "one"]);
    place.ok(&["save", "-m", "one", "--name", "one"]);
    place.write("a", "two\n");
    place.remove("d");
    place.write("new", "3\n");
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "two"]);
    place.write("a", "unsaved\n");
}

fn reset(place: &Place) {
    committed(place);
    place.ok(&["restore", "one", "--git"]);
    place.write("after", "edit\n");
}

/// Prepares a restore that was killed while it was being applied.
fn interrupted(place: &Place) {
    edited(place);
    let restore = scenario("interrupted", edited, &["restore", "one"]);
    place.remember();
    let calls = strace::baseline(place, &restore);
    place.reset();
    let moves = calls.iter().filter(|call| call.name == "renameat2").count();
    let point = Point { call: "renameat2".into(), number: moves - moves / 3, fault: Fault::Kill };
    let done = strace::inject(place, &restore, &point);
    assert!(done.was_injected && done.code.is_none(), "the restore was not killed");
}
