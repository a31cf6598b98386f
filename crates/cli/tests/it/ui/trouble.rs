//! Many clients, and slow ones.

use std::io::{Read, Write};

use rustix::process::Signal;
use serde_json::json;

use super::server::Server;
use crate::place::Place;

#[test]
fn fifty_clients_at_once_are_served() {
    let place = Place::saved();
    let server = Server::start(&place, &[]);
    let paths = ["/api/checkpoints", "/api/status", "/api/diff?from=@", "/api/history?path=a.txt", "/api/turns"];
    std::thread::scope(|scope| {
        for client in 0..50 {
            let server = &server;
            scope.spawn(move || {
                let answer = server.get(paths[client % paths.len()]);
                assert_eq!(answer.status, 200, "{}", answer.text());
            });
        }
    });
    assert_eq!(server.end(Signal::TERM), Some(0));
}

#[test]
fn slow_clients_block_nobody() {
    let place = Place::saved();
    let server = Server::start(&place, &[]);
    let head = format!(
        "POST /api/save HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\nContent-Type: application/json\r\n",
        server.address,
        server.bearer()
    );
    // Some send half of their headers, some half of a body, and some never read their answer.
    let mut slow = Vec::new();
    for client in 0..60 {
        let mut stream = server.connect();
        let sent = match client % 3 {
            0 => "GET /api/check".to_owned(),
            1 => format!("{head}Content-Length: 1000\r\n\r\n{{"),
            _ => format!(
                "GET /api/events HTTP/1.1\r\nHost: {}\r\nAuthorization: {}\r\n\r\n",
                server.address,
                server.bearer()
            ),
        };
        stream.write_all(sent.as_bytes()).unwrap();
        slow.push(stream);
    }
    for number in 0..10 {
        place.write("a.txt", format!("{number}\n"));
        assert_eq!(server.write("/api/save", &json!({}))["created"], true);
    }
    drop(slow);
    assert_eq!(server.end(Signal::TERM), Some(0));
}

#[test]
fn the_stream_of_events_brings_what_others_do() {
    let place = Place::saved();
    let server = Server::start(&place, &[]);
    let mut stream = server.connect();
    let request =
        format!("GET /api/events HTTP/1.1\r\nHost: {}\r\nCookie: {}\r\n\r\n", server.address, server.cookie());
    stream.write_all(request.as_bytes()).unwrap();
    // The first sign of life says that the client listens.
    let mut seen = String::new();
    read_until(&mut stream, &mut seen, ": heartbeat");
    assert!(seen.to_lowercase().contains("content-type: text/event-stream"), "{seen}");
    place.write("a.txt", "by the command line\n");
    place.ok(["save", "seen by the page"]);
    read_until(&mut stream, &mut seen, "seen by the page");
    let line = seen.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let event: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!(event["event"], "checkpoint_created", "events of before are not sent again");
    assert_eq!(server.end(Signal::TERM), Some(0), "an open stream does not keep the server");
}

fn read_until(stream: &mut std::net::TcpStream, seen: &mut String, wanted: &str) {
    let mut piece = [0; 4096];
    while !seen.contains(wanted) {
        let length = stream.read(&mut piece).unwrap();
        assert!(length > 0, "the stream ended before {wanted:?}: {seen}");
        seen.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
}
