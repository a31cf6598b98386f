//! `hook` with recorded and broken payloads of every agent. The agent is never disturbed, and every change can be
//! undone.

use std::{
    collections::BTreeSet,
    fs,
    io::Write,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::place::Place;

/// The name of the agent on the command line, and the payloads of one session, one per line.
const RECORDED: &[(&str, &str)] = &[
    ("claude", include_str!("../payloads/claude.jsonl")),
    ("codex", include_str!("../payloads/codex.jsonl")),
    ("gemini", include_str!("../payloads/gemini.jsonl")),
    ("qwen", include_str!("../payloads/qwen.jsonl")),
    ("cursor", include_str!("../payloads/cursor.jsonl")),
    ("copilot", include_str!("../payloads/copilot.jsonl")),
    ("copilot", include_str!("../payloads/copilot-own.jsonl")),
    ("cline", include_str!("../payloads/cline.jsonl")),
    ("cline", include_str!("../payloads/cline-core.jsonl")),
    ("opencode", include_str!("../payloads/opencode.jsonl")),
];

/// Returns the recorded payloads of an agent.
pub(crate) fn recorded(place: &Place, agent: &str) -> Vec<Value> {
    let (_, text) = RECORDED.iter().find(|(known, _)| *known == agent).unwrap();
    payloads(place, text)
}

/// Parses payloads. The workspace replaces their project, and the home of the place replaces their home.
pub(crate) fn payloads(place: &Place, text: &str) -> Vec<Value> {
    let moved = text.replace("/home/dev/project", place.path("ws").to_str().unwrap());
    let moved = moved.replace("/home/dev", place.path("home").to_str().unwrap());
    moved.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Sends a payload to the hook of an agent. The hook must succeed and print an empty answer, whatever the payload is.
fn feed(place: &Place, agent: &str, payload: &[u8]) {
    let mut command = place.command(&place.path("ws"), ["hook", agent]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The hook may have ended without reading the payload.
    drop(child.stdin.take().unwrap().write_all(payload));
    let done = child.wait_with_output().unwrap();
    let stdout = String::from_utf8(done.stdout).unwrap();
    let shown = String::from_utf8_lossy(&payload[..payload.len().min(300)]).into_owned();
    assert_eq!(done.status.code(), Some(0), "{agent}: {shown}");
    let expected = if ["gemini", "cursor", "cline"].contains(&agent) { "{}\n" } else { "" };
    assert_eq!(stdout, expected, "{agent}: {shown}");
}

pub(crate) fn hook(place: &Place, agent: &str, payload: &Value) {
    feed(place, agent, payload.to_string().as_bytes());
}

/// Returns the checkpoints, oldest first.
pub(crate) fn checkpoints(place: &Place) -> Vec<Value> {
    let mut listed = place.json(["list"])["checkpoints"].as_array().unwrap().clone();
    listed.reverse();
    listed
}

pub(crate) fn of_kind(place: &Place, kind: &str) -> Vec<Value> {
    checkpoints(place).into_iter().filter(|checkpoint| checkpoint["kind"] == kind).collect()
}

/// Returns whether the event comes before a tool call.
fn is_before_tool(payload: &Value) -> bool {
    let text = payload.to_string();
    let is_done = ["tool_response", "tool_result", "toolResult", "tool_output", "postToolUse"]
        .iter()
        .any(|key| text.contains(key));
    let names = ["PreToolUse", "BeforeTool", "preToolUse", "\"tool_call\"", "toolName"];
    names.iter().any(|name| text.contains(name)) && !is_done
}

#[test]
fn the_session_of_every_agent_is_saved() {
    for (agent, text) in RECORDED {
        let place = Place::new();
        place.write("k", "1\n");
        let payloads = payloads(&place, text);
        let mut tools = 0;
        for payload in &payloads {
            let is_before = is_before_tool(payload);
            if is_before {
                tools += 1;
                place.write(format!("before-{tools}"), "edited by hand\n");
            }
            hook(&place, agent, payload);
            if is_before {
                place.write("hello.txt", format!("written by tool {tools}\n"));
            }
        }
        assert!(tools > 0, "{agent}");
        let listed = checkpoints(&place);
        let about = || {
            format!(
                "{agent}: {:#?}",
                listed.iter().map(|it| (&it["kind"], &it["tool"], &it["files_changed"])).collect::<Vec<_>>()
            )
        };
        let values_of = |key: &str| listed.iter().map(|it| it[key].to_string()).collect::<BTreeSet<_>>();
        assert_eq!(values_of("agent"), BTreeSet::from([json!(agent).to_string()]));
        assert_eq!(values_of("session").len(), 1, "{}", about());
        let turns = of_kind(&place, "turn");
        // The command line of Cline does not tell when a session starts.
        let starts = text.contains("\"agent_start\"") || !of_kind(&place, "session").is_empty();
        assert!(starts && !turns.is_empty(), "{}", about());
        for (number, turn) in turns.iter().enumerate() {
            assert_eq!(turn["turn"], json!(number + 1));
            assert!(turn["prompt"].as_str().is_some_and(|prompt| text.contains(prompt)), "{}", about());
        }
        let steps = of_kind(&place, "step");
        for number in 1..=tools {
            let edit = format!("before-{number}");
            let before = steps.iter().find(|step| step["files_changed"].to_string().contains(&edit));
            assert!(before.is_some_and(|step| step["tool"].is_string() && step["turn"].is_u64()), "{}", about());
        }
        let after = steps.iter().filter(|step| step["files_changed"].to_string().contains("hello.txt"));
        assert_eq!(after.count(), tools, "{}", about());
        let first = turns[0]["id"].as_str().unwrap().to_owned();
        place.ok(["restore", &first]);
        assert_eq!(fs::read_dir(place.path("ws")).unwrap().count(), 1, "{agent}");
    }
}

#[test]
fn truncated_and_malformed_payloads_do_no_harm() {
    for (agent, text) in RECORDED {
        let place = Place::new();
        place.write("k", "1\n");
        for payload in payloads(&place, text) {
            let text = payload.to_string();
            for part in [1, text.len() / 3, text.len() / 2, text.len() - 1] {
                feed(&place, agent, &text.as_bytes()[..part]);
            }
        }
        assert_eq!(checkpoints(&place).len(), 0, "{agent}: a truncated payload got a checkpoint");
        let log = fs::read_to_string(place.path("home/backtrail/log/hooks.jsonl")).unwrap();
        assert!(log.contains("can't be understood"), "{log}");
        // A complete payload with one unexpected value.
        let Some(payload) = payloads(&place, text).into_iter().find(is_before_tool) else { panic!("{agent}") };
        for key in payload.as_object().unwrap().keys() {
            for other in [json!(null), json!(7), json!([]), json!({ "a": [1] }), json!("\u{0}\n../..")] {
                let mut malformed = payload.clone();
                malformed[key] = other;
                hook(&place, agent, &malformed);
            }
        }
        place.ok(["verify"]);
        assert_eq!(fs::read_dir(place.path("ws")).unwrap().count(), 1, "{agent}");
    }
}

#[test]
fn unknown_arguments_do_not_stop_a_prompt() {
    let place = Place::new();
    place.write("k", "1\n");
    let payload = recorded(&place, "claude")[1].to_string();
    for words in [
        &["hook"][..],
        &["hook", "no-such-agent"],
        &["hook", "--x"],
        &["hook", "-w"],
        &["--json", "hook", "--", "-"],
        &["hook", "../../x"],
    ] {
        let mut command = place.command(&place.path("ws"), words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdin.take().unwrap().write_all(payload.as_bytes()));
        let done = child.wait_with_output().unwrap();
        assert_eq!((done.status.code(), done.stdout.len()), (Some(0), 0), "{words:?}");
    }
    assert!(checkpoints(&place).is_empty());
    let mut newer = place.command(&place.path("ws"), ["hook", "claude", "--option-of-a-newer-version", "x"]);
    let mut child = newer.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(checkpoints(&place).len(), 1);
}

#[test]
fn a_duplicate_event_is_saved_once() {
    let place = Place::new();
    place.write("k", "1\n");
    let events = recorded(&place, "claude");
    let (start, prompt, before) = (&events[0], &events[1], &events[2]);
    for _ in 0..2 {
        hook(&place, "claude", start);
    }
    for _ in 0..2 {
        hook(&place, "claude", prompt);
    }
    place.write("k", "2\n");
    hook(&place, "claude", before);
    place.write("k", "3\n");
    hook(&place, "claude", before);
    let kinds: Vec<_> = checkpoints(&place).iter().map(|it| it["kind"].as_str().unwrap().to_owned()).collect();
    assert_eq!(kinds, ["session", "turn", "step"]);
    let mut again = prompt.clone();
    again["prompt_id"] = json!("another");
    hook(&place, "claude", &again);
    assert_eq!(of_kind(&place, "turn").iter().map(|it| it["turn"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2]);
}

#[test]
fn concurrent_hooks_are_all_counted() {
    let place = Place::new();
    place.write("k", "1\n");
    let prompt = &recorded(&place, "claude")[1];
    std::thread::scope(|scope| {
        for number in 0..6 {
            let (place, mut prompt) = (&place, prompt.clone());
            prompt["prompt_id"] = json!(number.to_string());
            scope.spawn(move || hook(place, "claude", &prompt));
        }
    });
    let turns: BTreeSet<_> = of_kind(&place, "turn").iter().map(|it| it["turn"].as_u64().unwrap()).collect();
    assert_eq!(turns, (1..=6).collect());
}

#[test]
fn a_session_keeps_the_workspace_that_it_began_in() {
    let place = Place::new();
    place.write("k", "1\n");
    fs::create_dir_all(place.path("elsewhere/.git")).unwrap();
    let events = recorded(&place, "claude");
    hook(&place, "claude", &events[0]);
    place.write("k", "2\n");
    let mut moved = events[2].clone();
    moved["cwd"] = json!(place.path("elsewhere"));
    hook(&place, "claude", &moved);
    assert_eq!(of_kind(&place, "step").len(), 1);
    let workspaces = place.json(["workspaces"])["workspaces"].as_array().unwrap().len();
    assert_eq!(workspaces, 1, "the other directory became a workspace");
    let mut gone = events[2].clone();
    (gone["session_id"], gone["cwd"]) = (json!("another"), json!(place.path("not-there")));
    hook(&place, "claude", &gone);
    assert_eq!(checkpoints(&place).len(), 2);
}

/// Regression: nothing was captured after the move, and nothing was reported.
#[test]
fn a_workspace_that_is_moved_during_a_session_is_found_again() {
    let place = Place::new();
    place.write("k", "1\n");
    let events = recorded(&place, "claude");
    hook(&place, "claude", &events[0]);
    hook(&place, "claude", &events[1]);
    fs::rename(place.path("ws"), place.path("moved")).unwrap();
    fs::write(place.path("moved/k"), "2\n").unwrap();
    let mut after = events[2].clone();
    after["cwd"] = json!(place.path("moved"));
    let stderr = feed_in(&place, "moved", &after);
    assert_eq!(stderr, "");
    fs::write(place.path("moved/k"), "3\n").unwrap();
    let mut prompt = events[1].clone();
    (prompt["cwd"], prompt["prompt"]) = (json!(place.path("moved")), json!("and now this"));
    prompt["prompt_id"] = json!("another");
    feed_in(&place, "moved", &prompt);
    let listed = place.run_in(&place.path("moved"), ["list", "--json"]).json();
    let listed = listed["checkpoints"].as_array().unwrap();
    let kinds: Vec<&str> = listed.iter().rev().map(|found| found["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["session", "turn", "step", "turn"], "{listed:#?}");
    assert_eq!(listed[0]["turn"], 2, "the count of prompts goes on");
    let workspaces = place.run_in(&place.path("moved"), ["workspaces", "--json"]).json();
    assert_eq!(workspaces["workspaces"].as_array().unwrap().len(), 1, "the moved workspace is the same one");
}

/// Sends a payload to a hook that runs in a directory beside the workspace. Returns its stderr.
pub(crate) fn feed_in(place: &Place, directory: &str, payload: &Value) -> String {
    let mut command = place.command(&place.path(directory), ["hook", "claude"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    String::from_utf8(done.stderr).unwrap()
}

#[test]
fn subagents_belong_to_the_session_that_started_them() {
    let place = Place::new();
    place.write("k", "1\n");
    let events = recorded(&place, "cursor");
    let top = events[0]["conversation_id"].clone();
    hook(&place, "cursor", &events[1]);
    let start = json!({ "conversation_id": top, "cursor_version": "2.6", "workspace_roots": [place.path("ws")],
        "hook_event_name": "subagentStart", "subagent_id": "child", "parent_conversation_id": top });
    hook(&place, "cursor", &start);
    place.write("k", "2\n");
    let mut tool = events[2].clone();
    (tool["conversation_id"], tool["tool_use_id"]) = (json!("child"), json!("x"));
    hook(&place, "cursor", &tool);
    let step = &of_kind(&place, "step")[0];
    assert_eq!((&step["session"], &step["turn"]), (&top, &json!(1)));

    let events = recorded(&place, "claude");
    hook(&place, "claude", &events[1]);
    place.write("k", "3\n");
    let mut inner = events[2].clone();
    inner["agent_id"] = json!("sub-1");
    hook(&place, "claude", &inner);
    let step = of_kind(&place, "step").pop().unwrap();
    assert_eq!((&step["session"], &step["metadata"]["subagent"]), (&events[1]["session_id"], &json!("sub-1")));
    assert_eq!(step["metadata"]["tool_use_id"], "toolu_1");
}

#[test]
fn every_n_steps_sets_the_number_of_steps_between_checkpoints() {
    let place = Place::new();
    place.write("backtrail.toml", "[checkpoints]\nevery_n_steps = 3\n");
    place.write("k", "0\n");
    let events = recorded(&place, "claude");
    hook(&place, "claude", &events[1]);
    for number in 1..=7 {
        place.write("k", format!("{number}\n"));
        for event in [&events[2], &events[3]] {
            let mut event = event.clone();
            (event["tool_use_id"], event["tool_name"], event["tool_input"]) =
                (json!(format!("t{number}")), json!("Bash"), json!({}));
            hook(&place, "claude", &event);
        }
    }
    assert_eq!(of_kind(&place, "step").iter().map(|it| it["step"].as_u64().unwrap()).collect::<Vec<_>>(), [3, 6]);
}

#[test]
fn tools_that_only_read_take_no_checkpoint() {
    let place = Place::new();
    place.write("k", "1\n");
    let mut read = recorded(&place, "claude")[2].clone();
    read["tool_name"] = json!("Read");
    hook(&place, "claude", &read);
    assert!(checkpoints(&place).is_empty() && !place.path("home/backtrail/sessions").exists());
}

#[test]
fn ignored_files_that_a_tool_names_are_captured_first() {
    let place = Place::new();
    place.write(".gitignore", "private/\n");
    place.write("private/notes", "the user's own\n");
    place.write("private/my secret", "another\n");
    place.write("private/other", "1\n");
    let events = recorded(&place, "claude");
    hook(&place, "claude", &events[1]);
    let mut shell = events[2].clone();
    (shell["tool_name"], shell["tool_input"]) =
        (json!("Bash"), json!({ "command": "cd private; rm -f private/notes private 'private/my secret'" }));
    hook(&place, "claude", &shell);
    place.remove("private/notes");
    place.remove("private/my secret");
    let step = of_kind(&place, "step").pop().unwrap()["id"].as_str().unwrap().to_owned();
    place.ok(["restore", &step]);
    assert_eq!(fs::read_to_string(place.path("ws/private/notes")).unwrap(), "the user's own\n");
    assert_eq!(fs::read_to_string(place.path("ws/private/my secret")).unwrap(), "another\n");
    assert!(place.run(["cat", &step, "private/other"]).code != 0, "a directory that was named was captured");
}

#[test]
fn the_conversation_is_attached_to_every_prompt() {
    let place = Place::new();
    place.write("k", "1\n");
    let prompt = &recorded(&place, "claude")[1];
    let transcript = Path::new(prompt["transcript_path"].as_str().unwrap()).to_owned();
    hook(&place, "claude", prompt);
    fs::create_dir_all(transcript.parent().unwrap()).unwrap();
    fs::write(&transcript, "{\"n\":1}\n{\"n\":2}\n{\"cut off").unwrap();
    let mut second = prompt.clone();
    (second["prompt_id"], second["prompt"]) = (json!("2"), json!("more"));
    hook(&place, "claude", &second);
    let turns = of_kind(&place, "turn");
    assert_eq!(turns[0]["attachments"], json!([]), "there was no file yet");
    assert_eq!(turns[1]["attachments"], json!([{ "name": "conversation", "bytes": 16 }]));
    let id = turns[1]["id"].as_str().unwrap();
    assert_eq!(place.ok(["cat", id, "--attachment", "conversation"]), "{\"n\":1}\n{\"n\":2}\n");
}

/// Regression: the conversation was dropped without a report.
#[test]
fn a_conversation_that_cannot_be_attached_is_reported() {
    let place = Place::new();
    place.write("k", "1\n");
    let prompt = &recorded(&place, "claude")[1];
    let transcript = Path::new(prompt["transcript_path"].as_str().unwrap()).to_owned();
    let agents_check = || {
        let answer = place.json(["doctor"]);
        let checks = answer["checks"].as_array().unwrap();
        let agents = checks.iter().find(|check| check["name"] == "agents").unwrap();
        agents["detail"].as_str().unwrap().to_owned()
    };
    hook(&place, "claude", prompt);
    assert!(!agents_check().contains("not saved"), "there was no file yet: {}", agents_check());

    fs::create_dir_all(&transcript).unwrap();
    let mut next = prompt.clone();
    (next["prompt_id"], next["prompt"]) = (json!("2"), json!("a directory"));
    hook(&place, "claude", &next);
    assert!(agents_check().contains("it is not a file"), "{}", agents_check());

    fs::remove_dir(&transcript).unwrap();
    fs::File::create(&transcript).unwrap().set_len((512 << 20) + 1).unwrap();
    (next["prompt_id"], next["prompt"]) = (json!("3"), json!("a large file"));
    hook(&place, "claude", &next);
    assert!(agents_check().contains("has more than 512 MiB"), "{}", agents_check());
    assert_eq!(of_kind(&place, "turn").len(), 3, "the checkpoints are taken anyway");
}

#[test]
fn a_hook_stops_waiting_and_its_worker_goes_on() {
    let mut place = Place::saved();
    place.set("BACKTRAIL_HOOK_MILLISECONDS", "300");
    place.write("k", "1\n");
    let events = recorded(&place, "claude");
    let held = place.hold_lock();
    let started = Instant::now();
    hook(&place, "claude", &events[1]);
    assert!(started.elapsed() < Duration::from_secs(20), "the hook waited for the lock");
    let doctor = place.json(["doctor"]);
    let agents = doctor["checks"].as_array().unwrap().iter().find(|check| check["name"] == "agents").unwrap();
    assert_eq!(agents["ok"], false, "{agents}");
    assert!(agents["detail"].as_str().unwrap().contains("not protected yet"), "{agents}");
    assert_eq!(of_kind(&place, "turn").len(), 0);
    drop(held);
    let deadline = Instant::now() + Duration::from_secs(60);
    while of_kind(&place, "turn").is_empty() {
        assert!(Instant::now() < deadline, "the worker took no checkpoint");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_payload_is_handled_although_stdin_stays_open() {
    let place = Place::saved();
    let mut command = place.command(&place.path("ws"), ["hook", "claude"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(recorded(&place, "claude")[1].to_string().as_bytes()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    drop(stdin);
    let deadline = Instant::now() + Duration::from_secs(60);
    while of_kind(&place, "turn").is_empty() {
        assert!(Instant::now() < deadline, "no checkpoint was taken");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn break_user_settings(place: &Place) {
    fs::create_dir_all(place.path("home/.config/backtrail")).unwrap();
    fs::write(place.path("home/.config/backtrail/config.toml"), "[scan\n").unwrap();
}

/// Sends a payload to the hook of Claude Code, which must print nothing on stdout. Returns its stderr.
pub(crate) fn stderr_of(place: &Place, payload: &Value) -> String {
    let mut command = place.command(&place.path("ws"), ["hook", "claude"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), done.stdout.len()), (Some(0), 0));
    String::from_utf8(done.stderr).unwrap()
}

/// Regression: invalid settings in the workspace, for example written by an agent, stopped all checkpoints.
#[test]
fn invalid_workspace_settings_do_not_stop_checkpoints() {
    let place = Place::new();
    place.write("a", "0\n");
    place.write("backtrail.toml", "[scan");
    let mut early = recorded(&place, "claude")[1].clone();
    early["session_id"] = "an earlier session".into();
    let stderr = stderr_of(&place, &early);
    assert!(
        stderr.contains("not protected") && stderr.contains("backtrail.toml: line 1"),
        "no store is created: {stderr}"
    );
    place.remove("backtrail.toml");
    place.ok(["save", "one"]);
    place.write("backtrail.toml", "[scan");
    place.write("a", "1\n");
    let stderr = stderr_of(&place, &recorded(&place, "claude")[1]);
    assert!(stderr.contains("backtrail.toml: line 1") && stderr.contains("the file is ignored"), "{stderr}");
    assert!(!stderr.contains("not protected"), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "the warning is printed once: {stderr}");
    assert_eq!(of_kind(&place, "turn").len(), 1);
    place.write("a", "2\n");
    let call = json!({ "session_id": recorded(&place, "claude")[1]["session_id"], "cwd": place.path("ws"),
        "hook_event_name": "PostToolUse", "tool_name": "Write", "tool_input": { "file_path": place.path("ws/a") },
        "tool_use_id": "t" });
    assert_eq!(stderr_of(&place, &call), "", "the warning does not come with each call");
    assert_eq!(of_kind(&place, "step").len(), 1);
    let doctor = place.ok(["doctor"]);
    assert!(doctor.contains("the file is ignored") && !doctor.contains("not protected"), "{doctor}");
}

/// Regression: a prompt that was cut within an emoji got no checkpoint, because the escape of a lone surrogate is not
/// valid JSON.
#[test]
fn a_payload_with_a_lone_surrogate_gets_a_checkpoint() {
    let place = Place::new();
    place.write("a", "1\n");
    let payload = recorded(&place, "claude")[1].to_string();
    assert!(payload.contains(r#""prompt":""#), "{payload}");
    feed(&place, "claude", payload.replacen(r#""prompt":""#, r#""prompt":"cut \ud83d, C:\\ud83d, "#, 1).as_bytes());
    let turns = of_kind(&place, "turn");
    assert_eq!(turns.len(), 1);
    let prompt = turns[0]["prompt"].as_str().unwrap();
    assert!(prompt.starts_with("cut \u{fffd}, C:\\ud83d, "), "{prompt}");
    let session = recorded(&place, "claude")[1]["session_id"].as_str().unwrap().to_owned();
    let call = format!(
        r#"{{"session_id":"{session}","cwd":{:?},"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{{"command":"echo \ude00"}},"tool_use_id":"t"}}"#,
        place.path("ws")
    );
    place.write("a", "2\n");
    feed(&place, "claude", call.as_bytes());
    assert_eq!(of_kind(&place, "step").len(), 1);
}

#[test]
fn a_hook_without_a_checkpoint_reports_it() {
    let place = Place::new();
    break_user_settings(&place);
    let stderr = stderr_of(&place, &recorded(&place, "claude")[1]);
    assert!(stderr.contains("not protected") && stderr.contains("config.toml"), "{stderr}");

    let mut homeless = std::process::Command::new(env!("CARGO_BIN_EXE_backtrail"));
    homeless.args(["hook", "claude"]).env_clear().current_dir(place.path("ws"));
    homeless.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = homeless.spawn().unwrap();
    child.stdin.take().unwrap().write_all(recorded(&place, "claude")[1].to_string().as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), done.stdout.len()), (Some(0), 0));
    let stderr = String::from_utf8(done.stderr).unwrap();
    assert!(stderr.contains("not protected") && stderr.contains("HOME"), "{stderr}");
}

#[test]
fn doctor_reports_failed_hooks() {
    let place = Place::new();
    break_user_settings(&place);
    hook(&place, "claude", &recorded(&place, "claude")[1]);
    fs::remove_file(place.path("home/.config/backtrail/config.toml")).unwrap();
    assert!(checkpoints(&place).is_empty());
    let text = place.ok(["doctor"]);
    assert!(text.contains("config.toml: line 1"), "{text}");
    hook(&place, "claude", &recorded(&place, "claude")[2]);
    assert_eq!(checkpoints(&place).len(), 1, "hooks work again once the file is fixed");
}
