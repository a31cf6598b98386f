//! `wrap`: an agent without hooks, with checkpoints before it, at its quiet moments and after it. And `hook generic`.

use std::{fs, io::Write, process::Stdio};

use serde_json::{Value, json};

use crate::{
    hooks::{checkpoints, of_kind},
    place::Place,
};

/// Sends a payload to `hook generic`. Returns its stdout.
fn report(place: &Place, payload: &Value) -> String {
    let mut command = place.command(&place.path("ws"), ["hook", "generic"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0));
    String::from_utf8(done.stdout).unwrap()
}

/// The agent waits until its first change has a checkpoint. Then it makes another one and fails.
const AGENT: &str = r#"echo 1 > made; echo edited > k
while [ "$("$backtrail" list --kind step --json | grep -c '"made"')" = 0 ]; do sleep 0.2; done
echo 2 > later; echo "$BACKTRAIL_SESSION" > ../session; exit 7"#;

#[test]
fn an_agent_without_hooks_gets_checkpoints_and_is_taken_back_as_a_whole() {
    let mut place = Place::new();
    place.set("backtrail", env!("CARGO_BIN_EXE_backtrail"));
    place.write("k", "mine\n");
    let done = place.run(["wrap", "--", "sh", "-c", AGENT]);
    assert_eq!(done.code, 7, "{}", done.shown());
    let session = fs::read_to_string(place.path("session")).unwrap().trim().to_owned();
    assert!(done.stderr.contains(&format!("revert --session {session}")), "{}", done.stderr);
    let listed = checkpoints(&place);
    let facts: Vec<_> = listed.iter().map(|it| (it["kind"].as_str().unwrap(), it["files_changed"].clone())).collect();
    assert_eq!(facts, [("session", json!(["k"])), ("step", json!(["k", "made"])), ("step", json!(["later"]))]);
    for step in of_kind(&place, "step") {
        assert_eq!((&step["session"], &step["author"], &step["agent"]), (&json!(session), &Value::Null, &json!("sh")));
    }
    let reverted = place.run(["revert", "--session", &session]);
    assert!(reverted.code == 0 && reverted.stderr.contains("edits by hand included"), "{}", reverted.shown());
    assert_eq!(fs::read_to_string(place.path("ws/k")).unwrap(), "mine\n");
    assert!(!place.path("ws/made").exists() && !place.path("ws/later").exists());
}

#[test]
fn the_answer_of_wrap_names_the_checkpoints() {
    let place = Place::new();
    place.write("k", "1\n");
    let run = place.run(["--json", "wrap", "--", "sh", "-c", "echo out; echo 2 > k"]);
    let text = String::from_utf8(run.stdout.clone()).unwrap();
    let answer: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!((run.code, text.lines().next()), (0, Some("out")));
    assert_eq!((&answer["exit_code"], answer["checkpoints"].as_array().unwrap().len()), (&json!(0), 2));
    let missing = place.run(["wrap", "--", "no-such-agent"]);
    assert_eq!(missing.code, 127, "{}", missing.shown());
}

#[test]
fn any_program_can_report_its_events() {
    let place = Place::new();
    place.write(".gitignore", "*.log\n");
    place.write("a.log", "ignored\n");
    place.write("k", "1\n");
    let event = |event: &str, more: Value| {
        let mut payload = json!({ "event": event, "session": "s1", "directory": place.path("ws") });
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(report(&place, &payload), "", "{payload}");
    };
    event("session_start", json!({}));
    event("prompt", json!({ "prompt": "clean up", "id": "p1" }));
    event("prompt", json!({ "prompt": "clean up", "id": "p1" }));
    event("before_tool", json!({ "tool": "shell", "command": "rm a.log", "id": "c1" }));
    place.remove("a.log");
    event("after_tool", json!({ "tool": "shell", "command": "rm a.log", "id": "c1" }));
    event("before_tool", json!({ "paths": ["k"], "id": "c2" }));
    place.write("k", "2\n");
    event("after_tool", json!({ "paths": ["k"], "id": "c2" }));
    event("turn_end", json!({}));
    event("no such event", json!({}));
    let turns = of_kind(&place, "turn");
    assert_eq!(turns.len(), 1);
    assert_eq!((&turns[0]["agent"], &turns[0]["prompt"]), (&json!("generic"), &json!("clean up")));
    place.ok(["rewind", "--turn"]);
    assert_eq!(fs::read_to_string(place.path("ws/a.log")).unwrap(), "ignored\n");
    assert_eq!(fs::read_to_string(place.path("ws/k")).unwrap(), "1\n");
    let news = report(
        &place,
        &json!({ "event": "prompt", "session": "s1", "directory": place.path("ws"),
        "prompt": "more", "id": "p2" }),
    );
    assert!(news.contains("Read a file again before you rely on it") && news.contains("\"k\""), "{news}");
}
