//! Prompts of real agents, as their hooks reported them: what counts as one, and that `rewind --turn` takes back the
//! whole of it, with files that only a step before a tool captured.

use std::fs;

use serde_json::{Value, json};

use crate::{
    hooks::{hook, of_kind, payloads},
    place::Place,
};

/// A session of Qwen Code whose first prompt removes ignored files with `rm`, and which is resumed for the second.
const QWEN: &str = include_str!("../payloads/qwen.jsonl");
/// A session of Cline's command line with the same prompt.
const CLINE: &str = include_str!("../payloads/cline-core.jsonl");
/// A session of Claude Code that starts a command in the background, and is told that it has ended.
const BACKGROUND: &str = include_str!("../payloads/claude-background.jsonl");
/// The same with a subagent in the background.
const SUBAGENT: &str = include_str!("../payloads/claude-subagent.jsonl");

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

/// Returns a place with the files that the recorded sessions delete.
fn recorded_place() -> Place {
    let place = Place::new();
    for (name, text) in
        [("app.txt", "1\n"), ("doomed.txt", "x\n"), ("lib/a.txt", "a\n"), (".gitignore", ".env\nprivate/\n")]
    {
        place.write(name, text);
    }
    place.write(".env", "SECRET=1\n");
    place.write("private/notes.txt", "the user's own\n");
    place
}

/// Does what the shell command of the recorded sessions did.
fn delete_as_recorded(place: &Place) {
    place.write("app.txt", "changed by the agent\n");
    for name in ["doomed.txt", ".env", "lib/a.txt", "private/notes.txt"] {
        place.remove(name);
    }
    fs::remove_dir(place.path("ws/lib")).unwrap();
}

fn turns(place: &Place) -> Vec<(Value, Value)> {
    of_kind(place, "turn").iter().map(|turn| (turn["turn"].clone(), turn["prompt"].clone())).collect()
}

/// Regression: each result of a tool counted as a prompt, so that `rewind --turn` went to the middle of the last one.
/// And an ignored file that `rm` named stayed deleted, and the answer was "nothing to do".
#[test]
fn a_recorded_session_of_qwen_code_is_taken_back_with_its_ignored_files() {
    let place = recorded_place();
    for payload in payloads(&place, QWEN) {
        hook(&place, "qwen", &payload);
        if payload["hook_event_name"] == "PreToolUse" && payload["tool_name"] == "run_shell_command" {
            delete_as_recorded(&place);
        }
    }
    assert_eq!(turns(&place), [(json!(1), json!("FIRST prompt")), (json!(2), json!("SECOND prompt"))]);
    place.write("second.txt", "more work\n");
    let planned = place.json(["rewind", "--turn", "2", "--dry-run"]);
    let also = planned["also"].as_array().unwrap();
    assert_eq!(also.len(), 1, "{also:?}");
    assert_eq!((&also[0]["path"], &also[0]["certain"]), (&json!("private/notes.txt"), &json!(false)));
    let done = place.json(["rewind", "--turn", "2"]);
    assert_eq!(done["also"], planned["also"]);
    assert_eq!(read(&place, "private/notes.txt").as_deref(), Some("the user's own\n"));
    assert_eq!((read(&place, "app.txt").as_deref(), read(&place, "lib/a.txt").as_deref()), (Some("1\n"), Some("a\n")));
    assert_eq!(place.json(["show", "@"])["checkpoint"]["prompt"], "FIRST prompt");
    place.ok(["undo"]);
    assert_eq!((read(&place, "private/notes.txt"), read(&place, "lib/a.txt")), (None, None));
    place.ok(["redo"]);
    assert_eq!(read(&place, "private/notes.txt").as_deref(), Some("the user's own\n"));
    let first = place.run(["rewind", "--turn"]);
    assert!(first.code == 3 && first.stderr.contains("already at the first prompt"), "{}", first.stderr);
    place.ok(["verify"]);
}

/// Regression: the command line of Cline names no prompt, so that `rewind --turn` found none, and the list of commands
/// was not read for names of files.
#[test]
fn a_recorded_session_of_cline_is_taken_back_with_its_ignored_files() {
    let place = recorded_place();
    for payload in payloads(&place, CLINE) {
        hook(&place, "cline", &payload);
        if payload["hookName"] == "tool_call" && payload["tool_call"]["name"] == "run_commands" {
            delete_as_recorded(&place);
        }
    }
    assert_eq!(turns(&place), [(json!(1), json!(""))]);
    place.ok(["rewind", "--turn"]);
    assert_eq!(read(&place, "private/notes.txt").as_deref(), Some("the user's own\n"));
    assert_eq!(read(&place, "doomed.txt").as_deref(), Some("x\n"));
    let text = place.ok(["restore", "@", "--conversation"]);
    assert!(text.contains("the conversation is not restored: this is not supported for Cline"), "{text}");
}

/// Regression: the message that a background task has ended counted as a prompt of its own.
#[test]
fn work_in_the_background_belongs_to_the_prompt_that_started_it() {
    for (recorded, file) in [(BACKGROUND, "background.txt"), (SUBAGENT, "delegated.txt")] {
        let place = recorded_place();
        let mut sent = payloads(&place, recorded);
        // The user gives another prompt while the task is still running.
        let stop = sent.iter().position(|payload| payload["hook_event_name"] == "Stop").unwrap();
        let mut between = sent[1].clone();
        (between["prompt"], between["prompt_id"]) = (json!("meanwhile"), json!("another"));
        sent.insert(stop + 1, between);
        for payload in sent {
            let is_message = payload["prompt"].as_str().is_some_and(|text| text.starts_with("<task-notification>"));
            if is_message {
                place.write(file, "made in the background\n");
            }
            hook(&place, "claude", &payload);
        }
        let prompts: Vec<Value> = turns(&place).into_iter().map(|(_, prompt)| prompt).collect();
        assert_eq!(prompts.len(), 2, "{prompts:?}");
        assert_eq!(prompts[1], "meanwhile");
        let step = of_kind(&place, "step").pop().unwrap();
        assert_eq!(step["files_changed"], json!([file]));
        assert_eq!((&step["turn"], &step["prompt"]), (&json!(1), &prompts[0]), "{file}");
    }
}

#[test]
fn a_typed_message_about_a_task_is_a_prompt() {
    let place = recorded_place();
    let sent = payloads(&place, BACKGROUND);
    let is_message = |payload: &&Value| payload["prompt"].as_str().is_some_and(|text| text.starts_with("<task"));
    let message = sent.iter().find(is_message).unwrap().clone();
    let before = sent.iter().take_while(|payload| !is_message(payload));
    before.for_each(|payload| hook(&place, "claude", payload));
    let text = message["prompt"].as_str().unwrap();
    let typed = [
        "<task-notification>".to_owned(),
        format!("what does this mean? {text}"),
        text.replace("bm752wrrc", "another-task"),
    ];
    for (number, typed) in typed.iter().enumerate() {
        let mut payload = message.clone();
        (payload["prompt"], payload["prompt_id"]) = (json!(typed), json!(format!("typed-{number}")));
        hook(&place, "claude", &payload);
        assert_eq!(turns(&place).len(), number + 2, "{typed}");
    }
    // The source decides if the agent names it.
    for (source, counted) in [("user", 5), ("system", 5), ("loop_wakeup", 5)] {
        let mut payload = message.clone();
        (payload["source"], payload["prompt_id"]) = (json!(source), json!(source));
        hook(&place, "claude", &payload);
        assert_eq!(turns(&place).len(), counted, "{source}");
    }
}

#[test]
fn an_agent_without_stored_conversations_says_so() {
    let place = recorded_place();
    for payload in payloads(&place, include_str!("../payloads/opencode.jsonl")) {
        hook(&place, "opencode", &payload);
    }
    let turn = of_kind(&place, "turn")[0]["id"].as_str().unwrap().to_owned();
    let text = place.ok(["restore", &turn, "--conversation"]);
    assert!(text.contains("not supported for opencode") && !text.contains("was empty"), "{text}");
    assert_eq!(place.json(["restore", &turn, "--conversation"])["conversation"]["is_supported"], false);
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
