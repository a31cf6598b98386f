//! Serves the Model Context Protocol at `/mcp`, to requests that the guard accepts.

use std::sync::Arc;

use hyper::{
    HeaderMap, Request, StatusCode, Uri,
    body::Incoming,
    header::{HeaderValue, WWW_AUTHENTICATE},
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use tokio_util::sync::CancellationToken;

use super::{
    Token,
    guard::{Guard, Refused},
    listen::{Answer, Listening, answer},
};
use crate::handler::Handler;

/// The only path that is served.
const PATH: &str = "/mcp";
const MAX_BODY_BYTES: usize = 4 << 20;

/// Serves the protocol until `end` is cancelled.
pub(crate) async fn serve_protocol(listening: Listening, handler: Handler, token: Token, end: CancellationToken) {
    let port = listening.address().port();
    let names = ["localhost", "127.0.0.1", "[::1]"];
    // The guard checks the same. These checks of the protocol library are a second line of defence.
    let config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(["localhost", "127.0.0.1", "::1"])
        .with_allowed_origins(names.map(|name| format!("http://{name}:{port}")))
        .with_max_request_body_bytes(MAX_BODY_BYTES)
        .with_cancellation_token(end.clone());
    let protocol: StreamableHttpService<Handler, LocalSessionManager> =
        StreamableHttpService::new(move || Ok(handler.clone()), Arc::default(), config);
    let guard = Arc::new(Guard::new(port, token));
    let respond = move |request: Request<Incoming>| {
        let (protocol, guard) = (protocol.clone(), Arc::clone(&guard));
        async move {
            match check(&guard, request.headers(), request.uri()) {
                Ok(()) => protocol.handle(request).await,
                Err(refused) => turn_away(refused),
            }
        }
    };
    listening.serve(respond, end).await;
}

fn check(guard: &Guard, headers: &HeaderMap, uri: &Uri) -> Result<(), Refused> {
    guard.check_place(headers, uri)?;
    if !guard.has_bearer(headers) {
        return Err(Refused::Token);
    }
    if uri.path() == PATH { Ok(()) } else { Err(Refused::Path) }
}

fn turn_away(refused: Refused) -> Answer {
    let mut answer = answer(refused.status(), "text/plain; charset=utf-8", refused.sentence());
    if refused.status() == StatusCode::UNAUTHORIZED {
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef";

    fn checked(uri: &str, headers: &[(&str, &str)]) -> Result<(), Refused> {
        let guard = Guard::new(7420, Token::new(SECRET).unwrap());
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        check(&guard, request.headers(), request.uri())
    }

    fn with(headers: &[(&'static str, &'static str)]) -> Result<(), Refused> {
        let usual = [("host", "127.0.0.1:7420"), ("authorization", "Bearer 0123456789abcdef")];
        let mut all: Vec<_> =
            usual.into_iter().filter(|(name, _)| headers.iter().all(|(own, _)| own != name)).collect();
        all.extend(headers.iter().filter(|(_, value)| *value != "-"));
        checked(PATH, &all)
    }

    #[test]
    fn a_program_with_the_token_is_let_in() {
        assert_eq!(with(&[]), Ok(()));
        assert_eq!(with(&[("host", "localhost:7420")]), Ok(()));
        assert_eq!(with(&[("host", "[::1]:7420")]), Ok(()));
        assert_eq!(with(&[("origin", "http://localhost:7420")]), Ok(()));
        assert_eq!(with(&[("authorization", "bearer 0123456789abcdef")]), Ok(()));
    }

    #[test]
    fn other_hosts_are_turned_away() {
        for host in [
            "evil.example:7420",
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost.evil.example:7420",
            "user@127.0.0.1:7420",
            "-",
            "",
        ] {
            assert_eq!(with(&[("host", host)]), Err(Refused::Host), "{host:?}");
        }
        assert_eq!(with(&[("host", "127.0.0.1:7420"), ("host", "evil.example")]), Err(Refused::Host));
        let headers = [("host", "127.0.0.1:7420"), ("authorization", "Bearer 0123456789abcdef")];
        assert_eq!(checked("http://evil.example:7420/mcp", &headers), Err(Refused::Host));
    }

    #[test]
    fn web_pages_of_other_places_are_turned_away() {
        for origin in [
            "https://evil.example",
            "http://evil.example:7420",
            "null",
            "http://localhost",
            "http://localhost:80",
            "https://localhost:7420",
            "http://localhost:7420.evil.example",
            "file://",
            "",
        ] {
            assert_eq!(with(&[("origin", origin)]), Err(Refused::Origin), "{origin:?}");
        }
    }

    #[test]
    fn without_the_token_nothing_is_told() {
        for given in ["-", "", "Bearer", "Bearer ", "Bearer 0123456789abcdeX", "Basic 0123456789abcdef", SECRET] {
            assert_eq!(with(&[("authorization", given)]), Err(Refused::Token), "{given:?}");
        }
        let twice = [("authorization", "Bearer 0123456789abcdef"), ("authorization", "Bearer 0123456789abcdef")];
        assert_eq!(with(&twice), Err(Refused::Token));
    }

    #[test]
    fn there_is_one_path() {
        let headers = [("host", "127.0.0.1:7420"), ("authorization", "Bearer 0123456789abcdef")];
        for path in ["/", "/mcp/", "/mcp/../x", "/other"] {
            assert_eq!(checked(path, &headers), Err(Refused::Path), "{path:?}");
        }
    }
}
