//! Accepts connections, and passes requests that the guard accepts to the protocol.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, WWW_AUTHENTICATE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

use super::{
    Token,
    guard::{Guard, Refused},
};
use crate::handler::Handler;

/// The maximum number of simultaneous connections. Further ones wait.
const MAX_CONNECTIONS: usize = 64;
/// The maximum time in which a client must send the headers. After that, the connection is closed.
const PATIENCE_FOR_HEADERS: Duration = Duration::from_secs(30);
/// The maximum time for sending the remaining answers when the server ends.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(3);
const MAX_BODY_BYTES: usize = 4 << 20;

type Answer = Response<BoxBody<Bytes, Infallible>>;
type Protocol = StreamableHttpService<Handler, LocalSessionManager>;

/// A socket that accepts connections.
pub(crate) struct Listening {
    listener: TcpListener,
    address: SocketAddr,
}

/// Listens at this address. Port 0 means any free port.
pub(crate) async fn bind(address: SocketAddr) -> io::Result<Listening> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok(Listening { listener, address })
}

impl Listening {
    /// Returns the address, with the actual port.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `end` is cancelled.
    pub(crate) async fn serve(self, handler: Handler, token: Token, end: CancellationToken) {
        let port = self.address.port();
        let names = ["localhost", "127.0.0.1", "[::1]"];
        // The guard checks the same. These checks of the protocol library are a second line of defence.
        let config = StreamableHttpServerConfig::default()
            .with_allowed_hosts(["localhost", "127.0.0.1", "::1"])
            .with_allowed_origins(names.map(|name| format!("http://{name}:{port}")))
            .with_max_request_body_bytes(MAX_BODY_BYTES)
            .with_cancellation_token(end.clone());
        let protocol = StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config);
        let guard = Arc::new(Guard::new(port, token));
        let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            let place = tokio::select! {
                () = end.cancelled() => break,
                Ok(place) = Arc::clone(&places).acquire_owned() => place,
            };
            let stream = tokio::select! {
                () = end.cancelled() => break,
                Some(_) = connections.join_next() => continue,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => stream,
                    // For example, too many files are open. Retry after some connections have ended.
                    Err(_) => {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
            };
            let (protocol, guard, end) = (protocol.clone(), Arc::clone(&guard), end.clone());
            connections.spawn(async move {
                let _place = place;
                connection(stream, protocol, guard, end).await;
            });
        }
        let all = async { while connections.join_next().await.is_some() {} };
        // Connections that are still open after this time are closed when the process ends.
        drop(tokio::time::timeout(PATIENCE_AT_THE_END, all).await);
    }
}

async fn connection(stream: TcpStream, protocol: Protocol, guard: Arc<Guard>, end: CancellationToken) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (protocol, guard) = (protocol.clone(), Arc::clone(&guard));
        async move {
            Ok::<_, Infallible>(match guard.check(&request) {
                Ok(()) => protocol.handle(request).await,
                Err(refused) => turn_away(refused),
            })
        }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(PATIENCE_FOR_HEADERS)
        .serve_connection(TokioIo::new(stream), service);
    let mut served = std::pin::pin!(served);
    tokio::select! {
        // An error means that the client has disconnected, so there is no one to report it to.
        _ = served.as_mut() => {}
        () = end.cancelled() => {
            served.as_mut().graceful_shutdown();
            drop(served.await);
        }
    }
}

fn turn_away(refused: Refused) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(refused.sentence().as_bytes())).boxed());
    *answer.status_mut() = refused.status();
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("text/plain; charset=utf-8"));
    if refused == Refused::Token {
        headers.insert(WWW_AUTHENTICATE, hyper::header::HeaderValue::from_static("Bearer"));
    }
    answer
}
