use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::Value;

use crate::place::Place;

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn words(text: &str) -> Vec<String> {
    events(text).iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_event_is_one_line_of_json() {
    let place = Place::saved();
    let text = place.ok(["events"]);
    assert_eq!(words(&text), ["initialized", "checkpoint_created"]);
    assert_eq!(events(&text)[1]["checkpoint"], place.id("@"));
    assert_eq!(place.ok(["events", "--json"]), text);
}

#[test]
fn since_selects_events_by_time() {
    let place = Place::saved();
    assert_eq!(words(&place.ok(["events", "--since", "1h"])).len(), 2);
    assert_eq!(place.ok(["events", "--since", "2999-01-01T00:00:00Z"]), "");
    place.ok(["save", "--allow-empty", "second"]);
    let time = events(&place.ok(["events"]))[2]["time"].as_str().unwrap().to_owned();
    assert_eq!(words(&place.ok(["events", "--since", &time])), ["checkpoint_created"]);
    assert_eq!(place.run(["events", "--since", "soon", "--json"]).error().1, "usage");
}

#[test]
fn no_store_is_created_before_the_first_checkpoint() {
    let place = Place::new();
    assert_eq!(place.ok(["events"]), "");
    assert!(!place.path("home/backtrail").exists());
}

#[test]
fn follow_prints_new_events() {
    let place = Place::new();
    let mut follower = place.command(&place.path("ws"), ["events", "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = || words(&lines.next().unwrap().unwrap()).remove(0);
    place.write("a", "1\n");
    place.ok(["save", "x"]);
    assert_eq!((next(), next()), ("initialized".into(), "checkpoint_created".into()));
    place.ok(["delete", "@"]);
    assert_eq!(next(), "checkpoint_deleted");
    follower.kill().unwrap();
    follower.wait().unwrap();
}

/// Regression: the event `error` was documented, but never recorded.
#[test]
fn a_failure_is_recorded_as_an_event() {
    let place = Place::saved();
    place.run(["show", "no-such"]);
    place.run(["restore", "no-such"]);
    assert_eq!(words(&place.ok(["events"])).len(), 2, "an unknown checkpoint is not recorded");
    place.remove("dir/b.txt");
    assert!(std::process::Command::new("mkfifo").arg(place.path("ws/dir/b.txt")).status().unwrap().success());
    let run = place.run(["restore", "@", "--json"]);
    let (exit, code, message) = run.error();
    assert_eq!((exit, code.as_str()), (4, "conflict"));
    let last = events(&place.ok(["events"])).pop().unwrap();
    assert_eq!((&last["event"], &last["code"]), (&"error".into(), &"conflict".into()));
    assert_eq!(last["message"], message);
    let held = place.hold_lock();
    assert_eq!(place.run(["save", "--wait", "0"]).code, 7);
    drop(held);
    assert_eq!(events(&place.ok(["events"])).pop().unwrap()["code"], "busy");
}
