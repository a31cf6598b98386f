//! Restores in the session of an agent: `rewind --turn`, `--conversation`, and the report to the agent.

use std::{
    fs,
    io::Write,
    path::PathBuf,
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::place::Place;

pub(crate) const SESSION: &str = "3242fa0a-dafd-4132-bb98-d25a8567ae3d";

/// Sends a payload to the hook of an agent. Returns the stdout of the hook.
pub(crate) fn hook(place: &Place, agent: &str, payload: &Value) -> String {
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

/// Sends a prompt to the hook of an agent, and appends a line to the transcript. Returns the stdout of the hook.
pub(crate) fn prompt(place: &Place, agent: &str, number: usize) -> String {
    let event = if agent == "gemini" { "BeforeAgent" } else { "UserPromptSubmit" };
    let payload = json!({ "session_id": SESSION, "hook_event_name": event, "cwd": place.path("ws"),
        "transcript_path": transcript(place, agent), "prompt": format!("prompt {number}"),
        "prompt_id": number.to_string(), "timestamp": format!("2026-11-15T06:28:{number:02}.000Z") });
    let answer = hook(place, agent, &payload);
    let path = transcript(place, agent);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let earlier = fs::read_to_string(&path).unwrap_or_default();
    fs::write(&path, format!("{earlier}{{\"sessionId\":\"{SESSION}\",\"said\":{number}}}\n")).unwrap();
    answer
}

#[test]
fn rewind_turn_restores_the_files_before_a_prompt() {
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

/// Regression: a prompt without changes was skipped, so that the work of the prompt before it was undone, even in
/// another session.
#[test]
fn a_prompt_without_changes_still_counts_as_the_last_prompt() {
    let place = Place::new();
    place.write("f", "before\n");
    let send = |session: &str, event: &str, more: &Value| {
        let mut payload = json!({ "session_id": session, "hook_event_name": event, "cwd": place.path("ws") });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        hook(&place, "claude", &payload);
    };
    send("one", "UserPromptSubmit", &json!({ "prompt": "work" }));
    place.write("f", "work\n");
    let call = json!({ "tool_name": "Write", "tool_input": { "file_path": place.path("ws/f") }, "tool_use_id": "t" });
    send("one", "PostToolUse", &call);
    send("two", "SessionStart", &json!({ "source": "startup" }));
    send("two", "UserPromptSubmit", &json!({ "prompt": "just explain f" }));
    let read = || fs::read_to_string(place.path("ws/f")).unwrap();
    for _ in 0..2 {
        let run = place.run(["rewind", "--turn"]);
        assert_eq!((run.code, read()), (0, "work\n".to_owned()));
        let shown = run.shown();
        assert!(shown.contains("nothing to do") && shown.contains("backtrail rewind --turn 2"), "{shown}");
    }
    assert_eq!(place.json(["rewind", "--turn"])["changes"], json!([]));
    place.ok(["rewind", "--turn", "2"]);
    assert_eq!(read(), "before\n");
    assert_eq!(place.run(["rewind", "--turn"]).code, 3, "there is no prompt before that");
}

#[test]
fn a_conversation_is_restored_into_a_new_session() {
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
        let count_transcripts = || fs::read_dir(transcript(&place, agent).parent().unwrap()).unwrap().count();
        assert_eq!(count_transcripts(), 1, "a dry run wrote something");

        let answer = place.json(["restore", id, "--conversation"]);
        let found = &answer["conversation"];
        let session = found["session"].as_str().unwrap();
        assert_ne!(session, SESSION);
        assert_eq!(found["command"], format!("{resume}{session}"));
        let copy = fs::read_to_string(found["file"].as_str().unwrap()).unwrap();
        let line = |number| format!("{{\"sessionId\":\"{session}\",\"said\":{number}}}\n");
        assert_eq!(copy, format!("{}{}", line(1), line(2)), "{agent}: the lines before the third prompt");
        assert_eq!(fs::read(transcript(&place, agent)).unwrap(), live, "the transcript of the old session changed");
        assert_eq!(fs::read_to_string(place.path("ws/a")).unwrap(), "1\n");

        let text = place.ok(["restore", id, "--conversation"]);
        assert!(text.contains(resume) && text.contains("prompt 3"), "{text}");
        assert_eq!(count_transcripts(), 3, "each restore starts a new session");
    }
}

#[test]
fn a_missing_conversation_is_reported() {
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

/// Regression: the files were restored although the conversation could not be written, and the error named neither the
/// safety checkpoint nor the way back.
#[test]
fn nothing_is_restored_if_the_conversation_cannot_be_written() {
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
        assert!(hint.starts_with("nothing was restored") && hint.ends_with("leave out --conversation"), "{hint}");
        assert_eq!(fs::read_to_string(place.path("ws/a")).unwrap(), "2\n", "{words:?}");
    }
    assert_eq!(place.json(["list", "--all"])["checkpoints"].as_array().unwrap().len(), count, "no safety checkpoint");
    place.ok(["restore", &turn]);
    assert_eq!(fs::read_to_string(place.path("ws/a")).unwrap(), "1\n");
}

#[test]
fn no_conversation_is_left_if_the_files_cannot_be_restored() {
    let place = Place::new();
    place.write("a", "1\n");
    (1..=2).for_each(|number| drop(prompt(&place, "claude", number)));
    place.write("a", "2\n");
    let count_transcripts = || fs::read_dir(transcript(&place, "claude").parent().unwrap()).unwrap().count();
    let turn = place.id("latest");
    let no_plan = "0".repeat(64);
    assert_eq!(place.run(["restore", &turn, "--conversation", "--plan", &no_plan]).code, 4);
    let held = place.hold_lock();
    assert_eq!(place.run(["--wait", "0", "rewind", "--turn", "--conversation"]).code, 7);
    drop(held);
    assert_eq!((count_transcripts(), fs::read_to_string(place.path("ws/a")).unwrap()), (1, "2\n".to_owned()));
    place.ok(["rewind", "--turn", "--conversation"]);
    assert_eq!((count_transcripts(), fs::read_to_string(place.path("ws/a")).unwrap()), (2, "1\n".to_owned()));
}

#[test]
fn a_step_is_restored_with_the_conversation_of_its_prompt() {
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
    assert_eq!(rewound["conversation"]["session"], Value::Null, "there is no conversation before the first prompt");
}

#[test]
fn a_session_that_still_runs_is_reported() {
    let place = Place::new();
    place.write("a", "1\n");
    // The hook takes its parent process, this test, for the agent.
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
fn the_next_prompt_reports_restored_files_once() {
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
        let report = &answer["hookSpecificOutput"];
        assert_eq!(report["hookEventName"], event);
        let text = report["additionalContext"].as_str().unwrap();
        assert!(text.contains("\"a\"") && text.contains("\".env\"") && !text.contains("SECRET"), "{text}");
        assert_eq!(prompt(&place, agent, 3), nothing, "reported a second time");

        place.write("a", "3\n");
        place.ok(["rewind", "--turn"]);
        place.write("backtrail.toml", "[checkpoints]\ntell_agent = false\n");
        assert_eq!(prompt(&place, agent, 4), nothing, "tell_agent is false");
    }
}

/// Regression: after the clock was set back, a restore seemed older than the last report to the agent.
#[test]
fn a_restore_is_reported_after_the_clock_was_set_back() {
    let session_start = |place: &Place| json!({ "session_id": SESSION, "hook_event_name": "SessionStart", "cwd": place.path("ws"), "source": "startup" });
    for has_no_prompt in [false, true] {
        let place = Place::new();
        place.write("a", "1\n");
        place.ok(["save", "--name", "good"]);
        match has_no_prompt {
            true => drop(hook(&place, "claude", &session_start(&place))),
            false => drop(prompt(&place, "claude", 1)),
        }
        // Moves the stored times ahead by years, as if the clock had been set back since.
        for file in fs::read_dir(place.path("home/backtrail/sessions")).unwrap().map(|file| file.unwrap().path()) {
            if file.extension().is_some_and(|extension| extension == "json") {
                let mut state: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
                (state["told"], state["heard"]) = (json!("2099-01-01T00:00:00Z"), json!("2099-01-01T00:00:00Z"));
                fs::write(file, state.to_string()).unwrap();
            }
        }
        place.write("a", "2\n");
        place.ok(["restore", "good"]);
        let report = prompt(&place, "claude", 2);
        assert!(report.contains("restored to checkpoint") && report.contains("\\\"a\\\""), "{has_no_prompt}: {report}");
        assert_eq!(prompt(&place, "claude", 3), "", "reported a second time");
    }
}

#[test]
fn a_report_that_came_too_late_is_repeated_with_the_next_prompt() {
    let mut place = Place::new();
    place.write("a", "1\n");
    prompt(&place, "claude", 1);
    place.write("a", "2\n");
    place.ok(["rewind", "--turn"]);
    place.set("BACKTRAIL_HOOK_MILLISECONDS", "300");
    let held = place.hold_lock();
    assert_eq!(prompt(&place, "claude", 2), "", "the hook did not wait for the lock");
    drop(held);
    let deadline = Instant::now() + Duration::from_secs(60);
    while place.json(["list", "--turns"])["checkpoints"].as_array().unwrap().len() < 2 {
        assert!(Instant::now() < deadline, "the worker took no checkpoint");
        std::thread::sleep(Duration::from_millis(50));
    }
    place.set("BACKTRAIL_HOOK_MILLISECONDS", "60000");
    assert!(prompt(&place, "claude", 3).contains("were restored"));
    assert_eq!(prompt(&place, "claude", 4), "", "reported a second time");
}

#[test]
fn the_report_names_only_paths_in_the_scope() {
    let place = Place::new();
    place.write("a", "1\n");
    place.write("b", "1\n");
    prompt(&place, "claude", 1);
    let first = place.id("@");
    place.write("a", "2\n");
    place.write("b", "2\n");
    prompt(&place, "claude", 2);
    place.ok(["restore", &first, "b"]);
    let report = prompt(&place, "claude", 3);
    assert!(report.contains("\\\"b\\\"") && !report.contains("\\\"a\\\""), "{report}");
    place.ok(["undo"]);
    let report = prompt(&place, "claude", 4);
    assert!(report.contains("\\\"b\\\"") && !report.contains("\\\"a\\\""), "{report}");
}

#[test]
fn a_restore_is_reported_after_its_checkpoints_were_pruned() {
    let place = Place::new();
    place.write("a", "1\n");
    prompt(&place, "claude", 1);
    let first = place.id("@");
    place.write("a", "2\n");
    let safety = place.json(["restore", &first])["safety"].as_str().unwrap().to_owned();
    place.ok(["delete", &safety]);
    place.ok(["prune"]);
    let report = prompt(&place, "claude", 2);
    assert!(report.contains("were restored") && report.contains("not listed"), "{report}");
}

#[test]
fn prompts_are_listed_and_shown_with_their_changes() {
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
    let text = place.ok(["list", "--turns", "--steps"]);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("prompt 2") && lines[1].contains("prompt 1") && lines[2].contains("Write"), "{text}");
    let first = place.json(["list", "--turns"])["checkpoints"][1]["id"].as_str().unwrap().to_owned();
    let shown = place.json(["show", &first]);
    assert_eq!(shown["turn_changes"][0]["path"], "b", "{shown}");
    let text = place.ok(["show", &first]);
    assert!(text.contains("the agent's work for this prompt: 1 file +1"), "{text}");
    let folded = place.ok(["list", "--turns"]);
    assert_eq!(folded.lines().count(), 2, "{folded}");
    assert!(folded.lines().nth(1).unwrap().ends_with("1 file +1"), "a prompt has the sums of its work: {folded}");
    let totals = &place.json(["list", "--turns"])["checkpoints"][1]["work_totals"];
    assert_eq!(*totals, json!({ "files": 1, "insertions": 1, "deletions": 0 }));
    assert!(place.ok([""; 0]).contains("backtrail rewind --turn"), "the overview names the command");
}

#[test]
fn the_work_for_a_prompt_leaves_out_edits_by_hand() {
    let place = Place::new();
    place.write("a", "1\n");
    prompt(&place, "claude", 1);
    let step = |event: &str, id: &str, line: &str| {
        let payload = json!({ "session_id": SESSION, "hook_event_name": event, "cwd": place.path("ws"),
            "tool_name": "Bash", "tool_input": { "command": line }, "tool_use_id": id });
        hook(&place, "claude", &payload);
    };
    step("PreToolUse", "1", "KEY=secret make b");
    place.write("b", "new\n");
    step("PostToolUse", "1", "KEY=secret make b");
    place.write("by-hand", "mine\n");
    step("PreToolUse", "2", "make c");
    place.write("c", "new\n");
    step("PostToolUse", "2", "make c");
    place.write("a", "later\n");
    prompt(&place, "claude", 2);
    let shown = place.json(["show", "turn:1"]);
    let paths = |shown: &Value, key: &str| -> Vec<String> {
        shown[key].as_array().unwrap().iter().map(|change| change["path"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(paths(&shown, "work"), ["b", "c"]);
    assert_eq!(paths(&shown, "turn_changes"), ["b", "by-hand", "c"]);
    assert_eq!(paths(&place.json(["show", "turn:2"]), "changes"), ["a"], "what changed before the prompt");
    let patch = place.ok(["show", "turn:1", "--patch"]);
    assert!(patch.contains("+++ b/b\n") && patch.contains("+++ b/c\n") && !patch.contains("by-hand"), "{patch}");
    let patch = place.json(["show", "turn:1", "c", "--patch"])["patch"].as_str().unwrap().to_owned();
    assert!(patch.contains("+++ b/c\n") && !patch.contains("+++ b/b\n"), "{patch}");
    let commands: Vec<Value> = place.json(["list", "--kind", "step"])["checkpoints"].as_array().unwrap().to_vec();
    assert_eq!(commands.last().unwrap()["command"], "KEY=*** make b");
    assert_eq!(place.json(["list", "--grep", "make c"])["checkpoints"].as_array().unwrap().len(), 2);
    assert!(!place.ok(["list", "--json"]).contains("secret"));
}

/// Sends the hooks of a call that writes a file, in a session of its own.
fn call_of(place: &Place, session: &str, path: &str) {
    let event = |name: &str| {
        json!({ "session_id": session, "hook_event_name": name, "cwd": place.path("ws"), "tool_name": "Write",
            "tool_input": { "file_path": place.path("ws").join(path) }, "tool_use_id": path })
    };
    hook(place, "claude", &event("PreToolUse"));
    place.write(path, format!("by {session}\n"));
    hook(place, "claude", &event("PostToolUse"));
}

fn prompt_of(place: &Place, session: &str, number: usize) {
    let payload = json!({ "session_id": session, "hook_event_name": "UserPromptSubmit", "cwd": place.path("ws"),
        "prompt": format!("prompt {number}"), "prompt_id": format!("{session} {number}") });
    hook(place, "claude", &payload);
}

/// Returns a workspace in which two sessions have worked, with an edit by hand before the second one.
fn place_of_two_sessions() -> Place {
    let place = Place::new();
    place.write("a", "1\n");
    prompt_of(&place, "one", 1);
    call_of(&place, "one", "one-1");
    prompt_of(&place, "one", 2);
    call_of(&place, "one", "one-2");
    place.write("by-hand", "mine\n");
    prompt_of(&place, "two", 1);
    call_of(&place, "two", "two-1");
    place
}

fn exists(place: &Place, names: &[&str]) -> Vec<bool> {
    names.iter().map(|name| place.path("ws").join(name).exists()).collect()
}

#[test]
fn rewind_counts_the_prompts_of_one_session() {
    let place = place_of_two_sessions();
    let run = place.run(["rewind", "--turn", "--session", "one"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    assert!(run.stderr.contains("1 file of the session two and 1 file edited by hand"), "{}", run.stderr);
    assert!(run.stderr.contains("backtrail revert turn:2 --session one"), "{}", run.stderr);
    assert_eq!(exists(&place, &["one-1", "one-2", "two-1", "by-hand"]), [true, false, false, false]);
    place.ok(["undo"]);
    place.ok(["rewind", "--session", "one"]);
    assert_eq!(exists(&place, &["a", "one-1", "one-2"]), [true, false, false], "to before its first prompt");
    place.ok(["undo"]);
    assert_eq!(place.run(["rewind", "--turn", "3", "--session", "one"]).code, 3);
    assert_eq!(place.run(["rewind", "--session", "none"]).code, 3);
    assert_eq!(place.run(["rewind", "2", "--session", "one"]).code, 2);
}

#[test]
fn rewind_takes_paths() {
    let place = place_of_two_sessions();
    let run = place.run(["rewind", "--turn", "--session", "one", "--", "one-2"]);
    assert_eq!(run.code, 0, "{}", run.shown());
    assert!(!run.stderr.contains("this takes along"), "the paths of others stay: {}", run.stderr);
    assert_eq!(exists(&place, &["one-1", "one-2", "two-1", "by-hand"]), [true, false, true, true]);
    assert_eq!(place.run(["rewind", "--turn", "--", "nowhere"]).code, 3);
    let plan = place.json(["rewind", "--turn", "--dry-run"])["plan"].as_str().unwrap().to_owned();
    assert_eq!(place.run(["rewind", "--turn", "--plan", &plan]).code, 0, "the hint of --dry-run works");
}

#[test]
fn rewind_asks_before_it_takes_along_the_work_of_others() {
    use std::io::Write;
    let place = place_of_two_sessions();
    let answer = |text: &str, words: &[&str]| {
        let (mut screen, terminal) = crate::terminal::terminal();
        let mut command = place.command(&place.path("ws"), words);
        command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap()).stderr(terminal);
        screen.write_all(text.as_bytes()).unwrap();
        let (shown, status) = crate::terminal::run_until_end(command, screen);
        assert!(status.success(), "{shown}");
        shown
    };
    let words = ["rewind", "--turn", "--session", "one"];
    let shown = answer("n\n", &words);
    assert!(shown.contains("go back anyway? (y/n)") && shown.contains("nothing was changed"), "{shown}");
    assert_eq!(exists(&place, &["one-2", "two-1"]), [true, true]);
    let shown = answer("", &[&words[..], &["--yes"]].concat());
    assert!(!shown.contains("(y/n)"), "{shown}");
    assert_eq!(exists(&place, &["one-2", "two-1"]), [false, false]);
    place.ok(["undo"]);
    assert!(answer("y\n", &words).contains("(y/n)"));
    assert_eq!(exists(&place, &["one-2", "two-1"]), [false, false]);
}

#[test]
fn rewind_says_that_the_repository_moved_and_can_move_it() {
    let place = Place::new();
    place.write("a", "1\n");
    let git = |words: &[&str]| {
        let who = ["-c", "user.name=x", "-c", "user.email=x@localhost"];
        place.git(&[&who[..], words].concat());
    };
    git(&["init", "-q", "-b", "main"]);
    git(&["add", "a"]);
    git(&["commit", "-q", "-m", "first"]);
    prompt(&place, "claude", 1);
    place.write("a", "2\n");
    git(&["commit", "-q", "-a", "-m", "second"]);
    prompt(&place, "claude", 2);
    let run = place.run(["rewind", "--turn", "2", "--dry-run"]);
    assert!(run.stderr.contains("your repository has moved since, from main at "), "{}", run.shown());
    assert!(run.stderr.contains("add --git"), "{}", run.stderr);
    let answer = place.json(["rewind", "--turn", "2", "--git"]);
    assert_eq!(answer["git"]["branch"], "main", "{answer}");
    assert_eq!(answer["checkpoint"], answer_of_at(&place), "where the workspace stands afterwards");
    assert_eq!(place.git(&["log", "--format=%s"]).trim(), "first");
}

fn answer_of_at(place: &Place) -> Value {
    place.json(["show", "@"])["checkpoint"]["id"].clone()
}

#[test]
fn list_and_history_name_prompt_tool_and_command() {
    let place = Place::new();
    place.write("a", "1\n");
    prompt(&place, "claude", 1);
    let event = |name: &str| {
        json!({ "session_id": SESSION, "hook_event_name": name, "cwd": place.path("ws"), "tool_name": "Bash",
            "tool_input": { "command": "sed -i s/1/2/ a" }, "tool_use_id": "t" })
    };
    hook(&place, "claude", &event("PreToolUse"));
    place.write("a", "2\n");
    hook(&place, "claude", &event("PostToolUse"));
    for words in [&["list"][..], &["history", "a"]] {
        let text = place.ok(words.iter().copied());
        assert!(text.contains("1: Bash") && text.contains("`sed -i s/1/2/ a`"), "{words:?}: {text}");
    }
}
