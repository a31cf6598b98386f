//! Prompts and ranges as addresses: `turn:N`, `ID~N`, `FROM..TO`.

use crate::{
    conversation::{SESSION, prompt},
    place::Place,
};

/// Returns a workspace with three prompts, each with a file of its own before it.
fn place() -> Place {
    let place = Place::new();
    for number in 1..=3 {
        place.write(format!("f{number}"), "x\n");
        prompt(&place, "claude", number);
    }
    place
}

fn paths(answer: &serde_json::Value) -> Vec<&str> {
    answer["changes"].as_array().unwrap().iter().map(|change| change["path"].as_str().unwrap()).collect()
}

#[test]
fn a_prompt_is_named_by_its_number() {
    let place = place();
    let listed = place.json(["list", "--turns"])["checkpoints"].clone();
    for (number, position) in [(1, 2), (2, 1), (3, 0)] {
        assert_eq!(place.id(&format!("turn:{number}")), listed[position]["id"].as_str().unwrap());
    }
    assert_eq!(place.id("turn:3~2"), place.id("turn:1"));
    let run = place.run(["show", "turn:9"]);
    assert!(run.code == 3 && run.stderr.contains("backtrail list --turns"), "{}", run.shown());
    assert_eq!(place.run(["cat", "turn:1", "f1"]).text(), "x\n");
    let run = place.run(["save", "--allow-empty", "--name", "turn:7"]);
    assert!(run.code == 2 && run.stderr.contains("turn:"), "{}", run.shown());
}

#[test]
fn a_range_selects_changes_and_checkpoints() {
    let place = place();
    assert_eq!(paths(&place.json(["diff", "turn:1..turn:3"])), ["f2", "f3"]);
    assert_eq!(paths(&place.json(["show", "turn:1..turn:2"])), ["f2"]);
    assert_eq!(paths(&place.json(["diff", "turn:3..turn:1"])), ["f2", "f3"], "diff also goes back");
    let listed = place.json(["list", "turn:1..@"])["checkpoints"].clone();
    let ids: Vec<&str> = listed.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect();
    assert_eq!(ids, [place.id("turn:3"), place.id("turn:2")]);
    assert!(place.ok(["show", "turn:1..turn:3"]).contains("f3"));
    assert_eq!(
        place.json(["list", "turn:1..turn:2", "--session", SESSION])["checkpoints"].as_array().unwrap().len(),
        1
    );
    assert_eq!(place.run(["list", "turn:1..turn:2", "--session", "another"]).code, 3);
    for (words, code) in [
        (&["list", "turn:3..turn:1"][..], 2),
        (&["list", "turn:1"], 2),
        (&["list", "turn:1..turn:9"], 3),
        (&["diff", "turn:1..turn:2", "@"], 2),
        (&["restore", "turn:1..turn:2"], 3),
    ] {
        let run = place.run(words);
        assert_eq!(run.code, code, "{words:?}: {}", run.shown());
    }
}
