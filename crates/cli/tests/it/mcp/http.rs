//! `mcp --http`: requests that are served, and requests that are refused.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::place::Place;

struct Server {
    child: Child,
    address: SocketAddr,
    token: Option<String>,
}

impl Server {
    fn start(place: &Place, words: &[&str]) -> Self {
        let words = ["mcp", "--http"].iter().chain(words);
        let mut command = place.command(&place.path("ws"), words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let first = stderr.next().expect("the server prints its address");
        let address = first.strip_prefix("serving at http://").and_then(|rest| rest.strip_suffix("/mcp"));
        let address = address.unwrap_or_else(|| panic!("{first}")).parse().unwrap();
        let second = stderr.next().expect("the server prints its token");
        let token = second.strip_prefix("clients must send: Authorization: Bearer ").map(str::to_owned);
        Self { child, address, token }
    }

    /// Sends a request as it is. Returns status and body of the answer.
    fn send(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn post(&self, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        self.send(&request("POST", "/mcp", headers, body))
    }

    /// Returns the headers of an authorized client.
    fn authorized_headers(&self) -> Vec<(String, String)> {
        let bearer = format!("Bearer {}", self.token.as_deref().unwrap_or_default());
        let headers = [("Host", self.address.to_string()), ("Authorization", bearer)];
        headers.map(|(name, value)| (name.to_owned(), value)).to_vec()
    }

    fn post_authorized(&self, more: &[(&str, &str)], body: &Value) -> (u16, String) {
        let authorized_headers = self.authorized_headers();
        let authorized_headers = authorized_headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        self.post(&authorized_headers.chain(more.iter().copied()).collect::<Vec<_>>(), &body.to_string())
    }

    fn end(mut self) -> Option<i32> {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    format!(
        "{method} {path} HTTP/1.1\r\n{headers}Content-Type: application/json\r\nConnection: close\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn inline(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "http-client", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// Returns the message in a body, which may be a chunked event stream.
fn message(body: &str) -> Value {
    let text = body
        .lines()
        .filter_map(|line| line.strip_prefix("data:").or(Some(line)))
        .find(|line| line.trim_start().starts_with('{'));
    serde_json::from_str(text.unwrap_or_else(|| panic!("no message in {body:?}"))).unwrap()
}

fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "http-client", "version": "1" } } })
}

#[test]
fn both_eras_are_served_with_the_token() {
    let place = Place::saved();
    let server = Server::start(&place, &["127.0.0.1:0"]);
    assert!(server.address.ip().is_loopback());
    assert_eq!(server.token.as_ref().map(String::len), Some(64), "a new token is printed");
    let (status, body) = server.post_authorized(&[], &initialize());
    assert_eq!((status, message(&body)["result"]["protocolVersion"].clone()), (200, json!("2025-11-25")), "{body}");

    let versions =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "checkpoint_save")];
    place.write("a.txt", "over http\n");
    let call = inline(2, "tools/call", json!({ "name": "checkpoint_save", "arguments": { "message": "http" } }));
    let (status, body) = server.post_authorized(&versions, &call);
    assert_eq!(status, 200, "{body}");
    let saved = message(&body)["result"]["structuredContent"].clone();
    assert_eq!((&saved["created"], &saved["checkpoint"]["agent"]), (&json!(true), &json!("http-client")), "{body}");
    assert_eq!(place.json(["show", "@"])["checkpoint"]["message"], "http");
    assert_eq!(server.end(), Some(0));
}

#[test]
fn requests_without_the_token_or_from_another_origin_are_refused() {
    let place = Place::saved();
    let server = Server::start(&place, &["0"]);
    let port = server.address.port();
    let host = server.address.to_string();
    let bearer = format!("Bearer {}", server.token.as_deref().unwrap());
    let body = initialize().to_string();
    let (evil_host, own_origin) = (format!("evil.example:{port}"), format!("http://localhost:{port}"));
    let wrong_bearer = format!("{}x", &bearer[..bearer.len() - 1]);
    let cases: Vec<(u16, Vec<(&str, &str)>)> = vec![
        (200, vec![("Host", &host), ("Authorization", &bearer)]),
        (200, vec![("Host", &host), ("Authorization", &bearer), ("Origin", &own_origin)]),
        (403, vec![("Host", &evil_host), ("Authorization", &bearer)]),
        (403, vec![("Host", "127.0.0.1:1"), ("Authorization", &bearer)]),
        (403, vec![("Host", "localhost"), ("Authorization", &bearer)]),
        (403, vec![("Host", &host), ("Authorization", &bearer), ("Origin", "https://evil.example")]),
        (403, vec![("Host", &host), ("Authorization", &bearer), ("Origin", "null")]),
        (401, vec![("Host", &host)]),
        (401, vec![("Host", &host), ("Authorization", &wrong_bearer)]),
        (401, vec![("Host", &host), ("Authorization", "Bearer ")]),
        (401, vec![("Host", &host), ("Authorization", "Basic dXNlcjpwYXNz")]),
        (401, vec![("Host", &host), ("Authorization", &bearer), ("Authorization", &bearer)]),
    ];
    for (expected, headers) in cases {
        let (status, answer) = server.post(&headers, &body);
        assert_eq!(status, expected, "{headers:?}: {answer}");
        if expected != 200 {
            assert!(!answer.contains("backtrail") && !answer.contains(server.token.as_deref().unwrap()), "{answer}");
        }
    }
    let allowed = [("Host", host.as_str()), ("Authorization", bearer.as_str())];
    for (path, expected) in [("/", 404), ("/other", 404), ("/mcp/x", 404)] {
        assert_eq!(server.send(&request("POST", path, &allowed, &body)).0, expected, "{path}");
    }
    // The preflight request of a browser for a web page.
    let preflight = [("Host", host.as_str()), ("Origin", "https://evil.example")];
    let (status, answer) = server.send(&request("OPTIONS", "/mcp", &preflight, ""));
    assert!(status == 403 && !answer.to_lowercase().contains("access-control"), "{status} {answer}");
    let (status, _) = server.send("POST /mcp HTTP/1.1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(status, 403, "the request has no Host header");
    // A body that is too large is refused, and the server goes on.
    let huge = format!("{{\"x\":\"{}\"}}", "y".repeat(5 << 20));
    let mut stream = TcpStream::connect(server.address).unwrap();
    let sent = stream.write_all(request("POST", "/mcp", &allowed, &huge).as_bytes());
    let mut answer = Vec::new();
    let read = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(sent.is_err() || read.is_err() || answer.contains(" 413 "), "{answer}");
    assert_eq!(server.post(&allowed, &body).0, 200);
}

#[test]
fn a_token_can_be_set_by_file_or_environment() {
    let mut place = Place::saved();
    std::fs::write(place.path("token"), "from-a-file-0123456789\n").unwrap();
    let file = place.path("token").display().to_string();
    let mut server = Server::start(&place, &["0", "--token-file", &file]);
    assert_eq!(server.token, None, "a given token is not printed");
    server.token = Some("from-a-file-0123456789".into());
    assert_eq!(server.post_authorized(&[], &initialize()).0, 200);
    place.set("BACKTRAIL_MCP_TOKEN", "from-the-environment-0");
    let mut server = Server::start(&place, &["0"]);
    server.token = Some("from-the-environment-0".into());
    assert_eq!(server.post_authorized(&[], &initialize()).0, 200);
}

#[test]
fn invalid_options_are_refused_at_the_start() {
    let mut place = Place::saved();
    std::fs::write(place.path("short"), "short").unwrap();
    let short = place.path("short").display().to_string();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["mcp", "--http", "0.0.0.0:0"], 2, "other machines"),
        (&["mcp", "--http", "192.168.0.1:80"], 2, "other machines"),
        (&["mcp", "--http", "somewhere"], 2, "no address"),
        (&["mcp", "--http", "0", "--token-file", &short], 2, "must have 16"),
        (&["mcp", "--http", "0", "--token-file", "/nowhere/token"], 1, "read the token file"),
        (&["mcp", "--token-file", "x"], 2, "--http"),
    ];
    for (words, code, part) in cases {
        let run = place.run(words);
        assert_eq!(run.code, code, "{}", run.shown());
        assert!(run.stderr.contains(part), "{}", run.shown());
    }
    place.set("BACKTRAIL_MCP_TOKEN", "short");
    let run = place.run(["mcp", "--http", "0"]);
    assert!(run.code == 2 && run.stderr.contains("BACKTRAIL_MCP_TOKEN"), "{}", run.shown());
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    place.set("BACKTRAIL_MCP_TOKEN", "long-enough-0123456789");
    let run = place.run(["mcp", "--http", &taken.local_addr().unwrap().to_string()]);
    assert!(run.code == 1 && run.stderr.contains("can't listen at 127.0.0.1:"), "{}", run.shown());
}
