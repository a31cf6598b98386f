//! A path that `@` holds stays captured until its owner excludes it. If it can't be captured any more, it is reported.

use backtrail::{Reason, RestoreRequest, SaveRequest, Saved, Settings};
use backtrail_testkit::TestWorkspace;

fn save(ws: &TestWorkspace) -> Saved {
    ws.save_with(&SaveRequest::default())
}

fn captured(ws: &TestWorkspace) -> Vec<String> {
    ws.paths_in_store(&ws.open().current().unwrap().unwrap())
}

fn dropped(saved: &Saved) -> Vec<(String, Reason)> {
    saved.dropped.iter().map(|dropped| (dropped.path.to_string(), dropped.reason)).collect()
}

/// Returns the settings of the user's own file, merged with those of the workspace's file.
fn settings(ws: &TestWorkspace, of_user: serde_json::Value) -> Settings {
    Settings::default().with_values(of_user).unwrap().with_workspace(&ws.root()).unwrap()
}

#[test]
fn a_rule_in_any_source_does_not_end_the_capture_of_a_held_path() {
    for source in [".gitignore", "d/.gitignore", ".git/info/exclude", "backtrail.toml"] {
        let ws = TestWorkspace::new();
        ws.git(&["init", "-q"]);
        ws.write("d/held", "1");
        save(&ws);
        ws.write(source, if source == "backtrail.toml" { "[scan]\nexclude = [\"*\"]\n" } else { "*\n" });
        ws.write("d/held", "2");
        ws.write("d/new", "1");
        let saved = save(&ws);
        let paths = captured(&ws);
        assert!(paths.contains(&"d/held".to_owned()), "{source}: {paths:?}");
        assert!(!paths.contains(&"d/new".to_owned()), "{source}: {paths:?}");
        assert!(source.starts_with(".git/") || paths.contains(&source.to_owned()), "{source}: {paths:?}");
        assert_eq!(dropped(&saved), [], "{source}");
        let unchanged = save(&ws);
        assert!(!unchanged.created, "{source}: the stat cache agrees");
        ws.remove("d/held");
        ws.open().restore(&RestoreRequest::whole(saved.checkpoint.id), ws.now()).unwrap();
        assert_eq!(ws.read("d/held").unwrap(), b"2", "{source}");
    }
}

#[test]
fn a_mark_does_not_end_the_capture_of_a_held_path() {
    let tag = "Signature: 8a477f597d28d172789f06886806bc55\n";
    for (mark, text) in [("d/CACHEDIR.TAG", tag), ("d/pyvenv.cfg", "home = /usr\n")] {
        let ws = TestWorkspace::new();
        ws.write("d/in/held", "1");
        save(&ws);
        ws.write(mark, text);
        ws.write("d/in/new", "1");
        ws.write("d/in/held", "2");
        assert_eq!(dropped(&save(&ws)), [], "{mark}");
        assert_eq!(captured(&ws), ["d/in/held"], "{mark}");
        assert!(ws.is_in_store(b"2"), "{mark}");
    }
}

/// Regression: a tracked directory that looked like a store or a staging area was skipped without a report.
#[test]
fn a_directory_that_looks_like_a_store_or_a_staging_area_is_captured() {
    let ws = TestWorkspace::new();
    ws.write("src/backtrail/format", "backtrail store 1\n");
    ws.write("src/objects/x", "1");
    ws.write("src/main.rs", "1");
    ws.mkdir(".backtrail-0123456789abcdef");
    ws.write(".backtrail-0123456789abcdef/notes", "1");
    save(&ws);
    ws.write(".backtrail-0123456789abcdef/.gitignore", "# Made by Backtrail for a restore, and removed after it.\n*\n");
    save(&ws);
    let area = ".backtrail-0123456789abcdef";
    let expected = [
        format!("{area}/.gitignore"),
        format!("{area}/notes"),
        "src/backtrail/format".into(),
        "src/main.rs".into(),
        "src/objects/x".into(),
    ];
    assert_eq!(captured(&ws), expected);
}

#[test]
fn the_exclude_command_ends_the_capture_and_a_pattern_added_by_hand_does_not() {
    let ws = TestWorkspace::new();
    ws.write("dist/a", "1");
    ws.write("k", "1");
    save(&ws);
    ws.write("backtrail.toml", "[scan]\nexclude = [\"dist/\"]\n");
    save(&ws);
    assert_eq!(captured(&ws), ["backtrail.toml", "dist/a", "k"]);
    ws.open().exclude(&ws.root(), &["dist/".to_owned()], ws.now()).unwrap();
    let saved = save(&ws);
    assert_eq!(captured(&ws), ["backtrail.toml", "k"]);
    assert_eq!(dropped(&saved), [], "the owner excluded it");
    ws.open().restore(&RestoreRequest::whole(saved.checkpoint.id), ws.now()).unwrap();
    assert_eq!(ws.read("dist/a").unwrap(), b"1", "an excluded file stays on disk");
}

#[test]
fn a_confirmed_pattern_applies_only_while_the_settings_contain_it() {
    let ws = TestWorkspace::new();
    ws.write("dist/a", "1");
    save(&ws);
    ws.open().exclude(&ws.root(), &["dist/".to_owned()], ws.now()).unwrap();
    ws.write("backtrail.toml", "");
    save(&ws);
    ws.write(".gitignore", "dist/\n");
    save(&ws);
    assert_eq!(captured(&ws), [".gitignore", "backtrail.toml", "dist/a"]);
}

#[test]
fn the_users_own_settings_end_the_capture() {
    let ws = TestWorkspace::new();
    ws.write("dist/a", "1");
    ws.write("k", "1");
    save(&ws);
    let own = settings(&ws, serde_json::json!({ "scan": { "exclude": ["dist/"] } }));
    let saved = ws.open_with(&ws.root(), own).save(&SaveRequest::default(), ws.now()).unwrap();
    assert_eq!(ws.paths_in_store(&saved.checkpoint.id), ["k"]);
    assert_eq!(dropped(&saved), []);
}

/// Regression: after the limit was lowered, the stat cache decided whether an unchanged file was captured or skipped.
#[test]
fn a_lowered_limit_does_not_end_the_capture_of_a_file_that_did_not_grow() {
    for settled in [true, false] {
        for round in 0..10 {
            let ws = TestWorkspace::new();
            ws.write("large", [b'x'; 2_000]);
            ws.write("other", [b'y'; 2_000]);
            if settled {
                std::thread::sleep(std::time::Duration::from_millis(30));
            }
            save(&ws);
            ws.write("backtrail.toml", "[scan]\nmax_file_bytes = 1000\n");
            ws.write("other", [b'y'; 1_500]);
            ws.write("new", [b'z'; 1_500]);
            assert_eq!(dropped(&save(&ws)), [], "round {round}");
            assert_eq!(captured(&ws), ["backtrail.toml", "large", "other"], "round {round}");
        }
    }
}

#[test]
fn a_file_that_grows_over_the_limit_is_dropped_once_and_captured_again_when_it_fits() {
    let ws = TestWorkspace::new();
    ws.write("backtrail.toml", "[scan]\nmax_file_bytes = 1000\n");
    ws.write("grown", "1");
    save(&ws);
    ws.write("grown", [b'x'; 2_000]);
    let first = save(&ws);
    assert_eq!(dropped(&first), [("grown".to_owned(), Reason::TooLarge)]);
    assert_eq!((first.created, first.checkpoint.dropped), (true, 1));
    let second = save(&ws);
    assert_eq!((second.created, dropped(&second)), (false, vec![]));
    ws.write("other", "1");
    let third = save(&ws);
    assert_eq!((dropped(&third), third.checkpoint.dropped), (vec![], 0));
    let unprotected = ws.open().unprotected().unwrap();
    assert_eq!(unprotected.iter().map(|one| one.path.to_string()).collect::<Vec<_>>(), ["grown"]);
    ws.write(".gitignore", "grown\n");
    ws.write("grown", "fits again");
    save(&ws);
    assert!(captured(&ws).contains(&"grown".to_owned()), "captured again, although a new rule ignores it");
    assert_eq!(ws.open().unprotected().unwrap(), []);
}

#[test]
fn a_dropped_directory_is_captured_again_with_the_files_that_it_held() {
    let ws = TestWorkspace::new();
    ws.write("d/held", "1");
    ws.write("k", "1");
    save(&ws);
    // A special file in the place of the directory can't be captured.
    ws.rename("d", "aside");
    make_fifo(&ws, "d");
    ws.write(".gitignore", "d/\naside/\n");
    let saved = save(&ws);
    assert_eq!(dropped(&saved), [("d".to_owned(), Reason::Special)]);
    ws.remove("d");
    ws.rename("aside", "d");
    ws.write("d/new", "1");
    save(&ws);
    assert_eq!(captured(&ws), [".gitignore", "d/held", "k"]);
}

fn make_fifo(ws: &TestWorkspace, name: &str) {
    let made = std::process::Command::new("mkfifo").arg(ws.path(name)).status().unwrap();
    assert!(made.success());
}

#[test]
fn a_restore_removes_paths_that_its_target_deleted_and_keeps_paths_that_it_skipped() {
    let ws = TestWorkspace::new();
    ws.write("data/held", "1");
    ws.write("k", "1");
    let first = ws.save();
    ws.write(".gitignore", "data/\n");
    ws.remove("data/held");
    ws.write("data/skipped", "1");
    let without = ws.save();
    ws.open().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap();
    assert_eq!(ws.read("data/held").unwrap(), b"1");
    ws.open().restore(&RestoreRequest::whole(without.id), ws.now()).unwrap();
    assert!(!ws.exists("data/held"), "the target does not have it");
    assert_eq!(ws.read("data/skipped").unwrap(), b"1", "the target had skipped it");
    ws.open().undo(ws.now()).unwrap();
    assert_eq!(ws.read("data/held").unwrap(), b"1");
}

#[test]
fn after_a_restore_paths_that_only_later_checkpoints_held_follow_the_rules_again() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", "private/\n");
    ws.write("private/a", "1");
    ws.write("k", "1");
    let first = ws.save();
    let include = vec![ws.workspace_path("private/a")];
    ws.save_with(&SaveRequest { include, ..SaveRequest::default() });
    ws.open().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap();
    assert_eq!(ws.read("private/a").unwrap(), b"1");
    ws.write("k", "2");
    save(&ws);
    assert_eq!(captured(&ws), [".gitignore", "k"]);
}

#[test]
fn rule_files_are_captured_even_if_a_rule_excludes_them() {
    let ws = TestWorkspace::new();
    ws.write(".gitignore", ".gitignore\nbacktrail.toml\nout/\n");
    ws.write("backtrail.toml", "[scan]\nexclude = [\".gitignore\", \"*.toml\"]\n");
    ws.write("sub/.gitignore", "*\n");
    ws.write("sub/x", "1");
    ws.write("out/.gitignore", "*\n");
    ws.write("sub/backtrail.toml", "1");
    save(&ws);
    assert_eq!(captured(&ws), [".gitignore", "backtrail.toml", "sub/.gitignore"]);
    let rules = ws.open().current().unwrap().unwrap();
    ws.remove("sub/.gitignore");
    ws.open().restore(&RestoreRequest::whole(rules), ws.now()).unwrap();
    assert_eq!(ws.read("sub/.gitignore").unwrap(), b"*\n");
}

#[test]
fn a_restore_removes_a_rule_file_that_is_newer_than_its_target() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let first = ws.save();
    ws.write(".gitignore", "*\n");
    ws.write("a", "2");
    ws.open().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap();
    assert!(!ws.exists(".gitignore"));
    assert_eq!(ws.read("a").unwrap(), b"1");
}

#[test]
fn rule_files_that_are_too_large_are_reported_and_not_applied() {
    let ws = TestWorkspace::new();
    ws.git(&["init", "-q"]);
    let large = format!("*.dat\n{}", "# filler\n".repeat(150_000));
    ws.write(".gitignore", &large);
    ws.write(".git/info/exclude", &large);
    ws.write("a.dat", "1");
    let saved = save(&ws);
    assert_eq!(captured(&ws), [".gitignore", "a.dat"]);
    let names: Vec<_> = saved.unapplied_rules.iter().map(|path| path.strip_prefix(ws.root()).unwrap()).collect();
    assert_eq!(names, [std::path::Path::new(".gitignore"), std::path::Path::new(".git/info/exclude")]);
    ws.write("backtrail.toml", format!("[scan]\nexclude = [\"*.dat\"]\n{}", "# filler\n".repeat(150_000)));
    ws.write("b.dat", "1");
    let saved = save(&ws);
    assert_eq!(captured(&ws), [".gitignore", "a.dat", "b.dat", "backtrail.toml"]);
    assert!(saved.unapplied_rules.iter().any(|path| path.ends_with("backtrail.toml")), "{:?}", saved.unapplied_rules);
}

#[test]
fn files_that_are_still_captured_are_grouped_by_the_path_that_the_rule_matches() {
    let ws = TestWorkspace::new();
    for path in ["dist/a", "dist/sub/b", "x.log", "k"] {
        ws.write(path, "1");
    }
    assert_eq!(save(&ws).still_captured, []);
    ws.write(".gitignore", "dist/\n*.log\n");
    let groups: Vec<(String, usize, bool)> = save(&ws)
        .still_captured
        .into_iter()
        .map(|group| (group.path.to_string(), group.files, group.is_directory))
        .collect();
    assert_eq!(groups, [("dist".to_owned(), 2, true), ("x.log".to_owned(), 1, false)]);
}

/// Regression: a pattern that the owner had confirmed stayed confirmed after it was removed from the settings. An agent
/// could add it again and end the capture.
#[test]
fn the_owners_consent_ends_when_the_pattern_leaves_the_settings() {
    for is_restored in [true, false] {
        let ws = TestWorkspace::new();
        ws.write("src/a", "1");
        ws.write("k", "1");
        let first = ws.save();
        ws.open().exclude(&ws.root(), &["src".to_owned()], ws.now()).unwrap();
        if is_restored {
            ws.open().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap();
        } else {
            ws.write("backtrail.toml", "");
            save(&ws);
        }
        ws.write("backtrail.toml", "[scan]\nexclude = [\"src\"]\n");
        ws.write("src/a", "2");
        save(&ws);
        assert_eq!(captured(&ws), ["backtrail.toml", "k", "src/a"], "restored: {is_restored}");
    }
}
