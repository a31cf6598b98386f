//! Going back with an agent: to before a prompt, with the conversation, and the agent is told.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::place::Place;

const SESSION: &str = "3242fa0a-dafd-4132-bb98-d25a8567ae3d";

/// What an agent says, and what its hook answers.
fn hook(place: &Place, agent: &str, payload: &Value) -> String {
    let mut command = place.command(&place.path("ws"), ["hook", agent]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    String::from_utf8(done.stdout).unwrap()
}

fn transcript(place: &Place, agent: &str) -> PathBuf {
    place.path("home").join(match agent {
        "claude" => format!(".claude/projects/-ws/{SESSION}.jsonl"),
        "codex" => format!(".codex/sessions/2026/11/15/rollout-2026-11-15T06-32-12-{SESSION}.jsonl"),
        "gemini" => ".gemini/tmp/ws/chats/session-2026-11-15T06-28-3242fa0a.jsonl".to_owned(),
        other => format!(".{other}/{SESSION}.jsonl"),
    })
}

pub(crate) fn prompt(place: &Place, agent: &str, number: usize) -> String {
    let event = if agent == "gemini" { "BeforeAgent" } else { "UserPromptSubmit" };
    let payload = json!({ "session_id": SESSION, "hook_event_name": event, "cwd": place.path("ws"),
        "transcript_path": transcript(place, agent), "prompt": format!("prompt {number}"),
        "prompt_id": number.to_string(), "timestamp": format!("2026-11-15T06:28:{number:02}.000Z") });
    let answer = hook(place, agent, &payload);
    let path = transcript(place, agent);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let said = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, format!("{said}{{\"sessionId\":\"{SESSION}\",\"said\":{number}}}\n")).unwrap();
    answer
}

#[test]
fn going_back_to_before_a_prompt() {
    let place = Place::new();
    for number in 1..=3 {
        place.write("a", format!("before prompt {number}\n"));
        prompt(&place, "claude", number);
    }
    place.write("a", "work for prompt 3\n");
    let read = || fs::read_to_string(place.path("ws/a")).unwrap();
    place.ok(["rewind", "--turn"]);
    assert_eq!(read(), "before prompt 3\n");
    place.ok(["rewind", "--turn"]);
    assert_eq!(read(), "before prompt 2\n");
    place.ok(["rewind", "--turn"]);
    assert_eq!(read(), "before prompt 1\n");
    assert_eq!(place.run(["rewind", "--turn"]).code, 3);
    place.ok(["undo"]);
    place.ok(["undo"]);
    place.ok(["undo"]);
    assert_eq!(read(), "work for prompt 3\n");
    place.ok(["rewind", "--turn", "3"]);
    assert_eq!(read(), "before prompt 1\n");
}

/// A question without an answer in files was passed over: the work of the prompt before it was taken back, that of
/// another session even.
#[test]
fn a_prompt_that_changed_nothing_is_the_last_one_all_the_same() {
    let place = Place::new();
    place.write("f", "before\n");
    let tell = |session: &str, event: &str, more: &Value| {
        let mut payload = json!({ "session_id": session, "hook_event_name": event, "cwd": place.path("ws") });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        hook(&place, "claude", &payload);
    };
    tell("one", "UserPromptSubmit", &json!({ "prompt": "work" }));
    place.write("f", "work\n");
    let call = json!({ "tool_name": "Write", "tool_input": { "file_path": place.path("ws/f") }, "tool_use_id": "t" });
    tell("one", "PostToolUse", &call);
    tell("two", "SessionStart", &json!({ "source": "startup" }));
    tell("two", "UserPromptSubmit", &json!({ "prompt": "just explain f" }));
    let read = || fs::read_to_string(place.path("ws/f")).unwrap();
    for _ in 0..2 {
        let run = place.run(["rewind", "--turn"]);
        assert_eq!((run.code, read()), (0, "work\n".to_owned()));
        let said = run.shown();
        assert!(said.contains("nothing to do") && said.contains("backtrail rewind --turn 2"), "{said}");
    }
    assert_eq!(place.json(["rewind", "--turn"])["changes"], json!([]));
    place.ok(["rewind", "--turn", "2"]);
    assert_eq!(read(), "before\n");
    assert_eq!(place.run(["rewind", "--turn"]).code, 3, "there is no prompt before that");
}

#[test]
fn a_conversation_comes_back_in_a_session_of_its_own() {
    for (agent, resume) in [("claude", "claude --resume "), ("codex", "codex resume "), ("gemini", "gemini --resume ")]
    {
        let place = Place::new();
        place.write("a", "1\n");
        (1..=3).for_each(|number| drop(prompt(&place, agent, number)));
        let live = fs::read(transcript(&place, agent)).unwrap();
        let turns = place.json(["list", "--turns"])["checkpoints"].clone();
        let id = turns[0]["id"].as_str().unwrap();
        place.write("a", "2\n");

        let preview = place.json(["restore", id, "--conversation", "--dry-run"]);
        assert_eq!(preview["conversation"]["agent"], agent);
        let beside = || fs::read_dir(transcript(&place, agent).parent().unwrap()).unwrap().count();
        assert_eq!(beside(), 1, "a preview wrote something");

        let answer = place.json(["restore", id, "--conversation"]);
        let found = &answer["conversation"];
        let session = found["session"].as_str().unwrap();
        assert_ne!(session, SESSION);
        assert_eq!(found["command"], format!("{resume}{session}"));
        let copy = fs::read_to_string(found["file"].as_str().unwrap()).unwrap();
        let line = |number| format!("{{\"sessionId\":\"{session}\",\"said\":{number}}}\n");
        assert_eq!(copy, format!("{}{}", line(1), line(2)), "{agent}: what was said before the third prompt");
        assert_eq!(fs::read(transcript(&place, agent)).unwrap(), live, "the session's own file was written");
        assert_eq!(fs::read_to_string(place.path("ws/a")).unwrap(), "1\n");

        let text = place.ok(["restore", id, "--conversation"]);
        assert!(text.contains(resume) && text.contains("prompt 3"), "{text}");
        assert_eq!(beside(), 3, "each time another session");
    }
}

#[test]
fn conversations_that_are_not_there() {
    let place = Place::saved();
    let (code, word, message) = place.run(["--json", "restore", "@", "--conversation"]).error();
    assert_eq!(code, 3, "{word}: {message}");
    assert!(message.contains("conversation"), "{message}");
    prompt(&place, "claude", 1);
    let text = place.ok(["restore", "latest", "--conversation"]);
    assert!(
        text.contains("the conversation was empty before") && text.contains("start a new one with: claude"),
        "{text}"
    );
}

/// The files were restored, and all that was said was that the conversation could not be written: no safety checkpoint,
/// no way back, no warning.
#[test]
fn where_the_conversation_can_not_be_written_nothing_is_restored() {
    let place = Place::new();
    place.write("a", "1\n");
    (1..=2).for_each(|number| drop(prompt(&place, "claude", number)));
    place.write("a", "2\n");
    let projects = place.path("home/.claude/projects");
    fs::rename(&projects, place.path("moved")).unwrap();
    fs::write(&projects, "a file\n").unwrap();
    let turn = place.id("latest");
    let count = place.json(["list", "--all"])["checkpoints"].as_array().unwrap().len();
    for words in [vec!["rewind", "--turn", "--conversation"], vec!["restore", &turn, "--conversation"]] {
        let run = place.run(["--json"].iter().chain(&words));
        assert_eq!(run.code, 1, "{}", run.shown());
        let hint = run.json()["error"]["hint"].as_str().unwrap().to_owned();
        assert!(hint.starts_with("nothing was restored") && hint.ends_with("without --conversation"), "{hint}");
        assert_eq!(fs::read_to_string(place.path("ws/a")).unwrap(), "2\n", "{words:?}");
    }
    assert_eq!(place.json(["list", "--all"])["checkpoints"].as_array().unwrap().len(), count, "no safety checkpoint");
    place.ok(["restore", &turn]);
    assert_eq!(fs::read_to_string(place.path("ws/a")).unwrap(), "1\n");
}

#[test]
fn where_the_files_can_not_be_restored_no_conversation_is_left() {
    let place = Place::new();
    place.write("a", "1\n");
    (1..=2).for_each(|number| drop(prompt(&place, "claude", number)));
    place.write("a", "2\n");
    let beside = || fs::read_dir(transcript(&place, "claude").parent().unwrap()).unwrap().count();
    let turn = place.id("latest");
    let no_plan = "0".repeat(64);
    assert_eq!(place.run(["restore", &turn, "--conversation", "--plan", &no_plan]).code, 4);
    let held = place.hold_lock();
    assert_eq!(place.run(["--wait", "0", "rewind", "--turn", "--conversation"]).code, 7);
    drop(held);
    assert_eq!((beside(), fs::read_to_string(place.path("ws/a")).unwrap()), (1, "2\n".to_owned()));
    place.ok(["rewind", "--turn", "--conversation"]);
    assert_eq!((beside(), fs::read_to_string(place.path("ws/a")).unwrap()), (2, "1\n".to_owned()));
}

#[test]
fn a_step_goes_back_with_the_conversation_of_its_prompt() {
    let place = Place::new();
    place.write("a", "1\n");
    (1..=2).for_each(|number| drop(prompt(&place, "claude", number)));
    place.write("a", "2\n");
    let tool = json!({ "session_id": SESSION, "hook_event_name": "PreToolUse", "cwd": place.path("ws"),
        "tool_name": "Bash", "tool_input": { "command": "true" }, "tool_use_id": "t" });
    hook(&place, "claude", &tool);
    place.write("a", "3\n");
    let step = place.json(["list", "--kind", "step"])["checkpoints"][0]["id"].as_str().unwrap().to_owned();
    let answer = place.json(["restore", &step, "--conversation"]);
    let copy = fs::read_to_string(answer["conversation"]["file"].as_str().unwrap()).unwrap();
    assert_eq!(copy.lines().count(), 1, "{copy}");
    let rewound = place.json(["rewind", "--turn", "2", "--conversation"]);
    assert_eq!(rewound["conversation"]["session"], Value::Null, "nothing was said before the first prompt");
}

#[test]
fn a_session_that_still_runs_is_said_to() {
    let place = Place::new();
    place.write("a", "1\n");
    // This test is the process that the hook is started by.
    (1..=2).for_each(|number| drop(prompt(&place, "claude", number)));
    let text = place.ok(["restore", "latest", "--conversation"]);
    assert!(text.contains("exit Claude Code, which is still running, then run: claude --resume"), "{text}");
    let end =
        json!({ "session_id": SESSION, "hook_event_name": "SessionEnd", "cwd": place.path("ws"), "reason": "exit" });
    hook(&place, "claude", &end);
    let text = place.ok(["restore", "latest", "--conversation"]);
    assert!(text.contains("continue with: claude --resume"), "{text}");
}

#[test]
fn an_agent_is_told_once_what_was_restored() {
    for (agent, event) in [("claude", "UserPromptSubmit"), ("codex", "UserPromptSubmit"), ("gemini", "BeforeAgent")] {
        let place = Place::new();
        place.write("a", "1\n");
        place.write(".env", "SECRET=1\n");
        let nothing = if agent == "gemini" { "{}\n" } else { "" };
        assert_eq!(prompt(&place, agent, 1), nothing);
        place.write("a", "2\n");
        place.remove(".env");
        place.ok(["rewind", "--turn"]);
        let answer: Value = serde_json::from_str(&prompt(&place, agent, 2)).unwrap();
        let told = &answer["hookSpecificOutput"];
        assert_eq!(told["hookEventName"], event);
        let text = told["additionalContext"].as_str().unwrap();
        assert!(text.contains("\"a\"") && text.contains("\".env\"") && !text.contains("SECRET"), "{text}");
        assert_eq!(prompt(&place, agent, 3), nothing, "once is enough");

        place.write("a", "3\n");
        place.ok(["rewind", "--turn"]);
        place.write("backtrail.toml", "[checkpoints]\ntell_agent = false\n");
        assert_eq!(prompt(&place, agent, 4), nothing, "it was switched off");
    }
}

/// What was restored after the clock was set back seemed to be older than what the agent had been told.
#[test]
fn a_clock_that_is_set_back_keeps_nothing_from_the_agent() {
    let begin = |place: &Place| json!({ "session_id": SESSION, "hook_event_name": "SessionStart", "cwd": place.path("ws"), "source": "startup" });
    for is_only_begun in [false, true] {
        let place = Place::new();
        place.write("a", "1\n");
        place.ok(["save", "--name", "good"]);
        match is_only_begun {
            true => drop(hook(&place, "claude", &begin(&place))),
            false => drop(prompt(&place, "claude", 1)),
        }
        // As if it had been years ahead until here.
        for file in fs::read_dir(place.path("home/backtrail/sessions")).unwrap().map(|file| file.unwrap().path()) {
            if file.extension().is_some_and(|extension| extension == "json") {
                let mut state: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
                (state["told"], state["heard"]) = (json!("2099-01-01T00:00:00Z"), json!("2099-01-01T00:00:00Z"));
                fs::write(file, state.to_string()).unwrap();
            }
        }
        place.write("a", "2\n");
        place.ok(["restore", "good"]);
        let told = prompt(&place, "claude", 2);
        assert!(told.contains("restored to checkpoint") && told.contains("\\\"a\\\""), "{is_only_begun}: {told}");
        assert_eq!(prompt(&place, "claude", 3), "", "once is enough");
    }
}

#[test]
fn what_did_not_reach_the_agent_is_told_with_the_next_prompt() {
    let mut place = Place::new();
    place.write("a", "1\n");
    prompt(&place, "claude", 1);
    place.write("a", "2\n");
    place.ok(["rewind", "--turn"]);
    place.set("BACKTRAIL_HOOK_MILLISECONDS", "300");
    let held = place.hold_lock();
    assert_eq!(prompt(&place, "claude", 2), "", "the agent went on");
    drop(held);
    let deadline = Instant::now() + Duration::from_secs(60);
    while place.json(["list", "--turns"])["checkpoints"].as_array().unwrap().len() < 2 {
        assert!(Instant::now() < deadline, "the work did not go on");
        std::thread::sleep(Duration::from_millis(50));
    }
    place.set("BACKTRAIL_HOOK_MILLISECONDS", "60000");
    assert!(prompt(&place, "claude", 3).contains("were restored"));
    assert_eq!(prompt(&place, "claude", 4), "", "once is enough");
}

#[test]
fn an_agent_is_told_within_what_was_restored() {
    let place = Place::new();
    place.write("a", "1\n");
    place.write("b", "1\n");
    prompt(&place, "claude", 1);
    let first = place.id("@");
    place.write("a", "2\n");
    place.write("b", "2\n");
    prompt(&place, "claude", 2);
    place.ok(["restore", &first, "b"]);
    let told = prompt(&place, "claude", 3);
    assert!(told.contains("\\\"b\\\"") && !told.contains("\\\"a\\\""), "{told}");
    place.ok(["undo"]);
    let told = prompt(&place, "claude", 4);
    assert!(told.contains("\\\"b\\\"") && !told.contains("\\\"a\\\""), "{told}");
}

#[test]
fn an_agent_is_told_of_a_restore_whose_checkpoints_were_forgotten() {
    let place = Place::new();
    place.write("a", "1\n");
    prompt(&place, "claude", 1);
    let first = place.id("@");
    place.write("a", "2\n");
    let safety = place.json(["restore", &first])["safety"].as_str().unwrap().to_owned();
    place.ok(["delete", &safety]);
    place.ok(["prune"]);
    let told = prompt(&place, "claude", 2);
    assert!(told.contains("were restored") && told.contains("no list is kept"), "{told}");
}

#[test]
fn prompts_are_listed_and_shown_with_what_was_done_for_them() {
    let place = Place::new();
    place.write("a", "1\n");
    prompt(&place, "claude", 1);
    let tool = |event: &str| {
        json!({ "session_id": SESSION, "hook_event_name": event, "cwd": place.path("ws"), "tool_name": "Write",
            "tool_input": { "file_path": place.path("ws/b") }, "tool_use_id": "t" })
    };
    hook(&place, "claude", &tool("PreToolUse"));
    place.write("b", "new\n");
    hook(&place, "claude", &tool("PostToolUse"));
    prompt(&place, "claude", 2);
    place.ok(["save", "by hand", "--allow-empty"]);
    let of_session = place.json(["list", "--session", SESSION])["checkpoints"].as_array().unwrap().len();
    assert_eq!(of_session, 3);
    let text = place.ok(["list", "--turns"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("prompt 2") && lines[1].contains("prompt 1") && lines[2].contains("Write"), "{text}");
    let first = place.json(["list", "--turns"])["checkpoints"][1]["id"].as_str().unwrap().to_owned();
    let shown = place.json(["show", &first]);
    assert_eq!(shown["turn_changes"][0]["path"], "b", "{shown}");
    let text = place.ok(["show", &first]);
    assert!(text.contains("changed for this prompt: 1 change"), "{text}");
    assert!(place.ok([""; 0]).contains("backtrail rewind --turn"), "the overview knows the way back");
}
