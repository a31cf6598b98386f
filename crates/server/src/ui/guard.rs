//! Checks requests for the page: those of every server on this machine, the cookie, and stricter ones for writes.

use std::sync::{Mutex, PoisonError};

use hyper::{
    HeaderMap, StatusCode, Uri,
    header::{CONTENT_TYPE, COOKIE, HOST, ORIGIN},
};

use crate::http::{
    Token,
    guard::{Guard, only},
};

/// The reason why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Place,
    Token,
    Write,
    ContentType,
}

impl Refused {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Place | Self::Write => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::ContentType => StatusCode::BAD_REQUEST,
        }
    }

    pub(super) fn sentence(self) -> &'static str {
        match self {
            Self::Place => "the Host or Origin header names another site",
            Self::Token => "open the address that backtrail ui printed, or send: Authorization: Bearer TOKEN",
            Self::Write => "a request that writes needs the Origin of this page, or Authorization: Bearer TOKEN",
            Self::ContentType => "send the body as Content-Type: application/json",
        }
    }
}

/// The secrets that give access to the page.
pub struct PageTokens {
    /// Valid until the server ends.
    pub lasting: Token,
    /// Valid for one sign-in. For a program that passes it on where others can see it.
    pub once: Token,
}

/// The values that every request is checked against.
pub(super) struct PageGuard {
    guard: Guard,
    cookie: String,
    lasting: Token,
    once: Mutex<Option<Token>>,
}

impl PageGuard {
    pub(super) fn new(port: u16, tokens: PageTokens) -> Self {
        let PageTokens { lasting, once } = tokens;
        let guard = Guard::new(port, lasting.clone());
        Self { guard, cookie: format!("backtrail_{port}"), lasting, once: Mutex::new(Some(once)) }
    }

    /// Checks that the request names this server and comes from its own page, if it comes from a page.
    pub(super) fn check_place(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refused> {
        self.guard.check_place(headers, uri).map_err(|_| Refused::Place)?;
        // Another name of this machine is another site: a server of another user may listen there.
        let is_own = headers.get(ORIGIN).is_none() || is_own_origin(headers);
        if is_own { Ok(()) } else { Err(Refused::Place) }
    }

    pub(super) fn check_token(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let has_cookie = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok()).any(|cookies| {
            let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
            pairs.any(|(name, value)| name == self.cookie && self.guard.is_token(value))
        });
        if has_cookie || self.guard.has_bearer(headers) { Ok(()) } else { Err(Refused::Token) }
    }

    pub(super) fn check_write(&self, headers: &HeaderMap) -> Result<(), Refused> {
        if !is_own_origin(headers) && !self.guard.has_bearer(headers) {
            return Err(Refused::Write);
        }
        let content_type = only(headers, CONTENT_TYPE).unwrap_or_default();
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        if essence.eq_ignore_ascii_case("application/json") { Ok(()) } else { Err(Refused::ContentType) }
    }

    /// Returns the header that gives the browser access. Returns `None` if the token is wrong, or was used up.
    pub(super) fn cookie_for(&self, given: &str) -> Option<String> {
        let mut once = self.once.lock().unwrap_or_else(PoisonError::into_inner);
        let is_right = self.guard.is_token(given) || once.take_if(|once| once.is(given.as_bytes())).is_some();
        is_right.then(|| format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie, self.lasting.reveal()))
    }
}

fn is_own_origin(headers: &HeaderMap) -> bool {
    let origin = only(headers, ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
    origin.is_some() && origin == only(headers, HOST)
}

#[cfg(test)]
mod tests {
    use hyper::Request;

    use super::*;

    const SECRET: &str = "0123456789abcdef";

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let request = pairs.iter().fold(Request::builder(), |request, (name, value)| request.header(*name, *value));
        request.body(()).unwrap().headers().clone()
    }

    fn guard() -> PageGuard {
        let token = |text: &str| Token::new(text).unwrap();
        PageGuard::new(7420, PageTokens { lasting: token(SECRET), once: token("only-once-0123456789") })
    }

    #[test]
    fn the_cookie_has_the_name_of_the_port() {
        let with = |cookie: &str| guard().check_token(&headers(&[("cookie", cookie)]));
        assert_eq!(with("backtrail_7420=0123456789abcdef"), Ok(()));
        assert_eq!(with("a=b; backtrail_7420=0123456789abcdef"), Ok(()));
        for cookie in ["", "backtrail_7421=0123456789abcdef", "backtrail_7420=", "backtrail_7420=0123456789abcdeX"] {
            assert_eq!(with(cookie), Err(Refused::Token), "{cookie:?}");
        }
        assert!(guard().cookie_for(SECRET).unwrap().ends_with("; HttpOnly; SameSite=Strict"));
        assert_eq!(guard().cookie_for("0123456789abcdeX"), None);
    }

    #[test]
    fn the_second_token_gives_access_once() {
        let guard = guard();
        let cookie = guard.cookie_for("only-once-0123456789");
        assert!(cookie.is_some_and(|cookie| cookie.starts_with("backtrail_7420=0123456789abcdef;")));
        assert_eq!(guard.cookie_for("only-once-0123456789"), None);
        assert_eq!(
            guard.check_token(&headers(&[("authorization", "Bearer only-once-0123456789")])),
            Err(Refused::Token)
        );
        assert!(guard.cookie_for(SECRET).is_some());
    }

    #[test]
    fn a_page_at_another_name_of_this_machine_is_foreign() {
        let check = |host: &str, origin: &str| {
            guard().check_place(&headers(&[("host", host), ("origin", origin)]), &Uri::from_static("/"))
        };
        assert_eq!(check("127.0.0.1:7420", "http://127.0.0.1:7420"), Ok(()));
        assert_eq!(check("localhost:7420", "http://localhost:7420"), Ok(()));
        assert_eq!(check("127.0.0.1:7420", "http://localhost:7420"), Err(Refused::Place));
        assert_eq!(check("127.0.0.1:7420", "http://evil.example"), Err(Refused::Place));
    }

    #[test]
    fn a_write_needs_the_origin_or_the_token_in_a_header() {
        let json = ("content-type", "application/json; charset=utf-8");
        let host = ("host", "127.0.0.1:7420");
        let check = |pairs: &[(&str, &str)]| guard().check_write(&headers(pairs));
        assert_eq!(check(&[host, json, ("origin", "http://127.0.0.1:7420")]), Ok(()));
        assert_eq!(check(&[host, json, ("authorization", "Bearer 0123456789abcdef")]), Ok(()));
        assert_eq!(check(&[host, json]), Err(Refused::Write));
        let form = ("content-type", "text/plain");
        assert_eq!(check(&[host, form, ("origin", "http://127.0.0.1:7420")]), Err(Refused::ContentType));
    }
}
