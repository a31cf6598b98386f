//! Hooks report a file that checkpoints can't hold any more: on stderr, in the log, and once to the agent.

use std::{fs, io::Write, process::Stdio};

use serde_json::Value;

use crate::{
    dropped::{LARGE, before_growing, grown},
    hooks::recorded,
    place::Place,
};

/// Sends a payload to the hook of Claude Code. Returns its stdout and stderr.
fn hook(place: &Place, payload: &Value) -> (String, String) {
    let mut command = place.command(&place.path("ws"), ["hook", "claude"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0), "the hook must not fail");
    (String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
}

/// Sends a prompt. Returns whether the answer reports `grown.bin` to the agent.
fn is_reported(place: &Place, prompt: &str) -> bool {
    let mut payload = recorded(place, "claude")[1].clone();
    payload["prompt"] = prompt.into();
    payload["prompt_id"] = prompt.into();
    let (stdout, _) = hook(place, &payload);
    if stdout.is_empty() {
        return false;
    }
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    let text = answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    text.contains("\"grown.bin\" (too large)") && text.contains("can't be taken back")
}

fn before_tool(place: &Place) -> Value {
    let payloads = recorded(place, "claude");
    payloads.into_iter().find(|payload| payload["hook_event_name"] == "PreToolUse").unwrap()
}

#[test]
fn a_dropped_file_is_reported_on_stderr_and_in_the_log() {
    let place = before_growing();
    assert!(!is_reported(&place, "one"));
    place.write("grown.bin", LARGE);
    let (stdout, stderr) = hook(&place, &before_tool(&place));
    assert_eq!(stdout, "");
    assert_eq!(stderr, "backtrail: not protected any more: grown.bin (too large, 200 kB)\n");
    let log = fs::read_to_string(place.path("home/backtrail/log/hooks.jsonl")).unwrap();
    assert!(log.contains("not protected any more: grown.bin"), "{log}");
    assert_eq!(hook(&place, &before_tool(&place)).1, "", "reported a second time");
}

#[test]
fn the_next_prompt_reports_a_dropped_file_once() {
    let place = before_growing();
    assert!(!is_reported(&place, "one"));
    place.write("grown.bin", LARGE);
    hook(&place, &before_tool(&place));
    assert_eq!([is_reported(&place, "two"), is_reported(&place, "three")], [true, false]);
}

#[test]
fn a_file_that_the_prompt_itself_drops_is_reported_with_it() {
    let place = before_growing();
    assert!(!is_reported(&place, "one"));
    place.write("grown.bin", LARGE);
    assert_eq!([is_reported(&place, "two"), is_reported(&place, "three")], [true, false]);
}

#[test]
fn a_file_that_the_session_start_drops_is_reported_with_the_first_prompt() {
    let place = grown();
    let (_, stderr) = hook(&place, &recorded(&place, "claude")[0]);
    assert!(stderr.contains("not protected any more: grown.bin"), "{stderr}");
    assert_eq!([is_reported(&place, "one"), is_reported(&place, "two")], [true, false]);
}

#[test]
fn nothing_is_reported_if_tell_agent_is_false() {
    let place = before_growing();
    place.write("backtrail.toml", "[scan]\nmax_file_bytes = \"100KiB\"\n[checkpoints]\ntell_agent = false\n");
    assert!(!is_reported(&place, "one"));
    place.write("grown.bin", LARGE);
    assert!(!is_reported(&place, "two"));
}
