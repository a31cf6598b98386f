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
