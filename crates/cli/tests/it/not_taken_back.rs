//! `try` and `pipeline` list the changes of a failed command that the rollback does not undo.

use std::fs;

use serde_json::{Value, json};
use snapbox::str;

use crate::place::{Place, Run, assert_shown};

fn place_with_ignored_logs() -> Place {
    let place = Place::saved();
    place.write(".gitignore", "*.log\n");
    for name in ["changed.log", "gone.log", "same.log"] {
        place.write(name, "1\n");
    }
    place.ok(["save", "logs are ignored"]);
    place
}

/// Runs `try --json` on a shell script. Returns the run and its answer.
fn run_try(place: &Place, options: &[&str], script: &str) -> (Run, Value) {
    let words = ["try", "--json"].into_iter().chain(options.iter().copied()).chain(["--", "sh", "-c", script]);
    let run = place.run(words);
    let answer = serde_json::from_str(run.text().lines().last().unwrap()).unwrap();
    (run, answer)
}

#[test]
fn changes_that_remain_are_printed() {
    let place = place_with_ignored_logs();
    assert_shown!(
        place.run(["try", "--", "sh", "-c", "echo 22 > changed.log; rm gone.log; echo n > made.log; false"]),
        str![[r#"
--- stderr
checkpoint [ID]; should this be killed, go back with: backtrail restore [ID]
warning: sh exited with 1
rolled back: no file had to change
warning: still as the command left it: changed.log, gone.log, made.log
--- exit 1

"#]]
    );
    let many = "for name in 1 2 3 4 5 6 7; do echo n > $name.log; done; false";
    let run = place.run(["try", "--", "sh", "-c", many]);
    assert!(run.stderr.contains("4.log, 5.log, and 2 more (all of them with --json)"), "{}", run.stderr);
}

#[test]
fn json_lists_every_change_that_remains() {
    let place = place_with_ignored_logs();
    let script = "echo 22 > changed.log; rm gone.log; mkdir d; echo n > d/made.log; echo x > a.txt; exit 3";
    let (run, answer) = run_try(&place, &[], script);
    assert_eq!((run.code, &answer["rolled_back"]), (3, &true.into()));
    assert_eq!(answer["not_taken_back"], json!(["changed.log", "d", "gone.log"]));
    assert_eq!(answer["dropped"], json!([]));
    let (_, harmless) = run_try(&place, &[], "echo x > a.txt; exit 3");
    assert_eq!(harmless["not_taken_back"], json!([]));
}

#[test]
fn without_a_rollback_the_list_is_empty() {
    let place = place_with_ignored_logs();
    for (options, script) in
        [(&[][..], "echo 2 > made.log"), (&["--keep-on-fail"][..], "echo 3 > made.log; rm same.log; false")]
    {
        let (run, answer) = run_try(&place, options, script);
        assert_eq!((&answer["rolled_back"], &answer["not_taken_back"]), (&false.into(), &json!([])));
        assert!(!run.stderr.contains("not taken back"), "{}", run.stderr);
    }
}

#[test]
fn conflicts_are_in_the_list() {
    let place = Place::saved();
    let (_, answer) = run_try(&place, &[], "rm a.txt; mkfifo a.txt; exit 5");
    assert_eq!(answer["not_taken_back"], json!(["a.txt"]));
    assert_eq!(answer["conflicts"][0]["path"], "a.txt");
}

#[test]
fn a_moved_head_gets_one_warning() {
    let place = Place::saved();
    place.git(&["init", "-q", "-b", "main"]);
    place.git(&["add", "-A"]);
    place.git(&["commit", "-q", "-m", "base"]);
    let (run, answer) =
        run_try(&place, &[], "git -c user.name=t -c user.email=t@t commit -q --allow-empty -m more; exit 1");
    let lines: Vec<&str> = run.stderr.lines().filter(|line| line.contains("HEAD")).collect();
    assert_eq!(lines.len(), 1, "{}", run.stderr);
    assert!(lines[0].starts_with("warning: HEAD of your git repository moved from main ("), "{}", lines[0]);
    assert!(lines[0].contains("backtrail restore --git "), "{}", lines[0]);
    assert_eq!(answer["not_taken_back"], json!([]));
    let (run, _) = run_try(&place, &[], "echo x > a.txt; exit 1");
    assert!(!run.stderr.contains("HEAD"), "{}", run.stderr);
}

#[test]
fn each_pipeline_step_has_its_own_list() {
    let place = place_with_ignored_logs();
    let pipeline = "steps:\n  - run: echo 2 > made.log\n  - run: rm gone.log; false\n    on_failure: rollback\n";
    fs::write(place.path("pipe.yaml"), pipeline).unwrap();
    let run = place.run(["pipeline", "--json", "../pipe.yaml"]);
    let answer = run.json();
    let of = |step: usize| (&answer["steps"][step]["status"], &answer["steps"][step]["not_taken_back"]);
    assert_eq!(of(0), (&"success".into(), &json!([])));
    assert_eq!(of(1), (&"rolled_back".into(), &json!(["gone.log"])));
    assert!(run.stderr.contains("still as the command left it: gone.log"), "{}", run.stderr);
}
