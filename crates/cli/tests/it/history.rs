use std::fs;

use snapbox::str;

use crate::place::{Place, assert_shown, raw, steady_clock};

/// Three versions of a file, of which the last is spoilt.
fn spoilt() -> Place {
    let place = Place::saved();
    place.write("a.txt", "one\ntwo\nthree\n");
    place.ok(["save", "good"]);
    place.write("a.txt", "gone\n");
    place.ok(["save", "spoilt"]);
    place
}

#[test]
fn every_version_with_its_time_and_lines() {
    let place = spoilt();
    place.write("b.bin", b"\0\x01");
    place.ok(["save", "binary"]);
    let run = place.run(["history", "a.txt"]);
    snapbox::assert_data_eq!(
        steady_clock(&run.shown()),
        snapbox::IntoData::raw(str![[r#"
on disk now: the version of [ID] "spoilt"
[CLOCK]  modified  +1 −3   5 B  [ID] "spoilt"
[CLOCK]  modified  +1     14 B  [ID] "good"
[CLOCK]  added     +2      8 B  [ID] "first"
--- stderr
bring back the version before the last change with: backtrail restore [ID] a.txt
--- exit 0

"#]])
    );
    let versions = place.json(["history", "b.bin"])["versions"].clone();
    assert_eq!((&versions[0]["binary"], &versions[0]["bytes"]), (&true.into(), &2.into()));
}

/// The hint named the newest version: the very one that somebody wants to get away from.
#[test]
fn the_hint_names_the_version_before_the_last_change() {
    let place = spoilt();
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
    assert_eq!(hint(&place), format!("{} a.txt", &last[..8]), "a deletion is nothing to bring back");
    assert_eq!(place.run(["history", "dir/b.txt"]).stderr, "", "there is no other version");
}

#[test]
fn the_hint_can_be_pasted() {
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
fn a_path_below_the_current_directory() {
    let place = spoilt();
    place.write("dir/b.txt", "other\n");
    place.ok(["save", "other"]);
    let run = place.run_in(&place.path("ws/dir"), ["history", "b.txt"]);
    assert!(run.stderr.trim().ends_with(" b.txt"), "paths in a hint are relative to where one stands: {}", run.stderr);
}

#[test]
fn a_path_that_never_was() {
    let place = spoilt();
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

/// After a rescue the hint named the broken version, as if nothing had been brought back.
#[test]
fn what_is_on_disk_is_said_and_the_hint_leads_further_back() {
    let place = spoilt();
    let (first, good) = (place.id("@~2"), place.id("@~1"));
    let seen = |place: &Place| {
        let run = place.run(["history", "a.txt"]);
        let disk = run.text().lines().next().unwrap().to_owned();
        (disk, run.stderr.trim().rsplit(" restore ").next().unwrap().to_owned())
    };
    place.ok(["restore", &good, "a.txt"]);
    let as_in = |id: &str, what: &str| format!("on disk now: the version of {} \"{what}\"", &id[..8]);
    assert_eq!(seen(&place), (as_in(&good, "good"), format!("{} a.txt", &first[..8])));
    place.ok(["restore", &first, "a.txt"]);
    assert_eq!(seen(&place), (as_in(&first, "first"), String::new()), "there is nothing further back");
    place.write("a.txt", "mine\n");
    assert_eq!(seen(&place).0, "on disk now: an unsaved version");
    place.remove("a.txt");
    assert_eq!(seen(&place).0, "on disk now: nothing");
}

/// A file that only a safety checkpoint has was said to be in none, with nowhere to look for it.
#[test]
fn safety_checkpoints_are_not_passed_over_in_silence() {
    let place = spoilt();
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
