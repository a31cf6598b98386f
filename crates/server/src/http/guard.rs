//! Checks HTTP requests. A request must name this machine as its host, must not come from a foreign web page, and must
//! have the token.
//!
//! A web page can make a browser send requests here, and can make its own host name resolve to this machine. It can
//! neither set the Host header nor hide the Origin header, and it does not know the token.

use hyper::{
    HeaderMap, Request, StatusCode, Uri,
    header::{AUTHORIZATION, HOST, HeaderName, ORIGIN},
    http::uri::Authority,
};

use super::Token;

/// The only path that is served.
pub(super) const PATH: &str = "/mcp";
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Host,
    Origin,
    Token,
    Path,
}

impl Refused {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Path => StatusCode::NOT_FOUND,
        }
    }

    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::Host => "the Host header names another machine or port",
            Self::Origin => "the Origin header names a web page of another site",
            Self::Token => "send the token as: Authorization: Bearer TOKEN",
            Self::Path => "the only path is /mcp",
        }
    }
}

/// The values that every request is checked against.
#[derive(Debug)]
pub(super) struct Guard {
    port: u16,
    token: Token,
}

impl Guard {
    pub(super) fn new(port: u16, token: Token) -> Self {
        Self { port, token }
    }

    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<(), Refused> {
        let headers = request.headers();
        self.check_host(headers, request.uri())?;
        self.check_origin(headers)?;
        self.check_token(headers)?;
        if request.uri().path() == PATH { Ok(()) } else { Err(Refused::Path) }
    }

    fn check_host(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refused> {
        let named = only(headers, HOST).and_then(|host| host.parse::<Authority>().ok()).ok_or(Refused::Host)?;
        let is_here = self.is_here(&named) && uri.authority().is_none_or(|authority| self.is_here(authority));
        if is_here { Ok(()) } else { Err(Refused::Host) }
    }

    /// Refuses requests from foreign web pages. Programs send no Origin header. A page from this server's own address
    /// is accepted.
    fn check_origin(&self, headers: &HeaderMap) -> Result<(), Refused> {
        if !headers.contains_key(ORIGIN) {
            return Ok(());
        }
        let origin = only(headers, ORIGIN).and_then(|origin| origin.strip_prefix("http://")).ok_or(Refused::Origin)?;
        let is_here = NAMES.iter().any(|name| origin == format!("{name}:{}", self.port));
        if is_here { Ok(()) } else { Err(Refused::Origin) }
    }

    fn check_token(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let given = only(headers, AUTHORIZATION).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        if given.is_some_and(|given| self.token.is(given.as_bytes())) { Ok(()) } else { Err(Refused::Token) }
    }

    fn is_here(&self, authority: &Authority) -> bool {
        let has_user = authority.as_str().contains('@');
        !has_user && NAMES.contains(&authority.host()) && authority.port_u16() == Some(self.port)
    }
}

/// Returns the value of a header that occurs exactly once. Returns `None` otherwise.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    if values.next().is_some() { None } else { Some(first) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef";

    fn check(uri: &str, headers: &[(&str, &str)]) -> Result<(), Refused> {
        let guard = Guard::new(7420, Token::new(SECRET).unwrap());
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        guard.check(&request.body(()).unwrap())
    }

    fn with(headers: &[(&'static str, &'static str)]) -> Result<(), Refused> {
        let usual = [("host", "127.0.0.1:7420"), ("authorization", "Bearer 0123456789abcdef")];
        let mut all: Vec<_> =
            usual.into_iter().filter(|(name, _)| headers.iter().all(|(own, _)| own != name)).collect();
        all.extend(headers.iter().filter(|(_, value)| *value != "-"));
        check(PATH, &all)
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
        assert_eq!(check("http://evil.example:7420/mcp", &headers), Err(Refused::Host));
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
            assert_eq!(check(path, &headers), Err(Refused::Path), "{path:?}");
        }
    }
}
