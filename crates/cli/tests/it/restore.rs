//! `restore`, `undo`, `redo`, `rewind` and `recover`: their output and their errors.

use crate::place::Place;

/// Returns a workspace with a checkpoint and an unsaved change of `a.txt`.
fn changed_place() -> Place {
    let place = Place::saved();
    place.write("a.txt", "spoilt\n");
    place
}

#[test]
fn a_restore_is_undone_and_redone() {
    let place = changed_place();
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
fn a_deleted_workspace_is_created_again() {
    let place = changed_place();
    let [home, workspace] = ["", "ws"].map(|name| place.path(name));
    let named = workspace.to_str().unwrap();
    for file in ["a.txt", "dir/b.txt"] {
        place.remove(file);
    }
    for directory in [workspace.join("dir"), workspace.clone()] {
        std::fs::remove_dir(directory).unwrap();
    }
    assert!(place.run_in(&home, ["-w", named, "list"]).text().contains("first"));
    let (exit, code, _) = place.run_in(&home, ["-w", named, "status", "--json"]).error();
    assert_eq!((exit, code.as_str()), (1, "io"));
    assert!(!workspace.exists(), "looking creates nothing");
    let restored = place.run_in(&home, ["-w", named, "restore", "@"]);
    assert!(restored.stderr.contains("was deleted, and is created again"), "{}", restored.shown());
    assert_eq!(std::fs::read(workspace.join("a.txt")).unwrap(), b"one\ntwo\n");
    std::fs::rename(&workspace, place.path("moved")).unwrap();
    let (exit, code, _) = place.run_in(&home, ["-w", named, "restore", "@", "--json"]).error();
    assert_eq!((exit, code.as_str()), (1, "io"), "it was not deleted");
    assert!(!workspace.exists());
}

#[test]
fn without_an_id_a_terminal_is_needed() {
    let place = changed_place();
    let (exit, code, _) = place.run(["restore", "--json"]).error();
    assert_eq!((exit, code.as_str()), (2, "usage"));
    assert_eq!(std::fs::read(place.path("ws/a.txt")).unwrap(), b"spoilt\n");
}

#[test]
fn undo_and_redo_without_a_restore_give_a_hint() {
    let place = Place::new();
    for command in ["undo", "redo"] {
        let run = place.run([command]);
        assert!(run.stderr.contains("backtrail save") && !run.stderr.contains("restore @"), "{}", run.shown());
        assert_eq!(run.code, 0);
    }
    let place = changed_place();
    assert!(place.run(["undo"]).stderr.contains("backtrail restore @"));
}

/// Users of `git checkout FILE` are used to omitting the commit.
#[test]
fn a_path_instead_of_an_id_gets_a_hint() {
    let place = changed_place();
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

/// An invalid settings file must not prevent its own restore.
#[test]
fn an_invalid_settings_file_can_be_restored() {
    let place = Place::saved();
    place.write("backtrail.toml", "[scan]\nexclude = [\"*.log\"]\n");
    place.ok(["save", "with settings"]);
    place.write("backtrail.toml", "<<<garbage");
    assert_eq!(place.run(["save", "--json"]).error().1, "settings");
    assert!(place.ok(["list"]).contains("with settings"));
    place.ok(["restore", "@"]);
    assert_eq!(std::fs::read(place.path("ws/backtrail.toml")).unwrap(), b"[scan]\nexclude = [\"*.log\"]\n");
}

/// A restore of the directory of the stores would remove checkpoints of other workspaces.
#[test]
fn the_directory_of_the_stores_is_not_a_workspace() {
    let place = Place::saved();
    let stores = place.store().parent().unwrap().to_owned();
    let (exit, code, _) = place.run_in(&stores, ["save", "--json", "x"]).error();
    assert_eq!((exit, code.as_str()), (6, "protected_directory"));
}

#[test]
fn an_interrupted_restore_is_reported() {
    let place = changed_place();
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

/// A restore deletes the files of a repository that the checkpoint does not hold, but keeps its `.git`. It must report
/// that.
#[test]
fn the_kept_git_directory_of_a_new_repository_is_reported() {
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

/// The file exists on disk, but the checkpoint holds it under another path.
#[test]
fn a_path_through_a_symlink_is_refused() {
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
fn only_state_reports_paths_that_are_not_state_files() {
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
fn a_plan_is_applied_only_while_it_is_current() {
    let place = changed_place();
    let plan = place.json(["restore", "@", "--dry-run"])["plan"].as_str().unwrap().to_owned();
    place.write("a.txt", "and again\n");
    let (exit, code, _) = place.run(["restore", "@", "--plan", &plan, "--json"]).error();
    assert_eq!((exit, code.as_str()), (4, "plan_changed"));
    assert_eq!(std::fs::read(place.path("ws/a.txt")).unwrap(), b"and again\n");
    let (exit, code, _) = place.run(["restore", "@", "--dry-run", "--plan", &plan, "--json"]).error();
    assert_eq!((exit, code.as_str()), (4, "plan_changed"), "a dry run fails as well");
}

/// Regression: neither before nor after an undo did the output name the restore that it takes back.
#[test]
fn undo_redo_and_rewind_have_a_dry_run() {
    let place = changed_place();
    let good = place.id("@");
    place.ok(["save", "second"]);
    let is_changed = || std::fs::read(place.path("ws/a.txt")).unwrap() == b"spoilt\n";
    let rewound = place.ok(["rewind", "--dry-run"]);
    assert!(rewound.contains("would change:\n  modified  a.txt") && is_changed(), "{rewound}");
    assert!(place.ok(["undo", "--dry-run"]).contains("no restore to take back"));
    place.ok(["rewind"]);
    place.ok(["restore", "@", "dir"]);
    assert!(!is_changed());
    let checkpoints = || place.json(["list"])["checkpoints"].as_array().unwrap().len();
    let before = checkpoints();
    let undone = place.ok(["undo", "--dry-run"]);
    let of = format!("taking back the restore to {} \"first\" (", &good[..8]);
    assert!(undone.starts_with(&of) && undone.contains("modified  a.txt") && !is_changed(), "{undone}");
    assert_eq!(place.json(["undo", "--dry-run"])["applied"], false);
    assert_eq!(checkpoints(), before, "a dry run takes no safety checkpoint");
    place.ok(["undo"]);
    assert!(is_changed());
    let redone = place.ok(["redo", "--dry-run"]);
    assert!(redone.contains("taking back the undo of the restore to ") && is_changed(), "{redone}");
}

/// Regression: for a skipped path the output was "nothing to do", as if it had been restored.
#[test]
fn a_skipped_path_is_refused_with_the_rule() {
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
    assert_eq!(run.error().1, "unknown_path", "the checkpoint before skipped it");
    let hint = "other checkpoints have it; see which with: backtrail history ignored.log";
    assert_eq!(run.json()["error"]["hint"], hint);
}

#[test]
fn restore_git_moves_the_branch_with_the_files() {
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
fn the_error_for_a_message_names_its_checkpoint() {
    let place = Place::saved();
    place.write("a.txt", "2\n");
    let saved = place.json(["save", "good enough"]);
    let id = saved["checkpoint"]["short_id"].as_str().unwrap().to_owned();
    let (exit, code, message) = place.run(["restore", "good enough", "--json"]).error();
    assert_eq!((exit, code.as_str()), (3, "unknown_checkpoint"));
    assert!(message.contains(&id), "{message}");
}

#[test]
fn undo_names_the_checkpoint_of_later_work() {
    let place = changed_place();
    place.ok(["restore", "@"]);
    assert!(!place.run(["undo"]).shown().contains("unsaved changes are kept"));
    place.ok(["redo"]);
    place.write("later", "work\n");
    let undone = place.run(["undo"]);
    assert!(undone.shown().contains("unsaved changes are kept in"), "{}", undone.shown());
    place.ok(["redo"]);
    assert_eq!(std::fs::read(place.path("ws/later")).unwrap(), b"work\n");
}

/// Regression: files that an undo of some paths replaced were called unsaved, although they came from a checkpoint.
#[test]
fn files_of_a_checkpoint_are_not_called_unsaved() {
    let place = changed_place();
    place.ok(["save", "second"]);
    place.ok(["restore", "@~1", "a.txt"]);
    assert!(!place.run(["undo"]).shown().contains("unsaved changes are kept"));
    place.ok(["redo"]);
    place.write("a.txt", "edited since\n");
    assert!(place.run(["undo"]).shown().contains("unsaved changes are kept"));
}

#[test]
fn only_the_first_of_many_changes_are_named() {
    let place = Place::saved();
    for number in 10..40 {
        place.write(format!("file-{number}"), "new\n");
    }
    let restored = place.ok(["restore", "@"]);
    assert!(restored.contains("file-10") && restored.contains("and 20 more"), "{restored}");
}
