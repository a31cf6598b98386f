//! A running `backtrail ui`, and requests to it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpStream},
    process::{Child, Stdio},
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::place::Place;

pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
    pub(super) token: String,
}

/// An answer as it came.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", self.text()))
    }

    /// Returns the status and the code of the failure.
    pub(super) fn failure(&self) -> (u16, String) {
        (self.status, self.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
    }
}

impl Server {
    pub(super) fn start(place: &Place, words: &[&str]) -> Self {
        let words = ["ui", "--no-open", "--json"].iter().chain(words);
        let mut command = place.command(&place.path("ws"), words);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let first = lines.next().expect("the server prints its address");
        let told: Value = serde_json::from_str(&first).unwrap();
        assert_eq!(told["pid"], child.id());
        let url = told["url"].as_str().unwrap();
        let (address, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        let address: SocketAddr = address.parse().unwrap();
        assert_eq!(told["port"], address.port());
        Self { child, address, token: token.to_owned() }
    }

    pub(super) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream
    }

    /// Sends a request as it is.
    pub(super) fn send(&self, request: &str) -> Answer {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        read_answer(&mut stream)
    }

    pub(super) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let has_host = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host"));
        let host = if has_host { String::new() } else { format!("Host: {}\r\n", self.address) };
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        self.send(&format!("{method} {path} HTTP/1.1\r\n{host}{headers}{length}Connection: close\r\n\r\n{body}"))
    }

    pub(super) fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    pub(super) fn cookie(&self) -> String {
        format!("backtrail_{}={}", self.address.port(), self.token)
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[("Authorization", &self.bearer())], "")
    }

    /// Returns the JSON of an answer that must be there.
    pub(super) fn read(&self, path: &str) -> Value {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Answer {
        let headers = [("Authorization", self.bearer()), ("Content-Type", "application/json".to_owned())];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.request("POST", path, &headers, &body.to_string())
    }

    /// Returns the JSON of a write that must succeed.
    pub(super) fn write(&self, path: &str, body: &Value) -> Value {
        let answer = self.post(path, body);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        answer.json()
    }

    pub(super) fn end(mut self, signal: Signal) -> Option<i32> {
        kill_process(Pid::from_raw(self.child.id() as i32).unwrap(), signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(&answer)));
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head, body: answer[end + 4..].to_vec() }
}
