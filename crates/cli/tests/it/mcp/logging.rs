//! The log of a server: it never disturbs the protocol, and has nothing of what a client says.

use std::fs;

use serde_json::json;

use super::client::Client;
use crate::place::Place;

#[test]
fn operations_of_a_server_are_recorded_without_the_clients_words() {
    let mut place = Place::saved();
    place.set("BACKTRAIL_LOG", "trace");
    let mut client = Client::start(&place);
    place.write("a.txt", "SECRET\n");
    client.ok("checkpoint_save", json!({ "message": "SECRET" }));
    client.refused("checkpoint_show", json!({ "checkpoint": "SECRET" }));
    let (code, stderr) = client.close();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("save{store="), "{stderr}");
    let log = fs::read_to_string(place.path("home/backtrail/log/backtrail.log")).unwrap();
    let last = log.lines().last().unwrap();
    assert!(last.contains(r#""command":"mcp","operation":"save""#), "{log}");
    assert!(!log.contains("SECRET") && !stderr.contains("SECRET"), "{log}{stderr}");
}

/// A client need not read the server's stderr: a full pipe must not stop the server.
#[test]
fn a_client_that_does_not_read_stderr_is_served() {
    let mut place = Place::saved();
    place.set("BACKTRAIL_LOG", "trace");
    let mut client = Client::start(&place);
    for _ in 0..150 {
        client.ok("workspace_status", json!({}));
    }
    let (code, stderr) = client.close();
    assert_eq!(code, Some(0));
    assert!(stderr.len() > 32 << 10, "the pipe was not full: {} bytes", stderr.len());
}
