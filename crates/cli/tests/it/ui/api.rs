//! The answers of the API.

use std::fs;

use serde_json::{Value, json};

use super::server::Server;
use crate::place::Place;

fn hook(place: &Place, event: &str, more: &Value) {
    let mut payload = json!({
        "session_id": "s-1", "cwd": place.path("ws"), "hook_event_name": event,
        "transcript_path": place.path("home/transcript-s-1.jsonl"), "permission_mode": "default",
    });
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    crate::hooks::hook(place, "claude", &payload);
}

fn on_disk(place: &Place, name: &str) -> String {
    fs::read_to_string(place.path("ws").join(name)).unwrap()
}

/// Returns a place with a session: its prompt changed `a.txt` and added `new.txt` in two steps.
fn with_session() -> Place {
    let place = Place::saved();
    let said = json!({ "type": "user", "message": { "role": "user", "content": "earlier <b>words</b>" } });
    fs::write(place.path("home/transcript-s-1.jsonl"), format!("{said}\n")).unwrap();
    hook(&place, "SessionStart", &json!({ "source": "startup" }));
    hook(&place, "UserPromptSubmit", &json!({ "prompt": "change a\nand more" }));
    for (name, text) in [("a.txt", "one\n2\n"), ("new.txt", "new\n")] {
        let path = place.path("ws").join(name);
        let tool = json!({ "tool_name": "Write", "tool_input": { "file_path": path, "content": text } });
        hook(&place, "PreToolUse", &tool);
        place.write(name, text);
        hook(&place, "PostToolUse", &tool);
    }
    hook(&place, "Stop", &json!({ "stop_hook_active": false }));
    place
}

fn texts(list: &Value, key: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item[key].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn checkpoints_come_in_pages() {
    let place = Place::saved();
    for number in 0..5 {
        place.write("a.txt", format!("{number}\n"));
        place.ok(["save", &format!("number {number}")]);
    }
    let server = Server::start(&place, &[]);
    let mut seen = Vec::new();
    let mut next = String::new();
    loop {
        let page = server.read(&format!("/api/checkpoints?limit=4&cursor={next}"));
        seen.extend(texts(&page["checkpoints"], "message"));
        assert_eq!(page["current"], place.json(["show", "@"])["checkpoint"]["id"]);
        match page["next"].as_str() {
            Some(cursor) => next = cursor.to_owned(),
            None => break,
        }
    }
    let listed = texts(&place.json(["list"])["checkpoints"], "message");
    assert_eq!(seen, listed);
    let found = server.read("/api/checkpoints?grep=number+3&kind=manual&path=a.txt");
    assert_eq!(texts(&found["checkpoints"], "message"), ["number 3"]);
    assert_eq!(found["checkpoints"][0]["nearest_parent"], found["checkpoints"][0]["parent"]);
    assert_eq!(server.get("/api/checkpoints?kind=none").status, 400);
}

#[test]
fn the_nearest_parent_of_a_checkpoint_still_exists() {
    let place = Place::saved();
    for number in 0..3 {
        place.write("a.txt", format!("{number}\n"));
        place.ok(["save", &format!("number {number}")]);
    }
    let first = place.json(["list"])["checkpoints"][3]["id"].clone();
    place.ok(["delete", "@~1", "@~2"]);
    let server = Server::start(&place, &[]);
    let newest = server.read("/api/checkpoints")["checkpoints"][0].clone();
    assert_eq!(newest["nearest_parent"], first);
    assert_ne!(newest["parent"], first);
}

#[test]
fn prompts_have_their_steps_and_their_whole_change() {
    let place = with_session();
    let server = Server::start(&place, &[]);
    let found = server.read("/api/turns");
    let session = &found["sessions"][0];
    assert_eq!((session["session"].as_str(), session["agent"].as_str()), (Some("s-1"), Some("claude")));
    let turn = &session["turns"][0];
    assert_eq!(turn["checkpoint"]["prompt"], "change a\nand more");
    assert_eq!(turn["steps"].as_array().unwrap().len(), 2, "{turn}");
    assert_eq!(texts(&turn["changes"], "path"), ["a.txt", "new.txt"]);
    assert_eq!(found["next"], Value::Null);
    let id = turn["checkpoint"]["id"].as_str().unwrap();
    let shown = server.read(&format!("/api/checkpoints/{id}"));
    assert_eq!(shown["turn_changes"], turn["changes"]);
    assert_eq!(server.get("/api/checkpoints/0000").failure(), (404, "unknown_checkpoint".to_owned()));
    let told = server.read(&format!("/api/conversation?checkpoint={id}"));
    assert_eq!(told["messages"], json!([{ "role": "user", "text": "earlier <b>words</b>" }]));
}

#[test]
fn differences_have_a_patch_and_hunks() {
    let place = with_session();
    let server = Server::start(&place, &[]);
    let diff = server.read("/api/diff?from=turn:1&to=latest");
    let same = place.json(["diff", "turn:1", "latest", "--hunks"]);
    for key in ["from", "to", "added_files", "modified_files", "deleted_files", "patch"] {
        assert_eq!(diff[key], same[key], "{key}");
    }
    assert_eq!(diff["changes"][0]["hunks"], same["changes"][0]["hunks"]);
    let one = server.read("/api/diff?from=turn:1&to=latest&path=a.txt&context=0&hunks=0");
    assert!(one["patch"].as_str().unwrap().contains("@@ -2 +2 @@\n-two\n+2\n"), "{one}");
    assert!(one["changes"][0].get("hunks").is_none() && one["changes"].as_array().unwrap().len() == 1);
    place.write("a.txt", "on disk\n");
    assert_eq!(server.read("/api/diff?from=latest")["to"], Value::Null);
    let of_one = server.read("/api/diff?to=latest");
    assert_eq!(texts(&of_one["changes"], "path"), ["new.txt"], "against the one before it");
    assert_eq!(texts(&server.read("/api/status")["changes"], "path"), ["a.txt"]);
}

#[test]
fn paths_outside_of_the_workspace_are_refused() {
    let place = Place::saved();
    fs::write(place.path("secret.txt"), "secret").unwrap();
    std::os::unix::fs::symlink(place.path("secret.txt"), place.path("ws/link")).unwrap();
    std::os::unix::fs::symlink(place.path(""), place.path("ws/up")).unwrap();
    place.write("ignored.log", "secret");
    place.write(".gitignore", "*.log\n");
    let server = Server::start(&place, &[]);
    for path in ["../secret.txt", "/etc/passwd", "dir/../../secret.txt", "a%00b"] {
        for what in ["file", "history", "blame", "diff"] {
            let answer = server.get(&format!("/api/{what}?path={path}"));
            assert_eq!(answer.failure(), (403, "path_outside_workspace".to_owned()), "{what} {path}");
        }
    }
    for path in ["link", "up/secret.txt", "ignored.log", "none"] {
        let answer = server.get(&format!("/api/file?path={path}"));
        assert!(
            (400..500).contains(&answer.status) && !answer.text().contains("secret\""),
            "{path}: {}",
            answer.text()
        );
        assert_ne!(answer.body, b"secret", "{path}");
    }
    assert_eq!(server.get(&format!("/api/file?path={}", "x/".repeat(3_000))).status, 400);
    assert_eq!(server.get("/api/file?path=a.txt").body, b"one\ntwo\n");
}

#[test]
fn precious_contents_are_hidden_until_one_file_is_asked_for() {
    let place = Place::saved();
    place.write(".env", "KEY=hunter2\n");
    place.ok(["save", "with a key"]);
    place.write(".env", "KEY=hunter3\n");
    let server = Server::start(&place, &[]);
    for path in [
        "/api/diff?from=@",
        "/api/diff?to=@",
        "/api/status",
        "/api/checkpoints/@",
        "/api/history?path=.env",
        "/api/blame?path=.env",
        "/api/file?checkpoint=@&path=.env",
        "/api/file?path=.env",
    ] {
        let text = server.get(path).text();
        assert!(!text.contains("hunter"), "{path}: {text}");
    }
    let plan = server.write("/api/restore/plan", &json!({ "checkpoint": "@" }));
    assert!(plan["changes"][0]["hidden"] == true && !plan.to_string().contains("hunter"), "{plan}");
    assert_eq!(server.read("/api/diff?from=@")["hidden_files"], json!([".env"]));
    assert_eq!(server.get("/api/file?checkpoint=@&path=.env&reveal=1").text(), "KEY=hunter2\n");
    assert_eq!(server.get("/api/file?path=.env&reveal=1").text(), "KEY=hunter3\n");
}

#[test]
fn only_a_plan_that_was_shown_and_still_holds_is_applied() {
    let place = Place::saved();
    place.write("a.txt", "bad\n");
    let server = Server::start(&place, &[]);
    let dry = place.json(["restore", "@", "--dry-run"]);
    let apply = |plan: &Value| server.post("/api/apply", &json!({ "plan": plan }));
    assert_eq!(apply(&dry["plan"]).failure(), (409, "plan_changed".to_owned()), "another program's plan");
    let plan = server.write("/api/restore/plan", &json!({ "checkpoint": "@" }));
    assert_eq!(plan["plan"], dry["plan"]);
    assert_eq!(plan["applied"], false);
    place.write("a.txt", "worse\n");
    assert_eq!(apply(&plan["plan"]).failure(), (409, "plan_changed".to_owned()), "the files changed");
    assert_eq!(on_disk(&place, "a.txt"), "worse\n");
    let plan = server.write("/api/restore/plan", &json!({ "checkpoint": "@" }));
    let done = apply(&plan["plan"]).json();
    assert_eq!((&done["applied"], on_disk(&place, "a.txt").as_str()), (&json!(true), "one\ntwo\n"), "{done}");
    assert!(done["safety"].is_string());
    assert_eq!(server.write("/api/undo", &json!({}))["applied"], true);
    assert_eq!(on_disk(&place, "a.txt"), "worse\n");
    assert_eq!(server.write("/api/redo", &json!({}))["applied"], true);
    assert_eq!(on_disk(&place, "a.txt"), "one\ntwo\n");
}

#[test]
fn some_hunks_and_some_files_are_restored() {
    let place = Place::new();
    let lines = |first: &str, last: &str| {
        let middle: String = (0..40).map(|number| format!("line {number}\n")).collect();
        format!("{first}\n{middle}{last}\n")
    };
    place.write("a.txt", lines("first", "last"));
    place.write("b.txt", "b\n");
    place.ok(["save"]);
    place.write("a.txt", lines("FIRST", "LAST"));
    place.write("b.txt", "B\n");
    place.write("c.txt", "c\n");
    let server = Server::start(&place, &[]);
    let whole = server.write("/api/restore/plan", &json!({ "checkpoint": "@" }));
    let hunks = texts(&whole["changes"][0]["hunks"], "id");
    assert_eq!((hunks.len(), whole["changes"].as_array().unwrap().len()), (2, 3), "{whole}");
    let some = json!({ "checkpoint": "@", "hunks": [hunks[1]], "files": ["c.txt"] });
    let plan = server.write("/api/restore/plan", &some);
    assert_eq!(texts(&plan["changes"], "path"), ["a.txt", "c.txt"]);
    server.write("/api/apply", &json!({ "plan": plan["plan"] }));
    assert_eq!(on_disk(&place, "a.txt"), lines("FIRST", "last"));
    assert_eq!((on_disk(&place, "b.txt").as_str(), place.path("ws/c.txt").exists()), ("B\n", false));
    let unknown = json!({ "checkpoint": "@", "hunks": ["none"] });
    assert!((400..=409).contains(&server.post("/api/restore/plan", &unknown).status));
}

#[test]
fn a_prompt_is_taken_back_and_later_work_stays() {
    let place = with_session();
    place.write("later.txt", "later\n");
    let server = Server::start(&place, &[]);
    let plan = server.write("/api/revert/plan", &json!({ "turn": 1 }));
    assert_eq!(texts(&plan["changes"], "path"), ["a.txt", "new.txt"]);
    assert_eq!(plan["reverted"].as_array().unwrap().len(), 2, "{plan}");
    let same = server.write("/api/revert/plan", &json!({ "what": "turn:1", "session": "s-1" }));
    assert_eq!(same["plan"], plan["plan"]);
    let done = server.write("/api/apply", &json!({ "plan": plan["plan"] }));
    assert_eq!(done["applied"], true);
    assert_eq!((on_disk(&place, "a.txt").as_str(), on_disk(&place, "later.txt").as_str()), ("one\ntwo\n", "later\n"));
    assert!(!place.path("ws/new.txt").exists());
    assert_eq!(
        server.post("/api/revert/plan", &json!({ "turn": 9 })).failure(),
        (404, "unknown_checkpoint".to_owned())
    );
    let again = server.post("/api/apply", &json!({ "plan": plan["plan"] }));
    assert_eq!(again.failure(), (409, "plan_changed".to_owned()));
}

#[test]
fn a_checkpoint_is_pinned_and_saved() {
    let place = Place::saved();
    let server = Server::start(&place, &[]);
    assert_eq!(server.write("/api/save", &json!({}))["created"], false, "nothing changed");
    place.write("a.txt", "more\n");
    assert_eq!(server.write("/api/save", &json!({ "message": "<i>m</i>" }))["checkpoint"]["message"], "<i>m</i>");
    let pin = |pinned| server.write("/api/pin", &json!({ "checkpoint": "@", "pinned": pinned }));
    assert_eq!(pin(true)["checkpoint"]["pinned"], true);
    assert_eq!(place.json(["show", "@"])["checkpoint"]["pinned"], true);
    assert_eq!(pin(false)["checkpoint"]["pinned"], false);
    assert_eq!(server.read("/api/history?path=a.txt")["versions"].as_array().unwrap().len(), 2);
    assert_eq!(server.read("/api/blame?path=a.txt")["ranges"][0]["lines"], 1);
}

#[test]
fn one_workspace_is_shown_unless_all_are_asked_for() {
    let place = Place::saved();
    fs::create_dir(place.path("other")).unwrap();
    fs::write(place.path("other/o.txt"), "o\n").unwrap();
    place.run_in(&place.path("other"), ["save", "elsewhere"]);
    let other = place.json(["workspaces"])["workspaces"].as_array().unwrap().clone();
    let other = other.iter().find(|entry| entry["path"] == place.path("other").to_str().unwrap()).unwrap().clone();
    let query = format!("/api/checkpoints?workspace={}", other["store"].as_str().unwrap());

    let one = Server::start(&place, &[]);
    assert_eq!(texts(&one.read("/api/workspaces")["workspaces"], "path"), [place.path("ws").to_str().unwrap()]);
    assert_eq!(one.get(&query).status, 404);

    let all = Server::start(&place, &["--all-workspaces"]);
    assert_eq!(all.read("/api/workspaces")["workspaces"].as_array().unwrap().len(), 2);
    assert_eq!(texts(&all.read(&query)["checkpoints"], "message"), ["elsewhere"]);
    assert_eq!(texts(&all.read("/api/checkpoints")["checkpoints"], "message"), ["first"]);
    let unknown = format!("/api/checkpoints?workspace={}", place.path("home").display());
    assert_eq!(all.get(&unknown).status, 404);
}

#[test]
fn a_workspace_without_checkpoints_is_shown_too() {
    let place = Place::new();
    let server = Server::start(&place, &[]);
    let empty = server.read("/api/checkpoints");
    assert_eq!((&empty["checkpoints"], &empty["current"]), (&json!([]), &Value::Null));
    assert_eq!(server.read("/api/workspaces")["workspaces"][0]["checkpoints"], 0);
    place.write("a.txt", "a\n");
    assert_eq!(server.write("/api/save", &json!({ "message": "one" }))["created"], true);
    assert_eq!(server.read("/api/checkpoints")["checkpoints"].as_array().unwrap().len(), 1);
}
