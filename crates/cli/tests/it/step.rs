use std::collections::BTreeSet;

use snapbox::str;

use crate::place::{Place, assert_shown};

#[test]
fn step_prints_its_number_and_checkpoint() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    assert_shown!(
        place.run(["step", "--session", "s", "-m", "before Edit"]),
        str![[r#"
step 1: saved [ID] "before Edit" (1 file, +1)
--- exit 0

"#]]
    );
    assert_shown!(
        place.run(["step", "--session", "s"]),
        str![[r#"
step 2: no checkpoint
--- exit 0

"#]]
    );
}

#[test]
fn json_has_exactly_these_keys() {
    let place = Place::new();
    place.write("a.txt", "one\n");
    let words = ["step", "--agent", "claude", "--turn", "2", "--prompt", "p", "--tool", "Edit", "--meta", "k=v"];
    let answer = place.json(words);
    assert_eq!(answer.as_object().unwrap().keys().collect::<Vec<_>>(), ["step", "created", "checkpoint", "dropped"]);
    let made = &answer["checkpoint"];
    assert_eq!((&made["agent"], &made["turn"], &made["prompt"]), (&"claude".into(), &2.into(), &"p".into()));
    assert_eq!((&made["tool"], &made["metadata"]["k"], &made["kind"]), (&"Edit".into(), &"v".into(), &"step".into()));
    let answer = place.json(["step"]);
    assert_eq!(answer.to_string(), r#"{"step":2,"created":false,"checkpoint":null,"dropped":[]}"#);
}

#[test]
fn a_path_outside_is_refused_and_not_counted() {
    let place = Place::saved();
    let refused = place.run(["--json", "step", "../elsewhere"]);
    let (code, word, _) = refused.error();
    assert_eq!((code, word.as_str()), (6, "path_outside_workspace"));
    assert_eq!(place.json(["step"])["step"], 1);
}

#[test]
fn concurrent_steps_get_different_numbers() {
    let place = Place::saved();
    let start = |_| {
        let mut command = place.command(&place.path("ws"), ["--json", "step", "--session", "s"]);
        command.stdout(std::process::Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..8).map(start).collect();
    let numbers: BTreeSet<u64> = children
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
            answer["step"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(numbers, (1..=8).collect());
}
