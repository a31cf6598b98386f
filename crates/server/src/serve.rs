//! Starts the server, and ends it when the client disconnects or a signal arrives.

use std::{
    future::Future,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    time::Duration,
};

use backtrail::{Error, Result};
use rmcp::{
    ServiceExt,
    service::ServerInitializeError,
    transport::{async_rw::AsyncRwTransport, stdio_pipes},
};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::{
    access::{Access, Served},
    handler::Handler,
    http::{Listening, Token, bind, serve_protocol},
    plans::Plans,
    tools::Shared,
    ui::{Page, PageTokens, ShownWorkspaces},
};

/// The maximum time for operations that still run when the server ends. A restore that takes longer is finished by the
/// next command, as after a crash.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(20);
/// The maximum length of a line from a client. Longer lines are dropped.
const MAX_LINE_BYTES: usize = 16 << 20;

/// The reason why the server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The client disconnected, or the process received SIGTERM.
    Done,
    /// The process received SIGINT, such as from Ctrl-C.
    Interrupted,
}

/// Serves on stdin and stdout until stdin ends.
pub fn serve_stdio(served: Served) -> Result<End> {
    let handler = handler(served)?;
    run(async move |ends: CancellationToken| {
        let (reader, writer) = stdio_pipes();
        let transport = AsyncRwTransport::new_server(reader, writer).with_max_line_length(MAX_LINE_BYTES);
        let served = match handler.clone().serve_with_ct(transport, ends).await {
            Ok(running) => {
                // The reason of the end is known to `run`.
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

/// Serves over HTTP at a loopback address to clients that have the token. Calls `ready` with the actual address.
pub fn serve_http(served: Served, address: SocketAddr, token: Token, ready: impl FnOnce(SocketAddr)) -> Result<End> {
    let handler = handler(served)?;
    run(async move |ends: CancellationToken| {
        let listening = listen(address).await?;
        ready(listening.address());
        serve_protocol(listening, handler.clone(), token, ends).await;
        handler.running().finish(PATIENCE_AT_THE_END).await;
        Ok(())
    })
}

/// Serves the page and its API over HTTP on this port of the loopback address. Calls `ready` with the actual address.
pub fn serve_page(
    workspaces: ShownWorkspaces,
    port: u16,
    tokens: PageTokens,
    ready: impl FnOnce(SocketAddr),
) -> Result<End> {
    run(async move |ends: CancellationToken| {
        let listening = listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let page = Page::new(workspaces, listening.address().port(), tokens, ends.clone())?;
        ready(listening.address());
        page.serve(listening, ends).await;
        page.running().finish(PATIENCE_AT_THE_END).await;
        Ok(())
    })
}

async fn listen(address: SocketAddr) -> Result<Listening> {
    let bound = bind(address).await;
    bound.map_err(|source| Error::Io { action: "listen on", path: address.to_string().into(), source })
}

fn handler(served: Served) -> Result<Handler> {
    Ok(Handler::new(Shared { access: Access::new(served)?, plans: Plans::default() }))
}

/// Runs a server until it is done or a signal arrives.
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
    // Otherwise the runtime would wait for a pending read of stdin.
    runtime.shutdown_background();
    ended
}

/// Returns the start of a client's message: enough to recognize it, because the whole may be long.
fn first_words(text: &str) -> String {
    text.chars().take(200).collect()
}
