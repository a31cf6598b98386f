//! `hunks`, `revert_plan`, `revert`, `fork` and `adopt`, used as an agent uses them.

use std::fs;

use serde_json::{Value, json};

use super::{client::Client, schema};
use crate::place::Place;

/// Returns the lines 1 to 20, with some of them replaced.
fn lines(edits: &[(usize, &str)]) -> String {
    let line = |number: usize| {
        let edit = edits.iter().find(|(edited, _)| *edited == number);
        edit.map_or_else(|| format!("line {number}\n"), |(_, text)| format!("{text}\n"))
    };
    (1..=20).map(line).collect()
}

fn read(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path(name)).unwrap()
}

/// Returns a workspace in which a session edited two places of `a` and created `b`, and the user edited `a` afterwards.
fn place() -> Place {
    let place = Place::new();
    place.write("a", lines(&[]));
    place.ok(["save", "first"]);
    place.write("a", lines(&[(3, "agent"), (18, "agent")]));
    place.write("b", "new\n");
    place.ok(["save", "second", "--session", "s1", "--author", "agent"]);
    place.write("a", lines(&[(3, "agent"), (10, "mine"), (18, "agent")]));
    place
}

#[test]
fn a_revert_is_planned_and_then_applied() {
    let place = place();
    let mut client = Client::start(&place);
    let before = lines(&[(3, "agent"), (10, "mine"), (18, "agent")]);
    let plan = client.ok("revert_plan", json!({ "what": "@" }));
    schema::assert_declared(&client.tool("revert_plan")["outputSchema"], &plan, "revert_plan");
    assert_eq!((&plan["applied"], &plan["changes_total"], &plan["merged"]), (&json!(false), &json!(2), &json!(["a"])));
    assert_eq!(plan["reverted"], json!([place.id("@")]));
    assert_eq!(read(&place, "ws/a"), before, "planning only reads");
    let of_command = place.json(["revert", "@", "--dry-run"]);
    for key in ["plan", "reverted", "merged", "shared", "conflicts"] {
        assert_eq!(plan[key], of_command[key], "{key}");
    }
    let done = client.ok("revert", json!({ "plan": plan["plan"] }));
    assert_eq!((&done["applied"], &done["merged"]), (&json!(true), &json!(["a"])));
    assert_eq!(read(&place, "ws/a"), lines(&[(10, "mine")]));
    assert!(!place.path("ws/b").exists());
    client.ok("undo", json!({}));
    assert_eq!((read(&place, "ws/a"), read(&place, "ws/b")), (before, "new\n".to_owned()));
}

#[test]
fn a_session_and_a_range_can_be_taken_back() {
    let place = place();
    let mut client = Client::start(&place);
    let range = format!("{}..@", place.id("@~1"));
    for arguments in [json!({ "session": "s1" }), json!({ "what": range }), json!({ "what": "@", "paths": ["a", "b"] })]
    {
        let plan = client.ok("revert_plan", arguments);
        assert_eq!(plan["changes_total"], 2, "{plan}");
        assert_eq!(plan["reverted"], json!([place.id("@")]), "{plan}");
    }
}

#[test]
fn a_revert_needs_a_plan_of_revert_plan_and_unchanged_files() {
    let place = place();
    let mut client = Client::start(&place);
    let plan = client.ok("revert_plan", json!({ "what": "@" }));
    let restore = client.ok("restore_plan", json!({ "checkpoint": "@" }));
    for (tool, other, named) in
        [("revert", &restore, "revert_plan"), ("restore_apply", &plan, "restore_plan"), ("adopt", &plan, "adopt")]
    {
        let (code, _, hint) = client.refused(tool, json!({ "plan": other["plan"] }));
        assert!(code == "plan_changed" && hint.contains(named), "{tool}: {code} {hint}");
    }
    place.write("a", "changed\n");
    let (code, _, _) = client.refused("revert", json!({ "plan": plan["plan"] }));
    assert_eq!((code.as_str(), read(&place, "ws/a").as_str()), ("plan_changed", "changed\n"));
    assert!(place.path("ws/b").exists());
}

#[test]
fn a_conflict_refuses_the_revert_unless_the_plan_says_otherwise() {
    let place = place();
    let mine = lines(&[(3, "mine"), (18, "agent")]);
    place.write("a", &mine);
    let mut client = Client::start(&place);
    let plan = client.ok("revert_plan", json!({ "what": "@" }));
    assert_eq!((&plan["conflicts"][0]["path"], &plan["conflicts"][0]["lines"]), (&json!("a"), &json!([[3, 3]])));
    let (code, message, hint) = client.refused("revert", json!({ "plan": plan["plan"] }));
    assert!(code == "conflict" && message.contains('a') && hint.contains("markers"), "{code} {message} {hint}");
    assert_eq!(read(&place, "ws/a"), mine);
    assert!(place.path("ws/b").exists(), "nothing is written");

    let plan = client.ok("revert_plan", json!({ "what": "@", "markers": true }));
    client.ok("revert", json!({ "plan": plan["plan"] }));
    assert!(read(&place, "ws/a").contains("<<<<<<< now\nmine\n"), "{}", read(&place, "ws/a"));
    client.ok("undo", json!({}));
    let plan = client.ok("revert_plan", json!({ "what": "@", "skip_conflicts": true }));
    client.ok("revert", json!({ "plan": plan["plan"] }));
    assert_eq!(read(&place, "ws/a"), mine);
    assert!(!place.path("ws/b").exists());
}

#[test]
fn only_chosen_hunks_are_taken_back_or_restored() {
    let place = place();
    let mut client = Client::start(&place);
    let found = client.ok("hunks", json!({ "revert": "@", "paths": ["a"] }));
    schema::assert_declared(&client.tool("hunks")["outputSchema"], &found, "hunks");
    let hunks = found["changes"][0]["hunks"].as_array().unwrap();
    assert_eq!(hunks.len(), 2, "{found}");
    assert_eq!(
        found["changes"],
        place.json(["revert", "@", "--dry-run", "--hunks", "--", "a"])["changes"].with_hidden()
    );
    let plan = client.ok("revert_plan", json!({ "what": "@", "hunks": [hunks[1]["id"]] }));
    client.ok("revert", json!({ "plan": plan["plan"] }));
    assert_eq!(read(&place, "ws/a"), lines(&[(3, "agent"), (10, "mine")]));
    assert!(place.path("ws/b").exists(), "only the hunk is taken back");

    let found = client.ok("hunks", json!({}));
    let hunks = found["changes"][0]["hunks"].as_array().unwrap();
    let mine = hunks.iter().find(|hunk| hunk["lines"].to_string().contains("mine")).unwrap();
    let plan = client.ok("restore_plan", json!({ "checkpoint": "@", "hunks": [mine["id"]] }));
    client.ok("restore_apply", json!({ "plan": plan["plan"] }));
    assert_eq!(read(&place, "ws/a"), lines(&[(3, "agent")]));
    let (code, message, hint) = client.refused("revert_plan", json!({ "what": "@", "hunks": ["0123456789abcdef"] }));
    assert_eq!(code, "plan_changed");
    assert!(message.contains("0123456789abcdef") && hint.contains("hunks"), "{message} {hint}");
}

/// Adds what the server says about every change.
trait WithHidden {
    fn with_hidden(&self) -> Value;
}

impl WithHidden for Value {
    fn with_hidden(&self) -> Value {
        let mut changes = self.clone();
        changes.as_array_mut().unwrap().iter_mut().for_each(|change| change["hidden"] = json!(false));
        changes
    }
}

#[test]
fn long_hunks_are_left_out_and_counted() {
    let place = place();
    let mut client = Client::start(&place);
    let found = client.ok("hunks", json!({ "revert": "@", "paths": ["a"], "max_bytes": 100 }));
    assert_eq!(found["changes"][0]["hunks"].as_array().unwrap().len(), 1, "{found}");
    assert!(found["truncated"][0].as_str().unwrap().starts_with("hunks: 1 more"), "{found}");
}

#[test]
fn the_work_of_a_fork_is_brought_back() {
    let place = place();
    let mut client = Client::start(&place);
    let made = client.ok("fork", json!({ "name": "try", "count": 2 }));
    schema::assert_declared(&client.tool("fork")["outputSchema"], &made, "fork");
    let forks = [place.path("ws-try-1"), place.path("ws-try-2")];
    let paths: Vec<&str> =
        made["forks"].as_array().unwrap().iter().map(|fork| fork["path"].as_str().unwrap()).collect();
    assert_eq!(paths, forks.each_ref().map(|path| path.to_str().unwrap()));
    fs::write(forks[0].join("a"), lines(&[(1, "fork"), (3, "agent"), (10, "mine"), (18, "agent")])).unwrap();
    fs::write(forks[0].join("c"), "of the fork\n").unwrap();
    place.write("a", lines(&[(3, "agent"), (10, "mine"), (18, "here")]));

    let plan = client.ok("adopt", json!({ "directory": paths[0] }));
    schema::assert_declared(&client.tool("adopt")["outputSchema"], &plan, "adopt");
    assert_eq!((&plan["applied"], &plan["merged"], &plan["changes_total"]), (&json!(false), &json!(["a"]), &json!(2)));
    assert!(!place.path("ws/c").exists(), "the first call only shows the plan");
    let done = client.ok("adopt", json!({ "plan": plan["plan"] }));
    assert_eq!(done["applied"], true);
    assert_eq!(read(&place, "ws/a"), lines(&[(1, "fork"), (3, "agent"), (10, "mine"), (18, "here")]));
    assert_eq!(read(&place, "ws/c"), "of the fork\n");
    client.ok("undo", json!({}));
    assert!(!place.path("ws/c").exists());
    assert_eq!(read(&place, "ws-try-1/c"), "of the fork\n", "the fork stays as it is");
}

#[test]
fn a_fork_is_made_only_beside_the_workspace_in_a_new_directory() {
    let place = place();
    place.ok(["fork", place.path("ws-taken").to_str().unwrap()]);
    let mut client = Client::start(&place);
    for name in ["", "../x", "a/b", "/tmp/x", "a b", "ä", "a\u{0}b", &"x".repeat(65)] {
        assert_eq!(client.refused("fork", json!({ "name": name })).0, "usage", "{name:?}");
    }
    assert_eq!(client.refused("fork", json!({ "name": "taken" })).0, "usage");
    assert_eq!(client.refused("fork", json!({ "name": "new", "count": 17 })).0, "usage");
    assert_eq!(client.refused("fork", json!({ "name": "new", "checkpoint": "nope" })).0, "unknown_checkpoint");
    let names = fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().file_name());
    let made: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with("ws-")).collect();
    assert_eq!(made, ["ws-taken"], "nothing else is made");
}

#[test]
fn calls_that_do_not_say_what_to_do_are_refused() {
    let place = place();
    let mut client = Client::start(&place);
    let first = place.id("@~1");
    for (tool, arguments, code) in [
        ("revert_plan", json!({}), "usage"),
        ("revert_plan", json!({ "what": "@", "session": "s1" }), "usage"),
        ("revert_plan", json!({ "what": "@", "turn": 1 }), "usage"),
        ("revert_plan", json!({ "turn": 0 }), "usage"),
        ("revert_plan", json!({ "turn": 1 }), "unknown_checkpoint"),
        ("revert_plan", json!({ "what": "turn:7" }), "unknown_checkpoint"),
        ("revert_plan", json!({ "session": "unknown" }), "unknown_checkpoint"),
        ("revert_plan", json!({ "what": first }), "usage"),
        ("revert_plan", json!({ "what": format!("@..{first}") }), "usage"),
        ("revert_plan", json!({ "what": "@", "paths": ["unchanged"] }), "unknown_path"),
        ("revert_plan", json!({ "what": "@", "paths": ["../x"] }), "path_outside_workspace"),
        ("revert_plan", json!({ "what": "@", "skip_conflicts": true, "markers": true }), "usage"),
        ("revert_plan", json!({ "what": "@", "hunks": [] }), "usage"),
        ("hunks", json!({ "restore": "@", "revert": "@" }), "usage"),
        ("hunks", json!({ "max_bytes": 0 }), "usage"),
        ("adopt", json!({}), "usage"),
        ("adopt", json!({ "directory": "/", "plan": "x" }), "usage"),
        ("adopt", json!({ "directory": place.path("ws") }), "usage"),
        ("adopt", json!({ "directory": place.path("nowhere") }), "usage"),
        ("adopt", json!({ "directory": place.path("") }), "usage"),
    ] {
        let (found, message, _) = client.refused(tool, arguments.clone());
        assert_eq!(found, code, "{tool} {arguments}: {message}");
    }
    assert_eq!(read(&place, "ws/a"), lines(&[(3, "agent"), (10, "mine"), (18, "agent")]));
}
