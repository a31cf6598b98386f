use std::{fs, path::Path};

use snapbox::str;

use crate::place::{Place, assert_shown, raw};

#[test]
fn save_prints_the_checkpoint() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    assert_shown!(
        place.run(["save", "before the agent"]),
        str![[r#"
saved [ID] "before the agent" (1 file, +1)
--- exit 0

"#]]
    );
    place.write("a.txt", "two\n");
    place.write("b.txt", "b\n");
    assert_shown!(
        place.run(["save", "-m", "- with a dash", "--name", "named"]),
        str![[r#"
saved [ID] "named" (2 files, +2 −1)
--- exit 0

"#]]
    );
    place.write("c.txt", "");
    assert_shown!(
        place.run(["checkpoint"]),
        str![[r#"
saved [ID] "c.txt" (1 file)
--- exit 0

"#]]
    );
}

#[test]
fn a_message_that_is_not_recorded_is_reported() {
    let place = Place::saved();
    assert_shown!(
        place.run(["save", "again"]),
        str![[r#"
nothing changed since [ID] "first": no new checkpoint
--- stderr
the message was not recorded; record it anyway with: backtrail save --allow-empty
--- exit 0

"#]]
    );
    assert_shown!(
        place.run(["save"]),
        str![[r#"
nothing changed since [ID] "first": no new checkpoint
--- exit 0

"#]]
    );
    assert_shown!(
        place.run(["save", "again", "--allow-empty"]),
        str![[r#"
saved [ID] "again" (nothing changed)
--- exit 0

"#]]
    );
}

#[test]
fn json_has_exactly_these_keys() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    let answer = place.json(["save", "first"]);
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(keys(&answer), "created checkpoint skipped dropped");
    let expected = "id short_id name message description kind timestamp parent files_changed changed_count insertions \
                    deletions step session agent turn prompt tool command author git feature_state context attachments \
                    metadata pinned complete dropped scope reverted work_totals";
    assert_eq!(keys(&answer["checkpoint"]), expected);
    let time = answer["checkpoint"]["timestamp"].as_str().unwrap();
    assert!(time.len() == 24 && time.ends_with('Z') && &time[19..20] == ".", "{time}");
}

#[test]
fn every_option_is_recorded() {
    let place = Place::new();
    fs::write(place.path("chat.jsonl"), "{}\n").unwrap();
    let words = "save --description -d- --kind feature --step 3 --session s --session-number 4 --tokens 5 \
                 --agent claude --meta k=a=b --meta empty= --attach chat=../chat.jsonl";
    let saved = &place.json(words.split(' '))["checkpoint"];
    assert_eq!(saved["description"], "-d-");
    assert_eq!(saved["kind"], "feature");
    assert_eq!((&saved["step"], &saved["session"], &saved["agent"]), (&3.into(), &"s".into(), &"claude".into()));
    assert_eq!(saved["context"].to_string(), r#"{"session_number":4,"token_usage":5}"#);
    assert_eq!(saved["metadata"].to_string(), r#"{"k":"a=b","empty":""}"#);
    assert_eq!(saved["attachments"].to_string(), r#"[{"name":"chat","bytes":3}]"#);
    assert_eq!(place.ok(["cat", "@", "--attachment", "chat"]), "{}\n");
}

#[test]
fn text_that_is_not_utf8_is_converted_lossily() {
    let place = Place::new();
    let run = place.run([raw(b"save"), raw(b"caf\xe9"), raw(b"--name"), raw(b"n\xff"), raw(b"--json")]);
    assert_eq!(run.json()["checkpoint"]["message"], "caf\u{fffd}");
    assert_eq!(place.run([raw(b"show"), raw(b"n\xfe")]).code, 0);
}

#[test]
fn included_paths_are_captured() {
    let place = Place::new();
    place.write(".gitignore", "out\n");
    place.write("out/keep", "k\n");
    place.ok(["save", "--include", "out/keep"]);
    assert_eq!(place.ok(["cat", "@", "out/keep"]), "k\n");
    let (code, word, _) = place.run(["save", "--include", "missing", "--json"]).error();
    assert_eq!((code, word.as_str()), (3, "unknown_path"));
    let (code, word, _) = place.run(["save", "--include", "../home", "--json"]).error();
    assert_eq!((code, word.as_str()), (6, "path_outside_workspace"));
}

#[test]
fn invalid_arguments_save_nothing() {
    let place = Place::saved();
    place.write("a.txt", "changed\n");
    let usage: [&[&str]; 8] = [
        &["save", "one", "-m", "two"],
        &["save", "--meta", "no-equals-sign"],
        &["save", "--attach", "no-equals-sign"],
        &["save", "--kind", "purple"],
        &["save", "--kind", "safety"],
        &["save", "--step", "x"],
        &["save", "--name", "latest"],
        &["save", "--name", ""],
    ];
    for words in usage {
        let (code, word, _) = place.run(words.iter().chain(&["--json"])).error();
        assert_eq!((code, word.as_str()), (2, "usage"), "{words:?}");
    }
    let (code, word, message) = place.run(["save", "--attach", "chat=missing.jsonl", "--json"]).error();
    assert_eq!((code, word.as_str()), (1, "io"));
    assert!(message.contains("missing.jsonl"), "{message}");
    assert_eq!(place.json(["list"])["checkpoints"].as_array().unwrap().len(), 1);
}

#[test]
fn a_name_that_is_an_address_is_refused() {
    assert_shown!(
        Place::new().run(["save", "--name", "step:1"]),
        str![[r#"
--- stderr
error: "step:1" can't be the name of a checkpoint: it has another meaning
hint: a name can't be empty, `latest`, an id or a range such as a..b, can't end with ~ or ~1, and can't start with any of @ - step: turn: commit: before: ago: at:
--- exit 2

"#]]
    );
}

#[test]
fn the_first_five_skipped_files_are_reported() {
    let place = Place::new();
    place.write("backtrail.toml", "[scan]\nmax_file_bytes = 10\n");
    for number in 0..7 {
        place.write(format!("large{number}\n"), "more than ten bytes");
    }
    assert_shown!(
        place.run(["save", "x"]),
        str![[r#"
saved [ID] "x" (1 file, +2)
--- stderr
warning: skipped large0\n: too large (19 B)
warning: skipped large1\n: too large (19 B)
warning: skipped large2\n: too large (19 B)
warning: skipped large3\n: too large (19 B)
warning: skipped large4\n: too large (19 B)
warning: and 2 more were skipped
to capture larger files, raise max_file_bytes, now 10, under [scan] in backtrail.toml
--- exit 0

"#]]
    );
    let skipped = &place.json(["save", "--allow-empty"])["skipped"];
    assert_eq!(skipped.as_array().unwrap().len(), 7);
    assert_eq!(skipped[0].to_string(), r#"{"path":"large0\n","reason":"too large"}"#);
}

#[test]
fn rebuildable_directories_are_reported_once() {
    let place = Place::new();
    place.write("package.json", "{}\n");
    place.write("node_modules/x/index.js", "x\n");
    assert!(place.run(["save", "x"]).stderr.contains("skipped node_modules: can be rebuilt"));
    place.write("package.json", "{ }\n");
    assert_eq!(place.run(["save", "y"]).stderr, "");
}

#[test]
fn a_large_first_checkpoint_names_its_largest_directories() {
    let place = Place::new();
    for name in ["data/a", "data/b", "it's/c", "small/d"] {
        place.write(name, "");
        let bytes = if name.starts_with("small") { 1000 } else { 80_000_000 };
        fs::File::options().write(true).open(place.path("ws").join(name)).unwrap().set_len(bytes).unwrap();
    }
    assert_shown!(
        place.run(["save", "large"]),
        str![[r#"
saved [ID] "large" (4 files)
--- stderr
warning: this first checkpoint holds 240 MB; you can exclude directories that need no protection
160 MB: backtrail exclude /data/
80 MB: backtrail exclude "/it's/"
1.0 kB: backtrail exclude /small/
--- exit 0

"#]]
    );
}

#[test]
fn a_file_that_is_too_large_is_reported_with_its_size_and_the_setting() {
    let place = Place::new();
    place.write("backtrail.toml", "[scan]\nmax_file_bytes = \"1KiB\"\n");
    place.write("big.bin", vec![7; 2_500]);
    assert_shown!(
        place.run(["save", "x"]),
        str![[r#"
saved [ID] "x" (1 file, +2)
--- stderr
warning: skipped big.bin: too large (2.5 kB)
to capture larger files, raise max_file_bytes, now 1KiB, under [scan] in backtrail.toml
--- exit 0

"#]]
    );
    let doctor = place.ok(["doctor"]);
    assert!(doctor.contains("too large (max_file_bytes is 1KiB): big.bin"), "{doctor}");
}

#[test]
fn the_workspace_is_named_if_it_is_not_the_current_directory() {
    let place = Place::saved();
    place.git(&["init", "-q"]);
    place.write("a.txt", "changed\n");
    assert_shown!(
        place.run_in(&place.path("ws/dir"), ["save", "from below"]),
        str![[r#"
saved [ID] "from below" (1 file, +1 −2)
--- stderr
in [ROOT]/ws
--- exit 0

"#]]
    );
    fs::create_dir(place.path("ws/dir/.git")).unwrap();
    assert_shown!(
        place.run_in(&place.path("ws/dir"), ["save", "x", "--allow-empty"]),
        str![[r#"
saved [ID] "x" (nothing changed)
--- stderr
in [ROOT]/ws
warning: [ROOT]/ws/dir has its own .git, but belongs to the workspace [ROOT]/ws; to separate it, use -w . there
--- exit 0

"#]]
    );
}

#[test]
fn quiet_prints_nothing() {
    let place = Place::new();
    place.write("backtrail.toml", "[scan]\nmax_file_bytes = 1\n");
    assert_shown!(
        place.run_in(Path::new("/"), ["-q", "save", "x", "-w", place.path("ws").to_str().unwrap()]),
        str![[r#"
--- exit 0

"#]]
    );
}

#[test]
fn protected_directories_are_refused() {
    let place = Place::new();
    fs::create_dir(place.path("home/Documents")).unwrap();
    for directory in ["/", "/tmp", "/var", "/etc", place.path("home/Documents").to_str().unwrap()] {
        let (code, word, _) = place.run(["save", "--json", "-w", directory]).error();
        assert_eq!((code, word.as_str()), (6, "protected_directory"), "{directory}");
    }
    let documents = place.path("home/Documents");
    assert_eq!(place.run(["save", "--force", "-w", documents.to_str().unwrap()]).code, 0);
}

#[test]
fn save_waits_for_the_lock() {
    let place = Place::saved();
    let held = place.hold_lock();
    let (code, word, _) = place.run(["save", "--wait", "0", "--json"]).error();
    assert_eq!((code, word.as_str()), (7, "busy"));
    assert_eq!(place.run(["list"]).code, 0, "reading does not wait for the lock");
    drop(held);
    assert_eq!(place.run(["save", "--wait", &u64::MAX.to_string()]).code, 0);
}

#[test]
fn a_name_that_moves_is_reported() {
    let place = Place::new();
    place.write("a", "1\n");
    assert!(!place.run(["save", "one", "--name", "good"]).stderr.contains("belongs to this checkpoint"));
    let before = place.id("good");
    place.write("a", "2\n");
    let run = place.run(["save", "two", "--name", "good"]);
    let warning = format!("\"good\" belongs to this checkpoint now, and no longer to {} \"one\"", &before[..8]);
    assert!(run.stderr.contains(&warning), "{}", run.shown());
    assert_ne!(place.id("good"), before);
}

/// Regression: a directory with the name of the settings file was ignored without a report.
#[test]
fn a_directory_instead_of_the_settings_file_is_reported() {
    let place = Place::saved();
    std::fs::create_dir(place.path("ws/backtrail.toml")).unwrap();
    let (exit, code, message) = place.run(["save", "--json"]).error();
    assert_eq!((exit, code.as_str()), (2, "settings"));
    assert!(message.contains("backtrail.toml: it is a directory"), "{message}");
    let listed = place.run(["list"]);
    assert!(listed.stderr.contains("it is a directory") && listed.code == 0, "{}", listed.shown());
    place.ok(["restore", "@"]);
}

/// Applies to the store of another home, and to a store that was made with `--store`. A store is refused as a
/// workspace.
#[test]
fn a_foreign_store_in_the_workspace_is_captured_like_other_files() {
    let place = Place::saved();
    let inner = place.path("ws/inner-store");
    place.ok(["save", "into a store of its own", "--store", inner.to_str().unwrap()]);
    let mut other = Place::new();
    other.set("BACKTRAIL_HOME", place.path("ws/deep/home").to_str().unwrap());
    other.write("x", "1\n");
    other.ok(["save", "of another"]);
    place.write("deep/mine", "1\n");
    place.write("inner-store-notes", "1\n");
    let saved = place.json(["save", "with stores inside"]);
    let changed = saved["checkpoint"]["files_changed"].to_string();
    assert!(changed.contains("deep/mine") && changed.contains("inner-store-notes"), "{changed}");
    assert!(changed.contains("inner-store/HEAD"), "{changed}");
    place.ok(["restore", "@~1"]);
    assert!(!place.path("ws/deep/mine").exists());
    place.ok(["undo"]);
    assert_eq!(other.json(["verify"])["ok"], true);
    assert!(other.ok(["list"]).contains("of another"));
    assert_eq!(place.json(["list", "--store", inner.to_str().unwrap()])["checkpoints"].as_array().unwrap().len(), 1);
    let (exit, code, _) = place.run_in(&inner, ["save", "--json", "-w", "."]).error();
    assert_eq!((exit, code.as_str()), (6, "protected_directory"), "a store is not a workspace");
}

/// Regression: save waited forever for a FIFO, and read forever from a device.
#[test]
fn an_attachment_that_is_not_a_regular_file_is_refused_at_once() {
    let place = Place::saved();
    assert!(std::process::Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    std::os::unix::fs::symlink(place.path("pipe"), place.path("link")).unwrap();
    for file in ["../pipe", "../link", "/dev/zero", "/dev/null"] {
        let words = ["10", env!("CARGO_BIN_EXE_backtrail"), "save", "--json", "--attach", &format!("n={file}")];
        let mut command = std::process::Command::new("timeout");
        command.args(words).current_dir(place.path("ws")).env_clear();
        command.envs([("PATH", std::env::var("PATH").unwrap()), ("HOME", place.path("home").display().to_string())]);
        let done = command.output().unwrap();
        let stdout = String::from_utf8_lossy(&done.stdout);
        assert_eq!(done.status.code(), Some(2), "{file}: {stdout}");
        assert!(
            stdout.contains(file.trim_start_matches("../")) && stdout.contains("is not a regular file"),
            "{stdout}"
        );
    }
}
