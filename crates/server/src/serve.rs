//! Starts the server, and ends it: when the client goes, or when the process is asked to.

use std::{future::Future, net::SocketAddr, path::PathBuf, time::Duration};

use backtrail::{Error, Result};
use rmcp::{
    ServiceExt,
    service::ServerInitializeError,
    transport::{async_rw::AsyncRwTransport, stdio_pipes},
};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    access::{Access, Opener},
    handler::Handler,
    http::{Token, bind},
    plans::Plans,
    tools::Shared,
};

/// How long an operation that is under way at the end may take. A restore that takes longer is finished by the next
/// command, as after a crash.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(20);
/// A line of a client that is longer is dropped.
const MAX_LINE_BYTES: usize = 16 << 20;

/// Why the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client went, or the process was asked to end.
    Done,
    /// Somebody pressed Ctrl-C.
    Interrupted,
}

/// Serves on stdin and stdout, until stdin ends.
pub fn serve_stdio(open: Opener) -> Result<End> {
    let handler = handler(open)?;
    run(async move |ends: CancellationToken| {
        let (reader, writer) = stdio_pipes();
        let transport = AsyncRwTransport::new_server(reader, writer).with_max_line_length(MAX_LINE_BYTES);
        let served = match handler.clone().serve_with_ct(transport, ends).await {
            Ok(running) => {
                // How it ended is told by who asked for it.
                drop(running.waiting().await);
                Ok(())
            }
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
            Err(error) => {
                Err(Error::Usage(format!("the client does not speak MCP: {}", first_words(&error.to_string()))))
            }
        };
        handler.running().finish(PATIENCE_AT_THE_END).await;
        served
    })
}

/// Serves over HTTP at a loopback address, to whoever has the token; `ready` is told where.
pub fn serve_http(open: Opener, address: SocketAddr, token: Token, ready: impl FnOnce(SocketAddr)) -> Result<End> {
    let handler = handler(open)?;
    run(async move |ends: CancellationToken| {
        let bound = bind(address).await;
        let listening =
            bound.map_err(|source| Error::Io { action: "listen on", path: address.to_string().into(), source })?;
        ready(listening.address());
        listening.serve(handler.clone(), token, ends).await;
        handler.running().finish(PATIENCE_AT_THE_END).await;
        Ok(())
    })
}

fn handler(open: Opener) -> Result<Handler> {
    Ok(Handler::new(Shared { access: Access::new(open)?, plans: Plans::default() }))
}

/// Runs a server until it is done or a signal comes.
fn run<F: Future<Output = Result<()>>>(serve: impl FnOnce(CancellationToken) -> F) -> Result<End> {
    let failed = |source| Error::Io { action: "start", path: PathBuf::from("the server"), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let ended = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let ends = CancellationToken::new();
        let mut served = std::pin::pin!(serve(ends.clone()));
        let end = tokio::select! {
            served = &mut served => return served.map(|()| End::Done),
            _ = terminate.recv() => End::Done,
            _ = interrupt.recv() => End::Interrupted,
        };
        ends.cancel();
        served.await.map(|()| end)
    });
    // A read of stdin that nobody waits for any more would be waited for otherwise.
    runtime.shutdown_background();
    ended
}

/// A client's message is no text for people: enough of it to tell what it was.
fn first_words(text: &str) -> String {
    text.chars().take(200).collect()
}
