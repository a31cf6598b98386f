//! `revert`: the messages for users, and the exit codes.

use crate::place::{Place, Run};

/// Returns the lines 1 to 20, with some of them replaced.
fn text(edits: &[(usize, &str)]) -> String {
    let line = |number: usize| {
        let edit = edits.iter().find(|(edited, _)| *edited == number);
        edit.map_or_else(|| format!("line {number}\n"), |(_, text)| format!("{text}\n"))
    };
    (1..=20).map(line).collect()
}

fn said(run: &Run) -> String {
    String::from_utf8(run.stdout.clone()).unwrap()
}

/// Returns a workspace whose second checkpoint edited `a` and created `b`.
fn place() -> Place {
    let place = Place::new();
    place.write("a", text(&[]));
    place.ok(["save", "first"]);
    place.write("a", text(&[(3, "agent")]));
    place.write("b", "new\n");
    place.ok(["save", "second"]);
    place
}

#[test]
fn later_edits_stay_and_the_message_names_the_way_back() {
    let place = place();
    place.write("a", text(&[(3, "agent"), (15, "mine")]));
    let planned = place.run(["revert", "@", "--dry-run"]);
    assert!(said(&planned).contains("would be merged with later edits: a"), "{}", planned.shown());
    assert!(planned.stderr.contains("--plan"), "{}", planned.shown());
    let done = place.run(["revert", "@"]);
    assert_eq!(done.code, 0, "{}", done.shown());
    assert!(
        said(&done).contains("took back") && said(&done).contains("merged with later edits: a"),
        "{}",
        done.shown()
    );
    assert!(done.stderr.contains("backtrail undo"), "{}", done.shown());
    assert_eq!(std::fs::read(place.path("ws/a")).unwrap(), text(&[(15, "mine")]).as_bytes());
    let again = place.run(["revert", "@"]);
    assert!(again.code == 0 && said(&again).contains("nothing to do"), "{}", again.shown());
    let undone = place.run(["undo"]);
    assert!(said(&undone).contains("the revert of"), "{}", undone.shown());
}

#[test]
fn a_conflict_names_the_lines_and_the_ways_on() {
    let place = place();
    place.write("a", text(&[(3, "mine")]));
    let refused = place.run(["revert", "@"]);
    assert_eq!(refused.code, 4, "{}", refused.shown());
    for word in ["a: the same lines were changed since", "--skip-conflicts", "--markers"] {
        assert!(refused.stderr.contains(word), "{word}: {}", refused.shown());
    }
    let planned = place.run(["revert", "@", "--dry-run"]);
    assert!(said(&planned).contains("conflict  a: the same lines were changed since (line 3)"), "{}", planned.shown());
}

#[test]
fn exactly_one_thing_must_be_named() {
    let place = place();
    for words in [&["revert"][..], &["revert", "@", "--turn"], &["revert", "--turn", "1", "--session", "s"]] {
        let run = place.run(words.iter().copied());
        assert_eq!(run.code, 2, "{}", run.shown());
    }
    assert_eq!(place.run(["revert", "--session", "s"]).code, 3);
    assert_eq!(place.run(["revert", "@~1"]).code, 2, "the first checkpoint has no parent");
    assert_eq!(place.run(["revert", "@..@~1"]).code, 2, "the range runs backwards");
    let asked = place.run(["revert", "@", "-p"]);
    assert!(asked.code == 2 && asked.stderr.contains("--hunk"), "{}", asked.shown());
}
