//! `rewind --turn` takes back the whole prompt: also files that only a step before a tool captured.

use std::fs;

use serde_json::{Value, json};

use crate::{
    hooks::{hook, of_kind, payloads},
    place::Place,
};

/// A session of Qwen Code that removes an ignored file with `rm`, as its hooks sent it.
const DELETION: &str = include_str!("../payloads/qwen-deletion.jsonl");

fn read(place: &Place, name: &str) -> Option<String> {
    fs::read_to_string(place.path("ws").join(name)).ok()
}

/// Sends a payload of Claude Code's format for a shell command, before and after it runs.
fn shell(place: &Place, id: &str, command: &str, run: impl FnOnce()) {
    let mut payload = json!({ "session_id": "s", "hook_event_name": "PreToolUse", "cwd": place.path("ws"),
        "tool_name": "Bash", "tool_input": { "command": command }, "tool_use_id": id });
    hook(place, "claude", &payload);
    run();
    payload["hook_event_name"] = json!("PostToolUse");
    payload["tool_response"] = json!({});
    hook(place, "claude", &payload);
}

fn prompt(place: &Place, number: u64) {
    let payload = json!({ "session_id": "s", "hook_event_name": "UserPromptSubmit", "cwd": place.path("ws"),
        "prompt": format!("prompt {number}"), "prompt_id": number.to_string() });
    hook(place, "claude", &payload);
}

/// Returns a place whose workspace ignores `private/` and `*.log`, with a first prompt.
fn ignoring() -> Place {
    let place = Place::new();
    place.write("k", "1\n");
    place.write(".gitignore", "private/\n*.log\n");
    place.write("private/notes.txt", "the user's own\n");
    prompt(&place, 1);
    place
}

/// Regression: an ignored file that `rm` named stayed deleted, and the answer was "nothing to do".
#[test]
fn an_ignored_file_that_a_recorded_session_deleted_comes_back_with_its_prompt() {
    let place = Place::new();
    place.write("k", "1\n");
    place.write(".gitignore", "private/\n");
    place.write("private/notes.txt", "the user's own\n");
    for payload in payloads(&place, DELETION) {
        hook(&place, "qwen", &payload);
        if payload["hook_event_name"] == "PreToolUse" {
            place.remove("private/notes.txt");
            place.remove("k");
        }
    }
    let planned = place.json(["rewind", "--turn", "--dry-run"]);
    let step = of_kind(&place, "step").first().unwrap()["id"].clone();
    assert_eq!(planned["also"], json!([{ "path": "private/notes.txt", "checkpoint": step, "certain": true }]));
    let done = place.json(["rewind", "--turn"]);
    assert_eq!(done["also"], planned["also"]);
    assert_eq!(read(&place, "private/notes.txt").as_deref(), Some("the user's own\n"));
    assert_eq!(read(&place, "k").as_deref(), Some("1\n"));
    assert_eq!(place.json(["show", "@"])["checkpoint"]["kind"], "turn");
    place.ok(["undo"]);
    assert_eq!((read(&place, "private/notes.txt"), read(&place, "k")), (None, None));
    assert!(!place.path("ws/private").exists() || fs::read_dir(place.path("ws/private")).unwrap().count() == 0);
    place.ok(["redo"]);
    assert_eq!(read(&place, "private/notes.txt").as_deref(), Some("the user's own\n"));
    place.ok(["verify"]);
}

#[test]
fn an_overwritten_ignored_file_comes_back_and_undo_brings_back_the_other_bytes() {
    let place = ignoring();
    shell(&place, "1", "echo new > private/notes.txt", || place.write("private/notes.txt", "new\n"));
    place.write("private/notes.txt", "and edited by hand\n");
    let done = place.run(["rewind", "--turn"]);
    assert!(done.stderr.contains("private/notes.txt comes from step"), "{}", done.stderr);
    assert_eq!(read(&place, "private/notes.txt").as_deref(), Some("the user's own\n"));
    place.ok(["undo"]);
    assert_eq!(read(&place, "private/notes.txt").as_deref(), Some("and edited by hand\n"));
}

#[test]
fn an_ignored_file_that_the_prompt_created_does_not_come_back() {
    let place = ignoring();
    shell(&place, "1", "echo x > private/made.txt", || place.write("private/made.txt", "x\n"));
    shell(&place, "2", "rm private/made.txt", || place.remove("private/made.txt"));
    assert!(place.json(["rewind", "--turn", "--dry-run"])["also"].is_null());
    place.ok(["rewind", "--turn"]);
    assert_eq!(read(&place, "private/made.txt"), None);
    assert_eq!(read(&place, "private/notes.txt").as_deref(), Some("the user's own\n"));
}

#[test]
fn a_file_that_an_earlier_call_may_have_created_comes_back_with_a_note() {
    let place = ignoring();
    shell(&place, "1", "make", || place.write("build/x.log", "built\n"));
    shell(&place, "2", "rm build/x.log", || place.remove("build/x.log"));
    let planned = place.json(["rewind", "--turn", "--dry-run"]);
    let certain: Vec<&Value> = planned["also"].as_array().unwrap().iter().map(|also| &also["certain"]).collect();
    assert_eq!(certain, [&json!(false)]);
    let done = place.run(["rewind", "--turn"]);
    assert!(done.stderr.contains("an earlier call for that prompt may have created it"), "{}", done.stderr);
    assert_eq!(read(&place, "build/x.log").as_deref(), Some("built\n"));
    place.ok(["undo"]);
    assert_eq!(read(&place, "build/x.log"), None);
}

#[test]
fn directories_that_were_replaced_since_make_way() {
    let place = ignoring();
    let file_for_directory = || {
        place.remove("private/notes.txt");
        fs::remove_dir(place.path("ws/private")).unwrap();
        place.write("private", "a file now\n");
    };
    shell(&place, "1", "rm private/notes.txt; rmdir private; echo a > private", file_for_directory);
    place.ok(["rewind", "--turn"]);
    assert_eq!(read(&place, "private/notes.txt").as_deref(), Some("the user's own\n"));
    place.ok(["undo"]);
    assert_eq!(read(&place, "private").as_deref(), Some("a file now\n"));
    place.ok(["redo"]);
    assert_eq!(read(&place, "private/notes.txt").as_deref(), Some("the user's own\n"));
}

#[test]
fn a_file_comes_back_into_a_directory_that_was_created_since() {
    let place = ignoring();
    place.write("logs/a.log", "ignored\n");
    shell(&place, "1", "rm logs/a.log; echo x > logs/b.txt", || {
        place.remove("logs/a.log");
        place.write("logs/b.txt", "x\n");
    });
    place.ok(["rewind", "--turn"]);
    assert_eq!((read(&place, "logs/a.log").as_deref(), read(&place, "logs/b.txt")), (Some("ignored\n"), None));
    place.ok(["undo"]);
    assert_eq!((read(&place, "logs/a.log"), read(&place, "logs/b.txt").as_deref()), (None, Some("x\n")));
}

#[test]
fn prompts_before_the_deletion_bring_the_file_back_too() {
    let place = ignoring();
    shell(&place, "1", "touch a", || place.write("a", ""));
    prompt(&place, 2);
    shell(&place, "2", "rm private/notes.txt", || place.remove("private/notes.txt"));
    prompt(&place, 3);
    shell(&place, "3", "touch b", || place.write("b", ""));
    place.ok(["rewind", "--turn"]);
    assert_eq!(read(&place, "private/notes.txt"), None, "it was deleted before that prompt");
    place.ok(["rewind", "--turn", "2"]);
    assert_eq!(read(&place, "private/notes.txt").as_deref(), Some("the user's own\n"));
}
