//! A small client for JSON-RPC over the program's stdin and stdout, with one message per line.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Stdio},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use serde_json::{Value, json};

use super::schema;
use crate::place::Place;

/// Longer than any answer takes.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The two eras of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// 2025-11-25 and before: a handshake, then a session.
    Handshake,
    /// 2026-07-28: every request carries the version and the client.
    Inline,
}

pub(super) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    era: Era,
    next_id: u64,
    /// The notifications that came between answers.
    pub(super) notifications: Vec<Value>,
    tools: Vec<Value>,
    /// Everything that the server sent.
    pub(super) received: String,
}

impl Client {
    /// Starts the server in the workspace, and completes the handshake.
    pub(super) fn start(place: &Place) -> Self {
        Self::start_with(place, Era::Handshake, &["mcp"])
    }

    pub(super) fn start_with(place: &Place, era: Era, words: &[&str]) -> Self {
        let mut client = Self::spawn(place, era, words);
        if era == Era::Handshake {
            let answer = client.initialize("2025-11-25");
            assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
            client.notify("notifications/initialized", json!({}));
        }
        client.tools = client.ask("tools/list", json!({}))["result"]["tools"].as_array().unwrap().clone();
        client
    }

    /// Starts the server without sending a message.
    pub(super) fn spawn(place: &Place, era: Era, words: &[&str]) -> Self {
        let mut command = place.command(&place.path("ws"), words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines() {
                if send.send(line.unwrap()).is_err() {
                    break;
                }
            }
        });
        let stdin = child.stdin.take();
        Self {
            child,
            stdin,
            lines,
            era,
            next_id: 0,
            notifications: Vec::new(),
            tools: Vec::new(),
            received: String::new(),
        }
    }

    pub(super) fn initialize(&mut self, version: &str) -> Value {
        let client = json!({ "name": "test-client", "version": "1" });
        self.ask("initialize", json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client }))
    }

    pub(super) fn process(&self) -> u32 {
        self.child.id()
    }

    /// Sends one line as it is.
    pub(super) fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        // If the server has ended, waiting for its answer fails.
        drop(stdin.write_all(line.as_bytes()).and_then(|()| stdin.write_all(b"\n")).and_then(|()| stdin.flush()));
    }

    pub(super) fn notify(&mut self, method: &str, params: Value) {
        self.send_line(&json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string());
    }

    /// Sends a request. Returns its id.
    pub(super) fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.next_id += 1;
        if self.era == Era::Inline {
            let meta = params.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test-client", "version": "1" });
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        let request = json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params });
        self.send_line(&request.to_string());
        self.next_id
    }

    /// Returns the next message of any kind. Returns `None` if there is none within the timeout.
    pub(super) fn next(&mut self, timeout: Duration) -> Option<Value> {
        let line = self.lines.recv_timeout(timeout).ok()?;
        self.received.push_str(&line);
        self.received.push('\n');
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?}"));
        assert_eq!(message["jsonrpc"], "2.0", "stdout has only messages of the protocol: {line}");
        Some(message)
    }

    /// Waits for the answer to a request, and returns it.
    pub(super) fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.next(TIMEOUT).unwrap_or_else(|| panic!("no answer to {id}"));
            if message["id"] == id {
                return message;
            }
            let is_answer = message.get("method").is_none() && message.get("id").is_some();
            assert!(!is_answer, "an answer without a request: {message}");
            self.notifications.push(message);
        }
    }

    pub(super) fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.answer(id)
    }

    /// Calls a tool. Returns the answer, which may be an error.
    pub(super) fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// Calls a tool, which must succeed. Returns its structured content, which must match the declared schema.
    #[track_caller]
    pub(super) fn ok(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.call(tool, arguments);
        let result = &answer["result"];
        assert_ne!(result["isError"], true, "{tool}: {answer}");
        let content = result["structuredContent"].clone();
        assert!(content.is_object(), "{tool}: {answer}");
        assert_eq!(result["content"][0]["text"], content.to_string(), "the text is the same content");
        schema::assert_fits(&self.tool(tool)["outputSchema"], &content, tool);
        content
    }

    /// Calls a tool, which must refuse. Returns code, message and hint of the error.
    #[track_caller]
    pub(super) fn refused(&mut self, tool: &str, arguments: Value) -> (String, String, String) {
        let shown: String = arguments.to_string().chars().take(300).collect();
        let answer = self.call(tool, arguments);
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{tool} {shown}: {answer}");
        assert!(result.get("structuredContent").is_none(), "{answer}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let error: Value = serde_json::from_str(text).unwrap();
        let word = |key: &str| error["error"][key].as_str().unwrap_or_default().to_owned();
        assert!(!word("code").is_empty() && !word("message").is_empty(), "{tool} {shown}: {text}");
        (word("code"), word("message"), word("hint"))
    }

    pub(super) fn tools(&self) -> &[Value] {
        &self.tools
    }

    pub(super) fn tool(&self, name: &str) -> &Value {
        self.tools.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("no tool {name}"))
    }

    /// Closes stdin and waits for the server to end. Returns its exit status and stderr.
    pub(super) fn close(mut self) -> (Option<i32>, String) {
        drop(self.stdin.take());
        self.wait()
    }

    /// Waits for the server to end. Returns its exit status and stderr.
    pub(super) fn wait(&mut self) -> (Option<i32>, String) {
        let deadline = std::time::Instant::now() + TIMEOUT;
        while self.child.try_wait().unwrap().is_none() {
            assert!(std::time::Instant::now() < deadline, "the server does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut stderr = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut stderr).unwrap();
        (self.child.wait().unwrap().code(), stderr)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
