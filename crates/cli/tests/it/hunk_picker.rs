//! `restore -p` and `revert -p`: the questions on a terminal, with the keys of `git add -p`.

use std::fs;

use crate::{place::Place, terminal::run_with_input};

/// Returns the lines 1 to 30, with some of them replaced.
fn lines(edits: &[(usize, &str)]) -> String {
    let line = |number: usize| {
        let edit = edits.iter().find(|(edited, _)| *edited == number);
        edit.map_or_else(|| format!("line {number}\n"), |(_, text)| format!("{text}\n"))
    };
    (1..=30).map(line).collect()
}

const EDITS: [(usize, &str); 3] = [(3, "x"), (6, "y"), (26, "z")];

/// Returns a workspace with two hunks in `a`, the first of which can be split, and a deleted, a binary and a new file.
fn place() -> Place {
    let place = Place::new();
    place.write("a", lines(&[]));
    place.write("b", "b\n");
    place.write("bin", b"a\0b");
    place.ok(["save", "first"]);
    place.write("a", lines(&EDITS));
    place.remove("b");
    place.write("bin", b"a\0c");
    place.write("new", "new\n");
    place
}

fn read(place: &Place, name: &str) -> Option<String> {
    fs::read(place.path("ws").join(name)).ok().map(|bytes| String::from_utf8(bytes).unwrap())
}

fn files(place: &Place) -> [Option<String>; 4] {
    ["a", "b", "bin", "new"].map(|name| read(place, name))
}

/// Types the answers, each on a line. Returns the text on the screen.
fn answer(place: &Place, words: &[&str], answers: &str) -> String {
    let typed: String = answers.split_whitespace().map(|key| format!("{key}\n")).collect();
    run_with_input(place, 100, &typed, words)
}

#[test]
fn each_key_does_what_it_does_in_git() {
    let restored = |a: &[(usize, &str)]| Some(lines(a));
    let unchanged = files(&place());
    for (keys, a, others) in [
        // The questions come in the order of paths: two or three hunks of `a`, then `b`, `bin` and `new`.
        ("y y y y y", restored(&[]), ["b\n", "a\0b", ""]),
        ("y n n n n", restored(&[(26, "z")]), ["", "a\0c", "new\n"]),
        ("n y y n n", restored(&[(3, "x"), (6, "y")]), ["b\n", "a\0c", "new\n"]),
        ("a n n n", restored(&[]), ["", "a\0c", "new\n"]),
        ("d n y n", restored(&EDITS), ["", "a\0b", "new\n"]),
        ("d n n y", restored(&EDITS), ["", "a\0c", ""]),
        ("s y n y n n n", restored(&[(6, "y")]), ["", "a\0c", "new\n"]),
        ("s n y n n n n", restored(&[(3, "x"), (26, "z")]), ["", "a\0c", "new\n"]),
        ("s d n n y", restored(&EDITS), ["", "a\0c", ""]),
        ("y q", restored(&[(26, "z")]), ["", "a\0c", "new\n"]),
        ("? y q", restored(&[(26, "z")]), ["", "a\0c", "new\n"]),
        ("y", restored(&[(26, "z")]), ["", "a\0c", "new\n"]),
        ("Y Q", restored(&[(26, "z")]), ["", "a\0c", "new\n"]),
    ] {
        let place = place();
        let shown = answer(&place, &["restore", "-p", "@"], keys);
        let others = others.map(|text| (!text.is_empty()).then(|| text.to_owned()));
        let [b, bin, new] = others;
        assert_eq!(files(&place), [a, b, bin, new], "{keys}: {shown}");
        assert!(shown.contains("restored"), "{keys}: {shown}");
        place.ok(["undo"]);
        assert_eq!(files(&place), unchanged, "{keys}: undo");
    }
}

#[test]
fn the_questions_show_the_hunk_and_the_keys() {
    let place = place();
    let shown = answer(&place, &["restore", "-p", "@", "--color", "never"], "? s n n x n n n n");
    for part in [
        "@@ -1,9 +1,9 @@",
        "-x\n+line 3\n",
        "restore this hunk [y,n,a,d,s,q,?]? ",
        "restore this hunk [y,n,a,d,q,?]? ",
        "restore this change [y,n,a,d,q,?]? ",
        "s - split it into smaller ones",
        "binary",
    ] {
        assert!(shown.contains(part), "{part:?}: {shown}");
    }
    assert_eq!(shown.matches("? - this help").count(), 2, "an unknown key shows the help: {shown}");
    assert!(shown.contains("nothing") && !shown.contains("restored"), "{shown}");
    assert_eq!(files(&place), files(&self::place()));
}

#[test]
fn a_revert_asks_too_and_keeps_later_edits() {
    let place = place();
    place.ok(["save", "second"]);
    let later = [EDITS[0], EDITS[1], (15, "mine"), EDITS[2]];
    place.write("a", lines(&later));
    let shown = answer(&place, &["revert", "-p", "@"], "n y n n y");
    assert!(shown.contains("take back this hunk"), "{shown}");
    assert_eq!(read(&place, "a"), Some(lines(&later[..3])), "{shown}");
    assert_eq!((read(&place, "b"), read(&place, "new")), (None, None), "{shown}");
    place.ok(["undo"]);
    assert_eq!((read(&place, "a"), read(&place, "new").as_deref()), (Some(lines(&later)), Some("new\n")));
}

#[test]
fn paths_limit_the_questions() {
    let place = place();
    let shown = answer(&place, &["restore", "-p", "@", "b", "new"], "y n");
    assert!(!shown.contains("hunk"), "{shown}");
    assert_eq!((read(&place, "b").as_deref(), read(&place, "new").as_deref()), (Some("b\n"), Some("new\n")));
}

#[test]
fn without_a_terminal_the_way_out_is_named() {
    let place = place();
    for words in [&["restore", "-p", "@"][..], &["revert", "-p", "@"]] {
        let (code, _, hint) = place.run(words.iter().chain(&["--json"])).error();
        assert!(code == 2 && hint.contains("--hunk"), "{words:?}: {code} {hint}");
        let run = place.run(words);
        assert!(run.code == 2 && run.stderr.contains("--hunk"), "{words:?}: {}", run.shown());
    }
    assert_eq!(files(&place), files(&self::place()));
}
