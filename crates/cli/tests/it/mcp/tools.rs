//! Every tool and resource, used as an agent uses them.

use std::fs;

use serde_json::{Value, json};

use super::{
    client::{Client, Era},
    schema,
};
use crate::place::Place;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}

fn paths(changes: &Value) -> Vec<(String, String)> {
    let change = |change: &Value| (text(&change["path"]).to_owned(), text(&change["status"]).to_owned());
    changes.as_array().unwrap().iter().map(change).collect()
}

#[test]
fn every_tool_works_in_both_eras() {
    for era in [Era::Handshake, Era::Inline] {
        let place = Place::new();
        place.write("a.txt", "one\n");
        let mut client = Client::start_with(&place, era, &["mcp"]);
        let status = client.ok("workspace_status", json!({}));
        assert_eq!(status["checkpoint"], Value::Null, "there is no checkpoint yet");

        let saved = client.ok("checkpoint_save", json!({ "message": "start", "name": "start", "step": 1 }));
        assert_eq!((&saved["created"], &saved["checkpoint"]["agent"]), (&json!(true), &json!("test-client")));
        let first = text(&saved["checkpoint"]["id"]).to_owned();
        let again = client.ok("checkpoint_save", json!({}));
        assert_eq!((&again["created"], text(&again["checkpoint"]["id"])), (&json!(false), first.as_str()));

        place.write("a.txt", "two\n");
        place.write("new.txt", "new\n");
        let status = client.ok("workspace_status", json!({}));
        let changed = [("a.txt", "modified"), ("new.txt", "added")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(paths(&status["changes"]), changed);
        assert_eq!(status["changes_total"], 2);
        let diff = client.ok("checkpoint_diff", json!({}));
        assert!(text(&diff["patch"]).contains("-one\n+two\n"), "{diff}");
        assert_eq!((&diff["from"], &diff["to"]), (&json!(first), &Value::Null));
        client.ok("checkpoint_save", json!({ "message": "second", "metadata": { "why": ["tests"] } }));

        let listed = client.ok("checkpoint_list", json!({}));
        assert_eq!(listed["checkpoints"].as_array().unwrap().len(), 2);
        assert_eq!(listed["checkpoints"][0]["metadata"]["why"][0], "tests");
        let shown = client.ok("checkpoint_show", json!({ "checkpoint": "@" }));
        assert_eq!(paths(&shown["changes"]), changed);
        let diff = client.ok("checkpoint_diff", json!({ "to": "@", "paths": ["new.txt"] }));
        assert_eq!(diff["added_files"], json!(["new.txt"]));
        assert_eq!(diff["modified_files"], json!([]));
        let diff = client.ok("checkpoint_diff", json!({ "to": "start" }));
        assert_eq!(
            (&diff["from"], &diff["added_files"]),
            (&Value::Null, &json!(["a.txt"])),
            "the first checkpoint adds all files"
        );
        let history = client.ok("file_history", json!({ "path": "a.txt" }));
        assert_eq!(history["versions"].as_array().unwrap().len(), 2);

        let plan = client.ok("restore_plan", json!({ "checkpoint": "start" }));
        assert_eq!(plan["applied"], false);
        assert_eq!(std::fs::read_to_string(place.path("ws/a.txt")).unwrap(), "two\n", "planning only reads");
        let done = client.ok("restore_apply", json!({ "plan": plan["plan"] }));
        assert_eq!((&done["applied"], &done["checkpoint"]), (&json!(true), &json!(first)));
        assert_eq!(std::fs::read_to_string(place.path("ws/a.txt")).unwrap(), "one\n");
        assert!(!place.path("ws/new.txt").exists());
        let undone = client.ok("undo", json!({}));
        assert_eq!(undone["applied"], true);
        assert_eq!(std::fs::read_to_string(place.path("ws/new.txt")).unwrap(), "new\n");
        assert_eq!(client.ok("undo", json!({}))["applied"], false, "there is no restore left to undo");
        for tool in client.tools().to_vec() {
            assert!(tool["outputSchema"].is_object(), "{tool}");
        }
    }
}

#[test]
fn answers_include_those_of_the_command_line() {
    let place = Place::saved();
    place.write("a.txt", "1\n2\n");
    let mut client = Client::start(&place);
    let assert_has_all = |answer_of_tool: &Value, answer_of_command: &Value, what: &str| {
        for (key, value) in answer_of_command.as_object().unwrap() {
            if key != "changes" && key != "checkpoint" && key != "checkpoints" {
                assert_eq!(&answer_of_tool[key], value, "{what}: {key}");
            }
            assert!(answer_of_tool.get(key).is_some(), "{what}: {key} is missing");
        }
    };
    // Paths that stay although the checkpoint lacks them, and files that can't be compared any more, are in the
    // answers, too.
    place.write("new/.git/HEAD", "ref: refs/heads/main\n");
    place.write("new/file", "1\n");
    fs::remove_file(place.path("ws/dir/b.txt")).unwrap();
    assert!(place.shell("mkfifo dir/b.txt").status().unwrap().success());
    let answer_of_tool = client.ok("workspace_status", json!({}));
    let answer_of_command = place.json(["status"]);
    assert_eq!(answer_of_command["skipped"][0]["path"], "dir/b.txt", "{answer_of_command}");
    assert_has_all(&answer_of_tool, &answer_of_command, "status");
    assert_has_all(&answer_of_tool["checkpoint"], &answer_of_command["checkpoint"], "checkpoint");
    assert_has_all(&answer_of_tool["changes"][0], &answer_of_command["changes"][0], "change");
    assert_has_all(&client.ok("checkpoint_diff", json!({})), &place.json(["diff"]), "diff");
    assert_has_all(&client.ok("checkpoint_show", json!({ "checkpoint": "@" })), &place.json(["show", "@"]), "show");
    assert_has_all(&client.ok("checkpoint_list", json!({})), &place.json(["list"]), "list");
    assert_has_all(
        &client.ok("file_history", json!({ "path": "a.txt" })),
        &place.json(["history", "a.txt"]),
        "history",
    );
    assert_has_all(&client.ok("blame", json!({ "path": "a.txt" })), &place.json(["blame", "a.txt"]), "blame");
    let part = client.ok("blame", json!({ "path": "a.txt", "checkpoint": "@", "first": 1, "last": 1 }));
    assert_eq!(part["ranges"][0]["lines"], 1, "{part}");
    let answer_of_tool = client.ok("restore_plan", json!({ "checkpoint": "@" }));
    let answer_of_command = place.json(["restore", "@", "--dry-run"]);
    assert_eq!(answer_of_command["stays"][0]["path"], "new/.git", "{answer_of_command}");
    assert_has_all(&answer_of_tool, &answer_of_command, "restore");
    schema::assert_declared(&client.tool("restore_plan")["outputSchema"], &answer_of_tool, "restore_plan");
    let saved = client.ok("checkpoint_save", json!({}));
    schema::assert_declared(&client.tool("checkpoint_save")["outputSchema"], &saved, "checkpoint_save");
    assert_eq!(saved["dropped"][0]["path"], "dir/b.txt", "{saved}");
    let answer_of_tool = client.ok("restore_plan", json!({ "checkpoint": "@" }));
    let answer_of_command = place.json(["restore", "@", "--dry-run"]);
    assert_eq!(answer_of_command["not_restored"][0]["path"], "dir/b.txt", "{answer_of_command}");
    assert_has_all(&answer_of_tool, &answer_of_command, "restore of a checkpoint that dropped something");
}

/// Regression: the hints were not those of the command line.
#[test]
fn errors_for_unknown_checkpoints_have_a_hint() {
    let place = Place::saved();
    let mut client = Client::start(&place);
    let (code, _, hint) = client.refused("checkpoint_show", json!({ "checkpoint": "at:2001-01-01" }));
    assert!(code == "unknown_checkpoint" && hint.contains(&place.id("@")[..8]), "{code} {hint}");
    let (code, _, hint) = client.refused("checkpoint_show", json!({ "checkpoint": "step:x" }));
    assert!(code == "unknown_checkpoint" && hint.contains("checkpoint_list"), "{code} {hint}");
    let (code, _, hint) = client.refused("checkpoint_save", json!({ "name": "commit:abcd" }));
    assert!(code == "usage" && hint.contains("commit:"), "{code} {hint}");
    let listed = client.ok("checkpoint_list", json!({ "since": "yesterday" }));
    assert_eq!(listed["checkpoints"].as_array().unwrap().len(), 1);
}

#[test]
fn a_plan_is_applied_as_it_was_shown_or_not_at_all() {
    let place = Place::saved();
    place.write("a.txt", "changed\n");
    let mut client = Client::start(&place);
    let plan = client.ok("restore_plan", json!({ "checkpoint": "@", "paths": ["a.txt"] }));
    place.write("a.txt", "changed again\n");
    let (code, _, hint) = client.refused("restore_apply", json!({ "plan": plan["plan"] }));
    assert!(code == "plan_changed" && hint.contains("restore_plan"), "{code} {hint}");
    assert_eq!(std::fs::read_to_string(place.path("ws/a.txt")).unwrap(), "changed again\n");

    place.remove("dir/b.txt");
    let plan = client.ok("restore_plan", json!({ "checkpoint": "@", "paths": ["a.txt"] }));
    let done = client.ok("restore_apply", json!({ "plan": plan["plan"] }));
    assert_eq!(paths(&done["changes"]), [("a.txt".to_owned(), "modified".to_owned())]);
    assert!(!place.path("ws/dir/b.txt").exists(), "only the requested paths are restored");
    let (code, _, _) = client.refused("restore_apply", json!({ "plan": plan["plan"] }));
    assert_eq!(code, "plan_changed", "the plan was applied already");

    // Another server of the same workspace has not shown the plan.
    let mut other = Client::start(&place);
    let plan = client.ok("restore_plan", json!({ "checkpoint": "@" }));
    assert_eq!(other.refused("restore_apply", json!({ "plan": plan["plan"] })).0, "plan_changed");
    client.ok("restore_apply", json!({ "plan": plan["plan"] }));
    assert!(place.path("ws/dir/b.txt").exists());
}

#[test]
fn absolute_paths_inside_the_workspace_are_accepted() {
    let place = Place::saved();
    let mut client = Client::start(&place);
    let inside = place.path("ws/a.txt").display().to_string();
    assert_eq!(client.ok("file_history", json!({ "path": inside }))["path"], "a.txt");
    assert_eq!(client.ok("file_history", json!({ "path": "./a.txt" }))["path"], "a.txt");
}

#[test]
fn long_answers_are_truncated_and_marked() {
    let place = Place::new();
    for number in 0..300 {
        place.write(format!("many/{number:03}.txt"), format!("line {number}\n"));
    }
    let mut client = Client::start(&place);
    client.ok("checkpoint_save", json!({ "message": "many" }));
    let listed = client.ok("checkpoint_list", json!({}));
    let checkpoint = &listed["checkpoints"][0];
    assert_eq!(checkpoint["files_changed"].as_array().unwrap().len(), 20);
    assert_eq!(checkpoint["truncated"], json!(["files_changed: 280 more"]));
    let shown = client.ok("checkpoint_show", json!({ "checkpoint": "@" }));
    assert_eq!(shown["changes"].as_array().unwrap().len(), 200);
    assert_eq!((&shown["changes_total"], &shown["truncated"]), (&json!(300), &json!(["changes: 100 more"])));
    let all = client.ok("checkpoint_show", json!({ "checkpoint": "@", "limit": 1000 }));
    assert_eq!((all["changes"].as_array().unwrap().len(), &all["truncated"]), (300, &json!([])));
    let diff = client.ok("checkpoint_diff", json!({ "to": "@", "max_bytes": 1000 }));
    let patch = text(&diff["patch"]);
    assert!(patch.len() < 1100 && patch.ends_with("\n[truncated]\n"), "{patch}");
    assert!(diff["truncated"].to_string().contains("max_bytes"), "{diff}");
    let whole = client.ok("checkpoint_diff", json!({ "to": "@", "max_bytes": 1_000_000, "limit": 1000 }));
    assert!(text(&whole["patch"]).contains("line 299") && whole["truncated"] == json!([]));
    let longest = client.received.lines().map(str::len).max().unwrap();
    assert!(longest < 1_000_000, "{longest}");

    for number in 0..25 {
        place.write("many/000.txt", number.to_string());
        client.ok("checkpoint_save", json!({ "message": number.to_string() }));
    }
    let (mut cursor, mut seen) = (Value::Null, Vec::new());
    loop {
        let page = client.ok("checkpoint_list", json!({ "limit": 10, "cursor": cursor }));
        seen.extend(page["checkpoints"].as_array().unwrap().iter().map(|one| text(&one["message"]).to_owned()));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let wanted: Vec<String> = (0..25).rev().map(|number| number.to_string()).chain(["many".to_owned()]).collect();
    assert_eq!(seen, wanted);
}

#[test]
fn lists_can_be_filtered() {
    let place = Place::saved();
    let mut client = Client::start(&place);
    place.write("dir/b.txt", "b2\n");
    client.ok("checkpoint_save", json!({ "message": "second needle", "session": "s1", "kind": "feature" }));
    let mut count = |arguments: Value| {
        let listed = client.ok("checkpoint_list", arguments);
        listed["checkpoints"].as_array().unwrap().len()
    };
    assert_eq!(count(json!({ "path": "dir" })), 2);
    assert_eq!(count(json!({ "path": "a.txt" })), 1);
    assert_eq!(count(json!({ "grep": "needle" })), 1);
    assert_eq!(count(json!({ "session": "s1" })), 1);
    assert_eq!(count(json!({ "kind": "feature" })), 1);
    assert_eq!(count(json!({ "since": "1h" })), 2);
    assert_eq!(count(json!({ "since": "2100-01-01T00:00:00Z" })), 0);
    assert_eq!(count(json!({ "limit": 1 })), 1);
}

#[test]
fn resources_are_the_timeline_and_each_difference() {
    let place = Place::saved();
    place.write("a.txt", "one\nthree\n");
    place.ok(["save", "second", "--name", "a name"]);
    let mut client = Client::start(&place);
    let listed = client.ask("resources/list", json!({}));
    let resources = listed["result"]["resources"].as_array().unwrap();
    assert_eq!(resources.len(), 3, "{listed}");
    let mut read = |uri: &str| {
        let answer = client.ask("resources/read", json!({ "uri": uri }));
        let contents = &answer["result"]["contents"][0];
        assert_eq!(contents["uri"], uri, "{answer}");
        (text(&contents["mimeType"]).to_owned(), text(&contents["text"]).to_owned())
    };
    let (kind, timeline) = read("backtrail://timeline");
    let timeline: Value = serde_json::from_str(&timeline).unwrap();
    assert_eq!((kind.as_str(), timeline["checkpoints"].as_array().unwrap().len()), ("application/json", 2));
    for resource in &resources[1..] {
        let (kind, patch) = read(text(&resource["uri"]));
        assert!(kind == "text/x-diff" && patch.starts_with("diff --git"), "{kind} {patch}");
    }
    for word in ["@", "%40", "latest", "a%20name", &place.id("@")] {
        let (_, patch) = read(&format!("backtrail://checkpoints/{word}/diff"));
        assert!(patch.contains("-two\n+three\n"), "{patch}");
    }
    let templates = client.ask("resources/templates/list", json!({}));
    let template = &templates["result"]["resourceTemplates"][0]["uriTemplate"];
    assert_eq!(template, "backtrail://checkpoints/{checkpoint}/diff");
    for bad in [
        "backtrail://checkpoints/nope/diff",
        "backtrail://nothing",
        "file:///etc/passwd",
        "",
        "backtrail://checkpoints/../../etc/passwd/diff",
        "backtrail://checkpoints/%00/diff",
        "backtrail://checkpoints//diff",
        "backtrail://checkpoints/%ff/diff",
    ] {
        let answer = client.ask("resources/read", json!({ "uri": bad }));
        assert_eq!(answer["error"]["code"], -32002, "{bad}: {answer}");
        assert!(answer["error"]["data"]["error"]["code"].is_string(), "{answer}");
    }
}

#[test]
fn tools_declare_their_effects() {
    let place = Place::saved();
    let client = Client::start(&place);
    let hints = |name: &str| {
        let annotations = &client.tool(name)["annotations"];
        ["readOnlyHint", "destructiveHint", "openWorldHint"].map(|hint| annotations[hint].as_bool().unwrap())
    };
    for name in ["checkpoint_list", "checkpoint_show", "checkpoint_diff", "workspace_status", "file_history", "blame"] {
        assert_eq!(hints(name), [true, false, false], "{name}");
    }
    assert_eq!(hints("restore_plan"), [true, false, false]);
    assert_eq!(hints("checkpoint_save"), [false, false, false]);
    assert_eq!(hints("restore_apply"), [false, true, false]);
    assert_eq!(hints("undo"), [false, true, false]);
    for tool in client.tools() {
        assert!(tool["description"].as_str().is_some_and(|about| about.len() > 40), "{tool}");
        for (name, property) in tool["inputSchema"]["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{}: {name} is not explained", tool["name"]);
        }
    }
}
