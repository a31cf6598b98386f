//! Takes connections and hands what the guard lets in to the protocol.

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

/// Connections at once; further ones wait.
const MAX_CONNECTIONS: usize = 64;
/// Who connects and says nothing is let go.
const PATIENCE_FOR_HEADERS: Duration = Duration::from_secs(30);
/// How long answers may take to get out after the end was asked for.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(3);
const MAX_BODY_BYTES: usize = 4 << 20;

type Answer = Response<BoxBody<Bytes, Infallible>>;
type Protocol = StreamableHttpService<Handler, LocalSessionManager>;

/// A place that connections come to.
pub(crate) struct Listening {
    listener: TcpListener,
    address: SocketAddr,
}

/// Listens at this address; a port of 0 means any that is free.
pub(crate) async fn bind(address: SocketAddr) -> io::Result<Listening> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    Ok(Listening { listener, address })
}

impl Listening {
    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until the end is asked for.
    pub(crate) async fn serve(self, handler: Handler, token: Token, end: CancellationToken) {
        let port = self.address.port();
        let names = ["localhost", "127.0.0.1", "[::1]"];
        // The guard has asked already; the protocol's own checks stand behind it.
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
                    // Too many open files, perhaps: others end, and then there is room again.
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
        // Connections that are still open then are closed with the process.
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
        // A client that breaks off has nobody left to tell.
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
