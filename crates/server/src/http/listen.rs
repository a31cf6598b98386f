//! Accepts connections, and passes their requests to a service.

use std::{convert::Infallible, io, net::SocketAddr, sync::Arc, time::Duration};

use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Incoming},
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
};
use tokio_util::sync::CancellationToken;

/// The maximum number of simultaneous connections. Further ones wait.
const MAX_CONNECTIONS: usize = 512;
/// The maximum time in which a client must send the headers. After that, the connection is closed.
const PATIENCE_FOR_HEADERS: Duration = Duration::from_secs(30);
/// The maximum time for sending the remaining answers when the server ends.
const PATIENCE_AT_THE_END: Duration = Duration::from_secs(3);

/// The answer to a request.
pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;

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
    pub(crate) async fn serve<F>(
        self,
        respond: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static,
        end: CancellationToken,
    ) where
        F: Future<Output = Answer> + Send + 'static,
    {
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
            let (respond, end) = (respond.clone(), end.clone());
            connections.spawn(async move {
                let _place = place;
                connection(stream, respond, end).await;
            });
        }
        let all = async { while connections.join_next().await.is_some() {} };
        // Connections that are still open after this time are closed when the process ends.
        drop(tokio::time::timeout(PATIENCE_AT_THE_END, all).await);
    }
}

async fn connection<F>(stream: TcpStream, respond: impl Fn(Request<Incoming>) -> F, end: CancellationToken)
where
    F: Future<Output = Answer>,
{
    let service = service_fn(|request: Request<Incoming>| {
        let answer = respond(request);
        async move { Ok::<_, Infallible>(answer.await) }
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

/// Returns an answer with this body.
pub(crate) fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}
