//! Handshakes of both eras, progress, cancellation and shutdown.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, Era};
use crate::place::Place;

#[test]
fn both_protocol_versions_are_served() {
    let place = Place::saved();
    for (asked, given) in [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2026-07-28", "2025-11-25")] {
        let mut client = Client::spawn(&place, Era::Handshake, &["mcp"]);
        let answer = client.initialize(asked);
        let result = &answer["result"];
        assert_eq!(result["protocolVersion"], given, "a handshake selects the older version: {answer}");
        assert_eq!(result["serverInfo"]["name"], "backtrail");
        assert_eq!(result["serverInfo"]["version"], env!("CARGO_PKG_VERSION"));
        assert!(result["capabilities"]["tools"].is_object() && result["capabilities"]["resources"].is_object());
        assert!(result["instructions"].as_str().unwrap().contains("checkpoint_save"));
        client.notify("notifications/initialized", json!({}));
        let listed = client.ask("tools/list", json!({}));
        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 15);
        assert!(listed["result"].get("resultType").is_none(), "the older version has no such field");
    }
    let mut client = Client::spawn(&place, Era::Inline, &["mcp"]);
    let discovered = client.ask("server/discover", json!({}));
    let versions = discovered["result"]["supportedVersions"].as_array().unwrap();
    for version in ["2026-07-28", "2025-11-25"] {
        assert!(versions.contains(&json!(version)), "{discovered}");
    }
    let listed = client.ask("tools/list", json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 15);
    assert_eq!(listed["result"]["resultType"], "complete");
    let answer = client.call("checkpoint_list", json!({}));
    assert_eq!(answer["result"]["structuredContent"]["checkpoints"].as_array().unwrap().len(), 1, "{answer}");
}

#[test]
fn invalid_messages_do_no_harm() {
    let place = Place::saved();
    let mut client = Client::start(&place);
    for line in ["", "garbage", "{", "[]", "42", "\"text\"", "null", "\u{feff}{}", &"x".repeat(100_000)] {
        client.send_line(line);
    }
    let answer = client.ask("no/such/method", json!({}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let answer = client.call("no_such_tool", json!({}));
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"]["message"].as_str().unwrap().contains("checkpoint_save"));
    client.ok("checkpoint_list", json!({}));
    assert_eq!(client.close().0, Some(0));
}

#[test]
fn progress_is_sent_if_requested() {
    let place = Place::saved();
    for number in 0..50 {
        place.write(format!("many/{number}"), number.to_string());
    }
    let mut client = Client::start(&place);
    let params = json!({ "name": "checkpoint_save", "arguments": {}, "_meta": { "progressToken": "p1" } });
    let answer = client.ask("tools/call", params);
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let progress: Vec<&Value> = client.notifications.iter().map(|message| &message["params"]).collect();
    assert!(!progress.is_empty());
    let numbers: Vec<f64> = progress.iter().map(|params| params["progress"].as_f64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "progress only grows: {numbers:?}");
    assert!(progress.iter().all(|params| params["progressToken"] == "p1"));
    let id = answer["result"]["structuredContent"]["checkpoint"]["short_id"].as_str().unwrap();
    let last = progress.last().unwrap()["message"].as_str().unwrap();
    assert!(last.contains(id), "the message of the library is passed on: {last}");

    client.notifications.clear();
    client.ok("workspace_status", json!({}));
    assert!(client.notifications.is_empty(), "progress was not requested");
}

#[test]
fn a_cancelled_call_does_nothing_and_the_next_one_works() {
    let place = Place::saved();
    place.write("a.txt", "changed\n");
    let mut client = Client::start(&place);
    let lock = place.hold_lock();
    let id = client.send("tools/call", json!({ "name": "checkpoint_save", "arguments": { "message": "never" } }));
    client.notify("notifications/cancelled", json!({ "requestId": id, "reason": "changed my mind" }));
    // Other requests are answered meanwhile.
    client.ok("checkpoint_list", json!({}));
    drop(lock);
    let saved = client.ok("checkpoint_save", json!({ "message": "afterwards" }));
    assert_eq!(saved["created"], true);
    let listed = client.ok("checkpoint_list", json!({}));
    let messages: Vec<&str> =
        listed["checkpoints"].as_array().unwrap().iter().map(|one| one["message"].as_str().unwrap()).collect();
    assert_eq!(messages, ["afterwards", "first"]);
    assert!(!client.received.contains("\"never\""), "a cancelled request is not answered");
}

#[test]
fn the_server_ends_when_stdin_closes() {
    let place = Place::saved();
    let client = Client::start(&place);
    let started = Instant::now();
    let (code, stderr) = client.close();
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(started.elapsed() < Duration::from_secs(20));
    // Also before the first message.
    assert_eq!(Client::spawn(&place, Era::Handshake, &["mcp"]).close().0, Some(0));
}

#[test]
fn the_server_ends_on_sigterm_and_sigint() {
    use rustix::process::{Pid, Signal, kill_process};
    let place = Place::saved();
    for (signal, expected) in [(Signal::TERM, 0), (Signal::INT, 130)] {
        let mut client = Client::start(&place);
        kill_process(Pid::from_raw(client.process() as i32).unwrap(), signal).unwrap();
        assert_eq!(client.wait().0, Some(expected), "{signal:?}");
    }
}

#[test]
fn an_answered_request_is_done_when_stdin_closes() {
    let place = Place::saved();
    place.write("a.txt", "changed\n");
    let mut client = Client::start(&place);
    let id = client.send("tools/call", json!({ "name": "checkpoint_save", "arguments": { "message": "last words" } }));
    let answer = client.answer(id);
    assert_eq!(answer["result"]["structuredContent"]["created"], true);
    assert_eq!(client.close().0, Some(0));
    assert_eq!(place.json(["show", "@"])["checkpoint"]["message"], "last words");
}

#[test]
fn the_workspace_is_fixed_at_the_start() {
    let place = Place::saved();
    let mut client = Client::start(&place);
    let status = client.ok("workspace_status", json!({}));
    assert_eq!(status["workspace"], place.path("ws").display().to_string());
    std::fs::rename(place.path("ws"), place.path("moved")).unwrap();
    std::fs::create_dir(place.path("ws")).unwrap();
    std::os::unix::fs::symlink(place.path("moved"), place.path("ws/link")).unwrap();
    let status = client.ok("workspace_status", json!({}));
    assert_eq!(status["workspace"], place.path("ws").display().to_string());
}

#[test]
fn a_protected_directory_is_neither_scanned_nor_saved() {
    let mut place = Place::new();
    let ws = place.path("ws").display().to_string();
    place.set("HOME", &ws);
    let mut client = Client::start_with(&place, Era::Handshake, &["mcp", "-w", "."]);
    assert_eq!(client.ok("checkpoint_list", json!({}))["checkpoints"], json!([]));
    for tool in ["checkpoint_save", "workspace_status", "checkpoint_diff"] {
        let (code, _, hint) = client.refused(tool, json!({}));
        assert_eq!(code, "protected_directory", "{tool}");
        assert!(hint.contains("inside"), "{hint}");
    }
}

#[test]
fn invalid_settings_stop_a_save_but_not_a_restore() {
    let place = Place::saved();
    let mut client = Client::start(&place);
    place.write("backtrail.toml", "[scan\n");
    let (code, message, _) = client.refused("checkpoint_save", json!({}));
    assert!(code == "settings" && message.contains("line 1"), "{message}");
    let planned = client.ok("restore_plan", json!({ "checkpoint": "@" }));
    let done = client.ok("restore_apply", json!({ "plan": planned["plan"] }));
    assert_eq!(done["applied"], true, "invalid settings do not stop a restore");
    client.ok("checkpoint_save", json!({}));
}
