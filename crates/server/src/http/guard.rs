//! Checks HTTP requests. A request must name this machine as its host, must not come from a foreign web page, and must
//! have the token.
//!
//! A web page can make a browser send requests here, and can make its own host name resolve to this machine. It can
//! neither set the Host header nor hide the Origin header, and it does not know the token.

use hyper::{
    HeaderMap, StatusCode, Uri,
    header::{AUTHORIZATION, HOST, HeaderName, ORIGIN},
    http::uri::Authority,
};

use super::Token;

const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    Host,
    Origin,
    Token,
    Path,
}

impl Refused {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Host | Self::Origin => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::Path => StatusCode::NOT_FOUND,
        }
    }

    pub(crate) fn sentence(self) -> &'static str {
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
pub(crate) struct Guard {
    port: u16,
    token: Token,
}

impl Guard {
    pub(crate) fn new(port: u16, token: Token) -> Self {
        Self { port, token }
    }

    /// Checks that the request names this server, and does not come from a foreign web page.
    pub(crate) fn check_place(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refused> {
        self.check_host(headers, uri)?;
        self.check_origin(headers)
    }

    /// Returns whether the request has the token in its `Authorization` header.
    pub(crate) fn has_bearer(&self, headers: &HeaderMap) -> bool {
        let given = only(headers, AUTHORIZATION).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        given.is_some_and(|given| self.is_token(given))
    }

    /// Returns whether this is the token.
    pub(crate) fn is_token(&self, given: &str) -> bool {
        self.token.is(given.as_bytes())
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

    fn is_here(&self, authority: &Authority) -> bool {
        let has_user = authority.as_str().contains('@');
        !has_user && NAMES.contains(&authority.host()) && authority.port_u16() == Some(self.port)
    }
}

/// Returns the value of a header that occurs exactly once. Returns `None` otherwise.
pub(crate) fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    if values.next().is_some() { None } else { Some(first) }
}
