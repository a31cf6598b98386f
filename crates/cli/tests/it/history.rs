use std::fs;

use snapbox::str;

use crate::place::{Place, assert_shown, raw, without_clock_times};

/// Returns a workspace with three versions of `a.txt`. The last one is broken.
fn place_with_versions() -> Place {
    let place = Place::saved();
    place.write("a.txt", "one\ntwo\nthree\n");
    place.ok(["save", "good"]);
    place.write("a.txt", "gone\n");
    place.ok(["save", "spoilt"]);
    place
}

#[test]
fn versions_are_listed_with_time_lines_and_size() {
    let place = place_with_versions();
    place.write("b.bin", b"\0\x01");
    place.ok(["save", "binary"]);
    let run = place.run(["history", "a.txt"]);
    snapbox::assert_data_eq!(
        without_clock_times(&run.shown()),
        snapbox::IntoData::raw(str![[r#"
on disk now: the version of [ID] "spoilt"
[CLOCK]  modified  +1 −3   5 B  [ID] "spoilt"
[CLOCK]  modified  +1     14 B  [ID] "good"
[CLOCK]  added     +2      8 B  [ID] "first"
--- stderr
bring back the one before the last change with: backtrail restore [ID] a.txt
--- exit 0

"#]])
    );
    let versions = place.json(["history", "b.bin"])["versions"].clone();
    assert_eq!((&versions[0]["binary"], &versions[0]["bytes"]), (&true.into(), &2.into()));
}

/// Regression: the hint named the newest version, which is the one that the user wants to replace.
#[test]
fn the_hint_names_the_version_before_the_last_change() {
    let place = place_with_versions();
    let (good, last) = (place.id("@~1"), place.id("@"));
    let hint = |place: &Place| {
        let run = place.run(["history", "a.txt"]);
        run.stderr.trim().rsplit(" restore ").next().unwrap().to_owned()
    };
    assert_eq!(hint(&place), format!("{} a.txt", &good[..8]));
    place.write("a.txt", "and changed again\n");
    assert_eq!(hint(&place), format!("{} a.txt", &last[..8]), "the last change is not saved");
    place.remove("a.txt");
    assert_eq!(hint(&place), format!("{} a.txt", &last[..8]), "it was deleted on disk");
    place.ok(["save", "deleted"]);
    assert_eq!(hint(&place), format!("{} a.txt", &last[..8]), "a deletion can't be restored");
    assert_eq!(place.run(["history", "dir/b.txt"]).stderr, "", "there is no other version");
}

#[test]
fn the_hint_can_be_pasted_into_a_shell() {
    let place = Place::new();
    let names: [&[u8]; 5] = [b"-rf", b"two words", b"it's", b"new\nline", b"bad\xff"];
    names.iter().for_each(|name| place.write(raw(name), "good\n"));
    place.ok(["save", "good"]);
    names.iter().for_each(|name| place.write(raw(name), "bad\n"));
    place.ok(["save", "bad"]);
    for name in names {
        let run = place.run([raw(b"history"), raw(b"--"), raw(name)]);
        let command = run.stderr.trim().split(" with: backtrail ").nth(1).unwrap();
        assert!(!command.contains('\n'), "{command:?}");
        let script = format!("'{}' {command}", env!("CARGO_BIN_EXE_backtrail"));
        let mut pasted = place.shell(&script);
        assert!(pasted.output().unwrap().status.success(), "{script}");
        assert_eq!(fs::read(place.path("ws").join(raw(name))).unwrap(), b"good\n", "{script}");
    }
}

#[test]
fn the_path_in_the_hint_is_relative_to_the_current_directory() {
    let place = place_with_versions();
    place.write("dir/b.txt", "other\n");
    place.ok(["save", "other"]);
    let run = place.run_in(&place.path("ws/dir"), ["history", "b.txt"]);
    assert!(run.stderr.trim().ends_with(" b.txt"), "the path is not relative to the current directory: {}", run.stderr);
}

#[test]
fn an_unknown_path_is_refused() {
    let place = place_with_versions();
    assert_shown!(
        place.run(["history", "missing"]),
        str![[r#"
--- stderr
error: missing is not in any checkpoint
hint: paths are relative to the current directory
--- exit 3

"#]]
    );
}

/// Regression: after a restore the hint named the broken version, as if nothing had been restored.
#[test]
fn the_version_on_disk_is_named_and_the_hint_names_an_older_one() {
    let place = place_with_versions();
    let (first, good) = (place.id("@~2"), place.id("@~1"));
    let seen = |place: &Place| {
        let run = place.run(["history", "a.txt"]);
        let disk = run.text().lines().next().unwrap().to_owned();
        (disk, run.stderr.trim().rsplit(" restore ").next().unwrap().to_owned())
    };
    place.ok(["restore", &good, "a.txt"]);
    let version_of = |id: &str, what: &str| format!("on disk now: the version of {} \"{what}\"", &id[..8]);
    assert_eq!(seen(&place), (version_of(&good, "good"), format!("{} a.txt", &first[..8])));
    place.ok(["restore", &first, "a.txt"]);
    assert_eq!(seen(&place), (version_of(&first, "first"), String::new()), "there is no older version");
    place.write("a.txt", "mine\n");
    assert_eq!(seen(&place).0, "on disk now: a version that is not saved");
    place.remove("a.txt");
    assert_eq!(seen(&place).0, "on disk now: nothing");
}

/// Regression: a file that only a safety checkpoint holds was reported to be in no checkpoint, without a hint.
#[test]
fn versions_in_safety_checkpoints_are_reported() {
    let place = place_with_versions();
    place.write("notes", "never saved\n");
    place.write("a.txt", "unsaved\n");
    place.ok(["restore", "@~1"]);
    let alone = place.run(["history", "notes"]);
    assert!(alone.text().contains(" (safety) \"before restoring "), "{}", alone.shown());
    let command = alone.stderr.trim().rsplit(" with: backtrail ").next().unwrap();
    place.ok(command.split(' '));
    assert_eq!(fs::read(place.path("ws/notes")).unwrap(), b"never saved\n");
    let beside = place.run(["history", "a.txt"]);
    assert!(!beside.text().contains("(safety)"), "{}", beside.shown());
    assert!(beside.stderr.contains("1 more version in safety checkpoints"), "{}", beside.stderr);
    let command = beside.stderr.trim().rsplit(" with: backtrail ").next().unwrap();
    assert!(place.ok(command.split(' ')).contains("(safety)"), "{command}");
    let safety = |answer: serde_json::Value| {
        let versions = answer["versions"].as_array().unwrap().clone();
        versions.iter().filter(|version| version["safety"] == true).count()
    };
    assert_eq!(safety(place.json(["history", "a.txt"])), 0);
    assert_eq!(safety(place.json(["history", "a.txt", "--all"])), 1);
    assert_eq!(safety(place.json(["history", "notes"])), 1);
}
