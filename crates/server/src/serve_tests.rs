//! Tests of the handler over an in-memory pipe. A test decides when the workspace opens, and so controls the order of
//! events.

use std::{
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};

use backtrail_testkit::TestWorkspace;
use rmcp::{ServiceExt, transport::async_rw::AsyncRwTransport};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio_util::sync::CancellationToken;

use crate::{
    access::{Access, Opener, Purpose, Served},
    handler::Handler,
    plans::Plans,
    tools::Shared,
};

struct Client {
    reader: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
}

impl Client {
    async fn start(handler: &Handler) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (reader, writer) = tokio::io::split(theirs);
        let transport = AsyncRwTransport::new_server(reader, writer);
        let handler = handler.clone();
        tokio::spawn(async move {
            let running = handler.serve_with_ct(transport, CancellationToken::new()).await.unwrap();
            drop(running.waiting().await);
        });
        let (reader, writer) = tokio::io::split(ours);
        let mut client = Self { reader: BufReader::new(reader).lines(), writer };
        let program = json!({ "name": "t", "version": "1" });
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": program });
        client.send(json!({ "id": 0, "method": "initialize", "params": params })).await;
        assert_eq!(client.next().await["id"], 0);
        client
    }

    async fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn call(&mut self, id: u64, tool: &str, arguments: Value) {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": id } });
        self.send(json!({ "id": id, "method": "tools/call", "params": params })).await;
    }

    async fn cancel(&mut self, id: u64) {
        self.send(json!({ "method": "notifications/cancelled", "params": { "requestId": id } })).await;
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(Duration::from_secs(30), self.reader.next_line()).await;
        serde_json::from_str(&line.expect("an answer in time").unwrap().expect("an answer")).unwrap()
    }

    /// Returns the next answer. Skips progress.
    async fn answer(&mut self) -> Value {
        loop {
            let message = self.next().await;
            if message.get("method").is_none() {
                return message;
            }
        }
    }
}

/// Controls the opening of a workspace for writing: `opened` reports each attempt, and `go_on` lets one continue.
struct Gate {
    opened: Receiver<()>,
    go_on: Sender<()>,
}

impl Gate {
    /// Waits until the workspace was opened this number of times.
    async fn after(self, times: usize) -> Self {
        let waited = tokio::task::spawn_blocking(move || {
            for _ in 0..times {
                self.opened.recv_timeout(Duration::from_secs(30)).expect("the workspace is opened");
            }
            self
        });
        waited.await.unwrap()
    }
}

fn gated(ws: &TestWorkspace) -> (Handler, Gate) {
    let (tell_opened, opened) = channel();
    let (go_on, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let (root, stores) = (ws.root(), ws.stores());
    let open: Opener = Arc::new(move |purpose| {
        if !matches!(purpose, Purpose::Look | Purpose::Scan) {
            tell_opened.send(()).unwrap();
            wait.lock().unwrap().recv().unwrap();
        }
        let location = backtrail::locate(&backtrail::Start::At(root.clone()), &stores, None)?;
        Ok(backtrail::Workspace::new(location, backtrail::Options::default()))
    });
    let served = Served { open, options_at: Arc::new(|_| backtrail::Options::default()), stores: Some(ws.stores()) };
    let shared = Shared { access: Access::new(served).unwrap(), plans: Plans::default() };
    (Handler::new(shared), Gate { opened, go_on })
}

/// Returns a workspace with one file, its handler, the gate before it, and a client.
async fn gated_client() -> (TestWorkspace, Handler, Gate, Client) {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let (handler, gate) = gated(&ws);
    let client = Client::start(&handler).await;
    (ws, handler, gate, client)
}

#[tokio::test]
async fn a_call_that_is_cancelled_while_it_runs_saves_nothing() {
    let (ws, handler, gate, mut client) = gated_client().await;
    client.call(1, "checkpoint_save", json!({})).await;
    let gate = gate.after(1).await;
    client.cancel(1).await;
    // The answer to a later call shows that the cancellation was handled.
    client.call(2, "checkpoint_list", json!({})).await;
    assert_eq!(client.answer().await["id"], 2);
    gate.go_on.send(()).unwrap();
    handler.running().finish(Duration::from_secs(30)).await;
    assert_eq!(ws.open().current().unwrap(), None, "nothing was saved");
}

#[tokio::test]
async fn the_server_waits_for_running_calls() {
    let (_ws, handler, gate, mut client) = gated_client().await;
    client.call(1, "checkpoint_save", json!({})).await;
    let gate = gate.after(1).await;
    let finishing = tokio::spawn({
        let handler = handler.clone();
        async move { handler.running().finish(Duration::from_secs(30)).await }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!finishing.is_finished(), "the server waits for the call");
    gate.go_on.send(()).unwrap();
    assert_eq!(client.answer().await["result"]["structuredContent"]["created"], true);
    finishing.await.unwrap();
    client.call(2, "checkpoint_list", json!({})).await;
    assert_eq!(client.answer().await["result"]["isError"], true, "no new call is accepted");
}

#[tokio::test]
async fn a_client_that_disconnects_stops_its_calls() {
    let (ws, handler, gate, mut client) = gated_client().await;
    client.call(1, "checkpoint_save", json!({})).await;
    let gate = gate.after(1).await;
    drop(client);
    // The protocol library waits a while for pending answers before it closes the connection.
    tokio::time::sleep(Duration::from_secs(7)).await;
    gate.go_on.send(()).unwrap();
    handler.running().finish(Duration::from_secs(30)).await;
    assert_eq!(ws.open().current().unwrap(), None, "nothing was saved");
}

#[tokio::test]
async fn the_number_of_running_calls_is_limited_and_waiting_calls_can_be_cancelled() {
    let (ws, _handler, gate, mut client) = gated_client().await;
    for id in 1..=6 {
        client.call(id, "checkpoint_save", json!({ "name": format!("n{id}") })).await;
    }
    let gate = gate.after(4).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(gate.opened.try_recv().is_err(), "the fifth call waits");
    client.cancel(5).await;
    client.cancel(6).await;
    for _ in 0..4 {
        gate.go_on.send(()).unwrap();
    }
    for _ in 0..4 {
        assert_eq!(client.answer().await["result"]["isError"], false);
    }
    assert_eq!(ws.open().list(&backtrail::ListFilter::default()).unwrap().len(), 4);
}
