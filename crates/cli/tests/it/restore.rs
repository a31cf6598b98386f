//! `restore`, `undo`, `redo`, `rewind`, `recover`: what is said, and what is refused.

use crate::place::Place;

fn changed() -> Place {
    let place = Place::saved();
    place.write("a.txt", "spoilt\n");
    place
}

#[test]
fn there_and_back() {
    let place = changed();
    let before = std::fs::read(place.path("ws/a.txt")).unwrap();
    let restored = place.run(["restore", "@"]);
    assert!(restored.text().contains("restored 1 path to"), "{}", restored.text());
    assert_ne!(std::fs::read(place.path("ws/a.txt")).unwrap(), before);
    let undone = place.ok(["undo"]);
    assert!(undone.starts_with("took back the restore to ") && undone.contains(" \"first\" ("), "{undone}");
    assert_eq!(std::fs::read(place.path("ws/a.txt")).unwrap(), before);
    let redone = place.ok(["redo"]);
    assert!(redone.starts_with("took back the undo of the restore to ") && redone.contains("\"first\""), "{redone}");
    assert!(place.ok(["redo"]).contains("no undo to take back"));
}

#[test]
fn without_an_id_and_a_terminal() {
    let place = changed();
    let (exit, code, _) = place.run(["restore", "--json"]).error();
    assert_eq!((exit, code.as_str()), (2, "usage"));
    assert_eq!(std::fs::read(place.path("ws/a.txt")).unwrap(), b"spoilt\n");
}

#[test]
fn nothing_to_take_back_and_nothing_saved() {
    let place = Place::new();
    for command in ["undo", "redo"] {
        let run = place.run([command]);
        assert!(run.stderr.contains("backtrail save") && !run.stderr.contains("restore @"), "{}", run.shown());
        assert_eq!(run.code, 0);
    }
    let place = changed();
    assert!(place.run(["undo"]).stderr.contains("backtrail restore @"));
}

/// `git checkout FILE` has taught people to leave the commit out.
#[test]
fn a_path_in_the_place_of_an_id() {
    let place = changed();
    let hint = |words: &[&str]| {
        let run = place.run(words);
        assert_eq!(run.code, 3, "{}", run.shown());
        run.stderr.lines().last().unwrap().to_owned()
    };
    assert_eq!(hint(&["restore", "a.txt", "dir/b.txt"]), "hint: for a path, run: backtrail restore @ a.txt dir/b.txt");
    assert_eq!(hint(&["diff", "a.txt"]), "hint: for a path, run: backtrail diff -- a.txt");
    assert_eq!(hint(&["diff", "@", "a.txt"]), "hint: for a path, run: backtrail diff @ -- a.txt");
    place.remove("a.txt");
    assert_eq!(hint(&["restore", "./a.txt"]), "hint: for a path, run: backtrail restore @ ./a.txt");
    assert_eq!(hint(&["restore", "missing.txt"]), "hint: list the checkpoints with: backtrail list");
    assert!(!place.path("ws/a.txt").exists(), "a hint restores nothing");
}

/// A mangled settings file is just what people want to bring back: it must not stand in its own way.
#[test]
fn a_spoilt_settings_file_can_be_brought_back() {
    let place = Place::saved();
    place.write("backtrail.toml", "[scan]\nexclude = [\"*.log\"]\n");
    place.ok(["save", "with settings"]);
    place.write("backtrail.toml", "<<<garbage");
    assert_eq!(place.run(["save", "--json"]).error().1, "settings");
    assert!(place.ok(["list"]).contains("with settings"));
    place.ok(["restore", "@"]);
    assert_eq!(std::fs::read(place.path("ws/backtrail.toml")).unwrap(), b"[scan]\nexclude = [\"*.log\"]\n");
}

/// The stores as a workspace would take checkpoints away from everybody else when restored.
#[test]
fn the_stores_are_no_workspace() {
    let place = Place::saved();
    let stores = place.store().parent().unwrap().to_owned();
    let (exit, code, _) = place.run_in(&stores, ["save", "--json", "x"]).error();
    assert_eq!((exit, code.as_str()), (6, "protected_directory"));
}

#[test]
fn an_interrupted_restore_is_told_of() {
    let place = changed();
    std::fs::write(place.store().join("backtrail/journal"), "garbage\n").unwrap();
    let status = place.run(["status"]);
    assert!(status.shown().contains("a restore was interrupted"), "{}", status.shown());
    let refused = place.run(["save", "--json"]);
    let (exit, code, _) = refused.error();
    assert_eq!((exit, code.as_str()), (5, "store_damaged"));
    assert!(refused.stderr.contains("recover --abort"), "{}", refused.stderr);
    assert_eq!(place.run(["verify", "--json"]).json()["ok"], false);
    let recovered = place.json(["recover", "--abort"]);
    assert_eq!((recovered["recovered"].as_bool(), recovered["outcome"].as_str()), (Some(false), Some("set_aside")));
    place.ok(["save", "goes on"]);
}

/// A repository that the checkpoint knows nothing of loses its files and keeps what is git's own: that has to be said.
#[test]
fn a_repository_that_came_since_is_told_of() {
    let place = Place::saved();
    let why = "new/.git: it belongs to git, so it stays, and so does its directory";
    place.write("new/file", "1\n");
    place.write("new/.git/HEAD", "ref: refs/heads/main\n");
    let shown = place.ok(["restore", "@", "--dry-run"]);
    assert!(shown.contains("  deleted  new/file") && shown.contains(&format!("\n  stays    {why}\n")), "{shown}");
    let planned = place.json(["restore", "@", "--dry-run"]);
    assert_eq!((planned["conflicts"].as_array().unwrap().len(), &planned["stays"][0]["path"]), (0, &"new/.git".into()));
    let restored = place.run(["restore", "@"]);
    assert!(restored.stderr.contains(&format!("warning: {why}\n")), "{}", restored.shown());
    assert_eq!(place.json(["restore", "@", "--dry-run"]).get("stays"), None);
    place.write("new/file", "1\n");
    let again = place.json(["restore", "@"]);
    assert_eq!(
        (&again["conflicts"], &again["stays"][0]["path"]),
        (&serde_json::json!([]), &"new/.git".into()),
        "{again}"
    );
}

/// It is on disk, as anybody can see, but by another path.
#[test]
fn a_path_that_lies_behind_a_link() {
    let place = Place::saved();
    std::fs::create_dir(place.path("ws/links")).unwrap();
    std::os::unix::fs::symlink("../dir", place.path("ws/links/link")).unwrap();
    place.ok(["save", "with a link"]);
    let at = place.id("@")[..8].to_owned();
    let hint = "hint: symbolic links are not followed: give the path without them\n";
    let run = place.run(["restore", "@", "links/link/b.txt"]);
    let message =
        format!("links/link/b.txt is not in checkpoint {at}, and its path goes through the symbolic link links/link");
    assert_eq!((run.code, run.stderr), (3, format!("error: {message}\n{hint}")));
    let run = place.run(["history", "links/link/b.txt"]);
    assert!(run.code == 3 && run.stderr.ends_with(hint), "{}", run.shown());
    let run = place.run(["restore", "@", "links/none"]);
    assert!(run.stderr.contains("links/none is not in checkpoint") && run.stderr.contains("and not on disk\n"));
}

#[test]
fn state_alone_of_paths_that_are_none() {
    let place = Place::saved();
    place.write("a.txt", "changed\n");
    let none_set = place.run(["restore", "@", "--only", "state"]);
    assert!(none_set.text().contains("nothing to do: there are no state files"), "{}", none_set.shown());
    place.write("progress.md", "1\n");
    place.write("backtrail.toml", "[state]\nprogress = \"progress.md\"\n");
    place.ok(["save"]);
    place.write("a.txt", "changed again\n");
    let words = ["restore", "@", "a.txt", "--only", "state"];
    for words in [&words[..], &[&words[..], &["--dry-run"]].concat()] {
        let run = place.run(words);
        assert_eq!(run.code, 0);
        assert_eq!(run.text(), "nothing to do: none of the named paths is a state file\n", "{}", run.shown());
    }
    assert_eq!(place.json(words)["changes"].as_array().unwrap().len(), 0);
    place.write("progress.md", "2\n");
    assert!(place.ok(["restore", "@", "a.txt", "progress.md", "--only", "state"]).starts_with("restored 1 path"));
    assert_eq!(std::fs::read(place.path("ws/a.txt")).unwrap(), b"changed again\n");
    let missing = place.run(["restore", "@", "missing", "--only", "state"]);
    assert!(missing.code == 3 || missing.text().contains("none of the named paths"), "{}", missing.shown());
}

#[test]
fn a_preview_is_carried_out_only_while_it_holds() {
    let place = changed();
    let plan = place.json(["restore", "@", "--dry-run"])["plan"].as_str().unwrap().to_owned();
    place.write("a.txt", "and again\n");
    let (exit, code, _) = place.run(["restore", "@", "--plan", &plan, "--json"]).error();
    assert_eq!((exit, code.as_str()), (4, "plan_changed"));
    assert_eq!(std::fs::read(place.path("ws/a.txt")).unwrap(), b"and again\n");
    let (exit, code, _) = place.run(["restore", "@", "--dry-run", "--plan", &plan, "--json"]).error();
    assert_eq!((exit, code.as_str()), (4, "plan_changed"), "a preview says so as well");
}

/// Which restore an undo would take back was not said before it was done, nor afterwards.
#[test]
fn undo_redo_and_rewind_can_be_looked_at_first() {
    let place = changed();
    let good = place.id("@");
    place.ok(["save", "second"]);
    let spoilt = || std::fs::read(place.path("ws/a.txt")).unwrap() == b"spoilt\n";
    let rewound = place.ok(["rewind", "--dry-run"]);
    assert!(rewound.contains("would change:\n  modified  a.txt") && spoilt(), "{rewound}");
    assert!(place.ok(["undo", "--dry-run"]).contains("no restore to take back"));
    place.ok(["rewind"]);
    place.ok(["restore", "@", "dir"]);
    assert!(!spoilt());
    let checkpoints = || place.json(["list"])["checkpoints"].as_array().unwrap().len();
    let before = checkpoints();
    let undone = place.ok(["undo", "--dry-run"]);
    let of = format!("taking back the restore to {} \"first\" (", &good[..8]);
    assert!(undone.starts_with(&of) && undone.contains("modified  a.txt") && !spoilt(), "{undone}");
    assert_eq!(place.json(["undo", "--dry-run"])["applied"], false);
    assert_eq!(checkpoints(), before, "looking takes no safety checkpoint");
    place.ok(["undo"]);
    assert!(spoilt());
    let redone = place.ok(["redo", "--dry-run"]);
    assert!(redone.contains("taking back the undo of the restore to ") && spoilt(), "{redone}");
}

/// What checkpoints leave out can't be brought back; "nothing to do" sounded as if it had been.
#[test]
fn a_path_that_is_left_out_is_named_with_the_rule() {
    let place = Place::saved();
    place.write(".gitignore", "*.log\n/build/\n");
    place.write("ignored.log", "x\n");
    place.write("build/o", "x\n");
    place.write("src/a.py", "x\n");
    place.ok(["save", "with rules"]);
    place.git(&["init", "-q"]);
    let refused = |word: &str| {
        let run = place.run(["restore", "@", word, "--json"]);
        let (exit, code, message) = run.error();
        assert_eq!((exit, code.as_str()), (3, "unknown_path"), "{word}");
        assert!(message.starts_with(word), "{message}");
        run.json()["error"]["hint"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        refused("ignored.log"),
        "the pattern *.log in .gitignore excludes it; no checkpoint has it; capture it from now on with: backtrail save \
         --include ignored.log"
    );
    assert!(refused("build").starts_with("the pattern /build/ in .gitignore excludes it"));
    assert!(refused("build/o").starts_with("the pattern /build/ in .gitignore excludes it"));
    assert!(refused(".git/config").contains("--git"));
    assert!(refused("src/*.py").contains("not as patterns"));
    assert_eq!(place.run(["restore", "@", "build", "--dry-run", "--json"]).error().0, 3);
    let beside = place.run(["restore", "@", "src", "ignored.log"]);
    assert!(beside.stderr.contains("not restored: ignored.log"), "{}", beside.shown());
    assert_eq!(beside.code, 0);
    place.ok(["save", "--include", "ignored.log", "now it has it"]);
    let run = place.run(["restore", "@~1", "ignored.log", "--json"]);
    assert_eq!(run.error().1, "unknown_path", "the checkpoint before left it out");
    let hint = "other checkpoints have it; see which with: backtrail history ignored.log";
    assert_eq!(run.json()["error"]["hint"], hint);
}

#[test]
fn git_goes_back_with_the_files_where_asked() {
    let place = Place::saved();
    let git = |words: &[&str]| place.git(words);
    git(&["init", "-q"]);
    git(&["add", "-A"]);
    git(&["commit", "-q", "-m", "first"]);
    place.ok(["save", "at the first commit", "--name", "first"]);
    place.write("a.txt", "second\n");
    git(&["commit", "-q", "-a", "-m", "second"]);
    let (exit, code, _) = place.run(["restore", "first", "a.txt", "--git", "--json"]).error();
    assert_eq!((exit, code.as_str()), (2, "usage"));
    assert!(place.ok(["restore", "first", "--git", "--dry-run"]).contains("git would be on main at"));
    assert_eq!(git(&["log", "--format=%s"]), "second\nfirst\n");
    let restored = place.ok(["restore", "first", "--git"]);
    assert!(restored.contains("git is on main at"), "{restored}");
    assert_eq!(git(&["log", "--format=%s"]), "first\n");
    assert_eq!(git(&["status", "--porcelain"]), "");
    place.ok(["undo"]);
    assert_eq!(git(&["log", "--format=%s"]), "second\nfirst\n");
    place.write(".git/MERGE_HEAD", "x\n");
    let (exit, code, message) = place.run(["restore", "first", "--git", "--json"]).error();
    assert_eq!((exit, code.as_str()), (6, "git_state"), "{message}");
}

#[test]
fn a_message_taken_for_a_name_leads_to_its_checkpoint() {
    let place = Place::saved();
    place.write("a.txt", "2\n");
    let saved = place.json(["save", "good enough"]);
    let id = saved["checkpoint"]["short_id"].as_str().unwrap().to_owned();
    let (exit, code, message) = place.run(["restore", "good enough", "--json"]).error();
    assert_eq!((exit, code.as_str()), (3, "unknown_checkpoint"));
    assert!(message.contains(&id), "{message}");
}

#[test]
fn an_undo_says_where_later_work_went() {
    let place = changed();
    place.ok(["restore", "@"]);
    assert!(!place.run(["undo"]).shown().contains("set aside"));
    place.ok(["redo"]);
    place.write("later", "work\n");
    let undone = place.run(["undo"]);
    assert!(undone.shown().contains("set aside in"), "{}", undone.shown());
    place.ok(["redo"]);
    assert_eq!(std::fs::read(place.path("ws/later")).unwrap(), b"work\n");
}

/// What an undo of some paths takes away was called unsaved, although it had just come from a checkpoint.
#[test]
fn what_came_from_a_checkpoint_is_not_called_unsaved() {
    let place = changed();
    place.ok(["save", "second"]);
    place.ok(["restore", "@~1", "a.txt"]);
    assert!(!place.run(["undo"]).shown().contains("set aside"));
    place.ok(["redo"]);
    place.write("a.txt", "edited since\n");
    assert!(place.run(["undo"]).shown().contains("set aside"));
}

#[test]
fn of_many_changes_the_first_are_named() {
    let place = Place::saved();
    for number in 10..40 {
        place.write(format!("file-{number}"), "new\n");
    }
    let restored = place.ok(["restore", "@"]);
    assert!(restored.contains("file-10") && restored.contains("and 20 more"), "{restored}");
}
