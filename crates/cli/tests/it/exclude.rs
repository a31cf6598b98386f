use std::fs;

use snapbox::str;

use crate::place::{Place, assert_shown};

#[test]
fn added_patterns_take_effect() {
    let place = Place::new();
    assert_shown!(
        place.run(["exclude", "*.log", "data/"]),
        str![[r#"
[ROOT]/ws/backtrail.toml now has 2 exclude patterns
--- stderr
existing checkpoints keep these paths; see what is skipped with: backtrail doctor
--- exit 0

"#]]
    );
    assert!(!place.path("home/backtrail").exists(), "no store is needed");
    place.write("a.log", "1\n");
    place.write("data/x", "1\n");
    place.write("b", "1\n");
    let changes = place.json(["status"])["changes"].clone();
    let paths: Vec<_> = changes.as_array().unwrap().iter().map(|change| change["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["b", "backtrail.toml"]);
}

#[test]
fn the_rest_of_the_settings_file_is_kept() {
    let place = Place::new();
    let before = "# mine\n[scan]   # odd\nexclude = [\"*.log\"]\n\n[retention]\nstep = 3\n";
    place.write("backtrail.toml", before);
    let answer = place.json(["exclude", "*.tmp", "*.log"]);
    let file = place.path("ws/backtrail.toml");
    assert_eq!(answer, serde_json::json!({ "file": file.to_str().unwrap(), "exclude": ["*.log", "*.tmp"] }));
    let after = fs::read_to_string(&file).unwrap();
    assert_eq!(after, before.replace("[\"*.log\"]", "[\"*.log\", \"*.tmp\"]"));
    place.json(["exclude", "*.tmp"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), after, "the pattern is already there");
}

/// A path, absolute or relative to the current directory, works like a pattern for it.
#[test]
fn paths_become_patterns_for_the_same_file() {
    let place = Place::saved();
    place.write("data/x", "1\n");
    place.write("dir/data/x", "1\n");
    place.write("dir/a.log", "1\n");
    place.write("odd[1]/b.log", "1\n");
    let root = place.path("ws");
    let absolute = root.join("data").display().to_string();
    let exclude = |directory: &str, words: &[&str]| {
        let run = place.run_in(&root.join(directory), ["exclude", "--json"].iter().chain(words));
        assert_eq!(run.code, 0, "{}", run.shown());
        fs::remove_file(root.join("backtrail.toml")).unwrap();
        run.json()["exclude"].clone()
    };
    let shown = |patterns: &[&str]| {
        place.ok(["exclude", "--quiet"].iter().chain(patterns));
        let changes = place.json(["status"])["changes"].clone();
        fs::remove_file(root.join("backtrail.toml")).unwrap();
        let paths = changes.as_array().unwrap().iter().map(|change| change["path"].as_str().unwrap().to_owned());
        paths.filter(|path| path != "backtrail.toml").collect::<Vec<_>>()
    };
    assert_eq!(exclude("", &["./data", &absolute]), serde_json::json!(["/data"]));
    assert_eq!(exclude("", &[&format!("{absolute}/"), "!./data/keep"]), serde_json::json!(["/data/", "!/data/keep"]));
    assert_eq!(
        exclude("dir", &["./*.log", "*.log", "./data/"]),
        serde_json::json!(["/dir/*.log", "*.log", "/dir/data/"])
    );
    assert_eq!(exclude("odd[1]", &["./b.log", "."]), serde_json::json!(["/odd\\[1]/b.log", "/odd\\[1]"]));
    assert_eq!(exclude("", &["/tmp", "/dir/hosts", "/**/x"]), serde_json::json!(["/tmp", "/dir/hosts", "/**/x"]));
    let all = ["data/x", "dir/a.log", "dir/data/x", "odd[1]/b.log"];
    assert_eq!(shown(&["./data"]), all[1..]);
    assert_eq!(shown(&[&absolute]), all[1..]);
    assert_eq!(shown(&["/odd\\[1]/b.log"]), all[..3]);
    let outside = place.path("home").join("x").display().to_string();
    for words in [["exclude", &outside], ["exclude", "../x"]] {
        let refused = place.run(words);
        assert_eq!(refused.code, 2, "{}", refused.shown());
    }
    let elsewhere = place.run_in(&place.path("home"), ["-w", root.to_str().unwrap(), "exclude", "./data"]);
    assert!(elsewhere.code == 2 && elsewhere.stderr.contains("outside the workspace"), "{}", elsewhere.shown());
    assert!(!root.join("backtrail.toml").exists());
}

#[test]
fn a_pattern_that_is_not_utf8_is_refused() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let refused = place.run([std::ffi::OsStr::new("exclude"), std::ffi::OsStr::from_bytes(b"a\xff")]);
    assert!(refused.code == 2 && refused.stderr.contains("not UTF-8"), "{}", refused.shown());
    assert!(!place.path("ws/backtrail.toml").exists());
}

#[test]
fn byte_order_mark_comments_and_line_endings_are_kept() {
    let place = Place::new();
    let before = "\u{feff}# mine\r\n[scan]\r\nexclude = [\r\n  \"*.log\" # noise\r\n]\r\n";
    place.write("backtrail.toml", before);
    place.json(["exclude", "*.tmp"]);
    let after = "\u{feff}# mine\r\n[scan]\r\nexclude = [\r\n  \"*.log\", # noise\r\n  \"*.tmp\"\r\n]\r\n";
    assert_eq!(fs::read_to_string(place.path("ws/backtrail.toml")).unwrap(), after);
    place.write("a.tmp", "1\n");
    place.write("a.log", "1\n");
    assert_eq!(place.json(["status"])["changes"].as_array().unwrap().len(), 1, "both patterns take effect");
}

#[test]
fn a_symlinked_settings_file_is_not_changed() {
    let place = Place::new();
    let shared = place.path("shared.toml");
    fs::write(&shared, "[scan]\n").unwrap();
    std::os::unix::fs::symlink(&shared, place.path("ws/backtrail.toml")).unwrap();
    let (_, word, message) = place.run(["exclude", "x", "--json"]).error();
    assert!(word == "settings" && message.contains("it is a symbolic link"), "{message}");
    assert_eq!(fs::read_to_string(&shared).unwrap(), "[scan]\n");
}

#[test]
fn missing_patterns_and_invalid_settings_are_refused() {
    let place = Place::new();
    assert_eq!(place.run(["exclude", "--json"]).error().1, "usage");
    assert_eq!(place.run(["exclude", "", "--json"]).error().1, "usage");
    place.write("backtrail.toml", "[scan\n");
    assert_eq!(place.run(["exclude", "x", "--json"]).error().1, "settings");
    assert_eq!(fs::read_to_string(place.path("ws/backtrail.toml")).unwrap(), "[scan\n");
}

/// Regression: concurrent runs overwrote each other's patterns, and some failed because of each other's new file.
#[test]
fn concurrent_runs_lose_no_pattern() {
    for place in [Place::new(), Place::saved()] {
        let patterns: Vec<String> = (0..8).map(|number| format!("p{number}")).collect();
        let start = |pattern: &String| {
            let mut command = place.command(&place.path("ws"), ["exclude", "--quiet", pattern]);
            command.stderr(std::process::Stdio::piped()).spawn().unwrap()
        };
        let running: Vec<_> = patterns.iter().map(start).collect();
        for child in running {
            let done = child.wait_with_output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        let found = place.json(["exclude", "p0"])["exclude"].clone();
        let mut found: Vec<_> = found.as_array().unwrap().iter().map(|pattern| pattern.as_str().unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, patterns);
        let left = fs::read_dir(place.path("ws")).unwrap().map(|entry| entry.unwrap().file_name());
        assert!(left.into_iter().all(|name| name != ".backtrail.toml.new"), "a new file was left behind");
    }
}

#[test]
fn exclude_waits_for_the_lock() {
    let place = Place::saved();
    let held = place.hold_lock();
    let (code, word, _) = place.run(["exclude", "x", "--wait", "0", "--json"]).error();
    assert_eq!((code, word.as_str()), (7, "busy"));
    drop(held);
    place.ok(["exclude", "x"]);
    let place = Place::new();
    let held = fs::File::open(place.path("ws")).unwrap();
    rustix::fs::flock(&held, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert_eq!(place.run(["exclude", "x", "--wait", "0", "--json"]).error().1, "busy");
    assert!(!place.path("ws/backtrail.toml").exists());
}
