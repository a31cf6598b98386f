use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::Value;
use snapbox::str;

use crate::place::{Place, assert_shown};

/// Returns a workspace with two checkpoints and an unsaved change, and the ids of the checkpoints.
fn two_checkpoints() -> (Place, String, String) {
    let place = Place::saved();
    let first = place.id("@");
    place.write("new", "n\n");
    place.remove("dir/b.txt");
    place.ok(["save", "second"]);
    let second = place.id("@");
    place.write("a.txt", "one\ntwo\nthree\n");
    (place, first, second)
}

#[test]
fn the_arguments_choose_the_sides() {
    let (place, first, second) = two_checkpoints();
    let sides = |words: &[&str]| {
        let answer = place.json(["diff"].iter().chain(words).copied());
        let paths: Vec<_> = answer["changes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|change| change["path"].as_str().unwrap().to_owned())
            .collect();
        (answer["from"].clone(), answer["to"].clone(), paths.join(" "))
    };
    let text = |id: &str| Value::from(id);
    assert_eq!(sides(&[]), (text(&second), Value::Null, "a.txt".into()));
    assert_eq!(sides(&[&first]), (text(&first), Value::Null, "a.txt dir/b.txt new".into()));
    assert_eq!(sides(&[&first, &second]), (text(&first), text(&second), "dir/b.txt new".into()));
    assert_eq!(sides(&[&first, "--", "dir", "./new"]), (text(&first), Value::Null, "dir/b.txt new".into()));
}

#[test]
fn json_groups_the_paths_by_status() {
    let place = Place::saved();
    place.write("dir/c", "c\n");
    place.write("typed", "t\n");
    place.write("moded", "m\n");
    place.ok(["save"]);
    place.remove("typed");
    std::os::unix::fs::symlink("a.txt", place.path("ws/typed")).unwrap();
    fs::set_permissions(place.path("ws/moded"), fs::Permissions::from_mode(0o600)).unwrap();
    place.write("a.txt", "three\n");
    place.remove("dir/c");
    place.write("later", "l\n");
    let answer = place.json(["diff"]);
    let keys: Vec<_> = answer.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["from", "to", "changes", "added_files", "modified_files", "deleted_files", "patch"]);
    let paths = ["added_files", "modified_files", "deleted_files"].map(|key| answer[key].to_string());
    assert_eq!(paths, [r#"["later"]"#, r#"["a.txt","moded","typed"]"#, r#"["dir/c"]"#]);
    assert!(answer["patch"].as_str().unwrap().contains("+three"));
}

#[test]
fn patch_statistics_and_names_are_printed() {
    let (place, first, _) = two_checkpoints();
    assert_shown!(
        place.run(["diff"]),
        str![[r#"
diff --git a/a.txt b/a.txt
index [ID40]..[ID40] 100644
--- a/a.txt
+++ b/a.txt
@@ -1,2 +1,3 @@
 one
 two
+three
--- exit 0

"#]]
    );
    assert_shown!(
        place.run(["diff", &first, "--stat"]),
        str![[r#"
  a.txt     | 1 +
  dir/b.txt | 1 -
  new       | 1 +
  3 files +2 −1
--- exit 0

"#]]
    );
    assert_shown!(
        place.run(["diff", &first, "--name-status"]),
        str![[r#"
M	a.txt
D	dir/b.txt
A	new
--- exit 0

"#]]
    );
    assert_shown!(
        place.run(["diff", &first, first.as_str()]),
        str![[r#"
--- stderr
no differences
--- exit 0

"#]]
    );
    assert_eq!(place.run(["diff", "--stat", "--name-status"]).code, 2);
}

#[test]
fn only_a_coloured_patch_is_escaped() {
    let place = Place::saved();
    place.write("a.txt", "one\n\x1b[31mtwo\r\n");
    assert!(place.ok(["diff"]).contains("+\x1b[31mtwo\r\n"));
    let coloured = place.ok(["diff", "--color", "always"]);
    assert!(coloured.contains("\x1b[32m+\\x1b[31mtwo\\r\x1b[0m\n"), "{coloured:?}");
}

#[test]
fn before_the_first_checkpoint_everything_is_new() {
    let place = Place::new();
    place.write("a", "1\n");
    let answer = place.json(["diff"]);
    assert_eq!((&answer["from"], answer["added_files"].to_string()), (&Value::Null, r#"["a"]"#.into()));
    let (code, word, _) = place.run(["diff", "@", "--json"]).error();
    assert_eq!((code, word.as_str()), (3, "unknown_checkpoint"));
}

#[test]
fn unknown_checkpoints_and_outside_paths_are_refused() {
    let place = Place::saved();
    for words in [["diff", "nonsense", "--json"], ["diff", "a.txt", "--json"], ["diff", "", "--json"]] {
        let (code, word, _) = place.run(words).error();
        assert_eq!((code, word.as_str()), (3, "unknown_checkpoint"), "{words:?}");
    }
    let (code, word, _) = place.run(["diff", "--json", "--", "../home"]).error();
    assert_eq!((code, word.as_str()), (6, "path_outside_workspace"));
}

/// Outside its scope, such a checkpoint has the files of the checkpoint that the workspace stood on, not those on disk.
#[test]
fn a_safety_checkpoint_with_a_scope_is_compared_within_it() {
    let place = Place::new();
    for text in ["1\n", "2\n"] {
        place.write("a", text);
        place.write("b", text);
        place.ok(["save"]);
    }
    place.write("b", "3\n");
    let first = place.id("@~1");
    let safety = place.json(["restore", &first, "b"])["safety"].as_str().unwrap().to_owned();
    place.write("a", "4\n");
    for words in [&["diff", &safety, &first][..], &["diff", &first, &safety], &["diff", &safety]] {
        let changes = place.json(words.iter().copied())["changes"].clone();
        let paths: Vec<&str> = changes.as_array().unwrap().iter().map(|it| it["path"].as_str().unwrap()).collect();
        assert_eq!(paths, ["b"], "{words:?}");
    }
    let status = place.json(["status", "--since", &safety]);
    assert_eq!(status["changes"].as_array().unwrap().len(), 1, "{status}");
}

/// If a file can't be compared any more, "no differences" would be wrong.
#[test]
fn saved_files_that_would_be_skipped_now_are_reported() {
    let place = Place::new();
    for path in ["pipe", "src/m", "large", "plain"] {
        place.write(path, "1\n");
    }
    place.ok(["save", "one"]);
    let saved = place.id("@");
    assert_eq!(place.json(["diff"]).get("skipped"), None);
    place.remove("pipe");
    assert!(std::process::Command::new("mkfifo").arg(place.path("ws/pipe")).status().unwrap().success());
    place.write("src/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
    place.write("large", "much\n".repeat(100));
    place.write("backtrail.toml", "[scan]\nmax_file_bytes = 100\n");
    for (named, path, reason) in [("pipe", "pipe", "special file"), ("large", "large", "too large")] {
        let warning = format!("warning: {path} was saved before, but would be skipped now: {reason}\n");
        let run = place.run(["diff", &saved, "--", named]);
        assert_eq!(run.stderr, format!("no differences in files that can be saved\n{warning}"), "{}", run.shown());
        let answer = place.json(["diff", &saved, "--", named]);
        assert_eq!(answer["skipped"], serde_json::json!([{ "path": path, "reason": reason }]), "{answer}");
    }
    assert_eq!(place.json(["diff"])["skipped"].as_array().unwrap().len(), 2, "the files in src stay captured");
    assert_eq!(place.run(["diff", "--", "plain"]).stderr, "no differences\n");
    place.ok(["save", "two"]);
    assert_eq!(place.json(["diff", &saved, "@"]).get("skipped"), None, "a checkpoint lists its skipped paths itself");
}

/// Returns whether stock git can apply the patch to the files of the current checkpoint.
fn applies(place: &Place, patch: &[u8]) -> bool {
    let number = (1..).find(|number| !place.path(&format!("copy-{number}")).exists()).unwrap();
    let (copy, patch_file) = (place.path(&format!("copy-{number}")), place.path("patch"));
    fs::write(&patch_file, patch).unwrap();
    place.ok(["export", "@", copy.to_str().unwrap()]);
    let init = std::process::Command::new("git").args(["init", "-q"]).arg(&copy).status().unwrap();
    let apply = std::process::Command::new("git")
        .args(["apply", "--whitespace=nowarn"])
        .arg(patch_file)
        .current_dir(&copy)
        .output()
        .unwrap();
    init.success() && apply.status.success()
}

/// Regression: for a changed binary of 90 MB and a text of 74 MB, 300 MB were printed.
#[test]
fn a_long_difference_is_cut_unless_full_is_given() {
    let place = Place::saved();
    let lines = |word: &str, count: usize| -> String { (0..count).map(|line| format!("{word} {line:09}\n")).collect() };
    place.write("long", lines("word", 200_000));
    let run = place.run(["diff"]);
    assert!((1_000_000..1_100_000).contains(&run.stdout.len()), "{}", run.stdout.len());
    assert_eq!(
        run.stderr,
        "warning: the differences of long are not shown in full; see everything with: backtrail diff --full\n"
    );
    assert!(run.text().ends_with("the rest of this file is not shown\n"));
    assert!(!applies(&place, &run.stdout), "a part of a patch must not apply");
    let full = place.run(["diff", "--full"]);
    assert_eq!((full.stderr.as_str(), place.json(["diff"])["patch"].as_str()), ("", Some(full.text().as_str())));
    assert!(full.stdout.len() > 2_000_000 && applies(&place, &full.stdout));

    for number in 0..14 {
        place.write(format!("more-{number}"), lines("other", 60_000));
    }
    let run = place.run(["diff"]);
    assert!((10 << 20) - 100 < run.stdout.len() && run.stdout.len() < (10 << 20) + 100, "{}", run.stdout.len());
    assert_eq!(
        run.stderr,
        "warning: only the first 10 MiB of the differences are shown; see everything with: backtrail diff --full\n"
    );
    assert!(run.text().ends_with("\n@@ -1 +1 @@ the rest is not shown\n"));
    assert!(!applies(&place, &run.stdout));
    assert_eq!(place.run(["diff", "--stat"]).stderr, "");
    assert_eq!(place.run(["diff", "--full", "--stat"]).code, 2);
}

/// A patch that is cut between two files or hunks must not look complete.
#[test]
fn a_cut_difference_never_applies() {
    let place = Place::saved();
    place.write("a.txt", "one\ntwo\nthree\n");
    for cut in ["", "@@ -1 +1 @@ the rest is not shown\n"] {
        let patch = format!("{}{cut}", place.ok(["diff"]));
        assert_eq!(applies(&place, patch.as_bytes()), cut.is_empty());
    }
}

#[test]
fn binary_files_are_shown_with_their_sizes() {
    let place = Place::saved();
    place.write("changed", [0; 100]);
    place.write("gone", [0, 1, 2]);
    place.ok(["save"]);
    place.write("changed", [0; 2_000]);
    place.write("came", [0; 30]);
    place.remove("gone");
    let shown = place.ok(["diff"]);
    let sized: Vec<&str> = shown.lines().filter(|line| line.starts_with("Binary")).collect();
    assert_eq!(
        sized,
        [
            "Binary files a/came and b/came differ (30 bytes)",
            "Binary files a/changed and b/changed differ (100 bytes before, 2000 bytes after)",
            "Binary files a/gone and b/gone differ (3 bytes)",
        ]
    );
    assert!(!applies(&place, shown.as_bytes()));
    let full = place.ok(["diff", "--full"]);
    assert!(full.contains("GIT binary patch") && applies(&place, full.as_bytes()));
    assert_eq!(place.json(["diff"])["patch"].as_str(), Some(full.as_str()));
}

/// Runs the program. Returns its peak memory in kB, and its stdout.
fn peak_memory(place: &Place, words: &[&str]) -> (u64, Vec<u8>) {
    let mut command = place.command(&place.path("ws"), words);
    let mut child = command.stdout(fs::File::create(place.path("out")).unwrap()).spawn().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        peak = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0).max(peak);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    (peak, fs::read(place.path("out")).unwrap())
}

/// Returns bytes that do not compress.
fn noise(mut seed: u64, length: usize) -> Vec<u8> {
    let mut next = || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed.to_le_bytes()
    };
    (0..length / 8).flat_map(|_| next()).collect()
}

#[test]
fn large_files_are_compared_in_little_memory() {
    const BYTES: usize = 40_000_000;
    let place = Place::new();
    let write = |word: &str, seed| {
        place.write("binary", noise(seed, BYTES));
        place.write("text", format!("{word} of a text that is rather long\n").repeat(BYTES / 40));
    };
    let assert_small = |words: &[&str]| {
        let (peak, shown) = peak_memory(&place, words);
        let shown = String::from_utf8(shown).unwrap();
        assert!(shown.len() < 1_000 && shown.contains("Binary files a/binary and b/binary differ ("), "{shown}");
        assert!(
            shown.contains("Files a/text and b/text differ, and are too large to compare line by line ("),
            "{shown}"
        );
        assert!(peak > 0 && peak < 200_000, "{peak} kB");
    };
    write("line", 1);
    place.ok(["save", "one"]);
    write("word", 2);
    assert_small(&["diff"]);
    place.ok(["save", "two"]);
    assert_small(&["diff", "@~1", "@"]);
}
