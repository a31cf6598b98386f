//! The files of the page. They are built from `ui/`, compressed, and embedded.

use hyper::{
    HeaderMap, StatusCode,
    header::{ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, HeaderValue, VARY},
};

use super::answers::{no_store, protected_page};
use crate::http::listen::{Answer, answer};

/// A file of the page: its path, and its bytes as gzip.
struct Asset {
    path: &'static str,
    gzip: &'static [u8],
}

const ASSETS: &[Asset] = include!("../../ui-dist/files.in");

/// The first part of the paths of files that never change under the same name.
const LASTING: &str = "/assets/";

/// Returns the file of the page at this path.
pub(super) fn find(path: &str, headers: &HeaderMap) -> Option<Answer> {
    let asset = ASSETS.iter().find(|asset| asset.path == path)?;
    let accepts = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    if !accepts.into_iter().any(|accepted| accepted.contains("gzip")) {
        let sentence = "this page is sent as gzip; use a client that accepts it";
        return Some(protected_page(answer(StatusCode::BAD_REQUEST, "text/plain; charset=utf-8", sentence)));
    }
    let mut answer = protected_page(answer(StatusCode::OK, content_type(path), asset.gzip));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    if path.starts_with(LASTING) {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=31536000, immutable"));
    } else {
        no_store(headers);
    }
    Some(answer)
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, extension)| extension) {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "text/html; charset=utf-8",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_gzip_and_the_page_is_among_them() {
        assert!(ASSETS.iter().all(|asset| asset.gzip.starts_with(&[0x1f, 0x8b])));
        assert!(ASSETS.iter().any(|asset| asset.path == "/"));
        assert!(ASSETS.iter().any(|asset| asset.path.ends_with(".js")));
    }

    #[test]
    fn scripts_are_named_as_such() {
        assert_eq!(content_type("/assets/main-X.js"), "text/javascript; charset=utf-8");
        assert_eq!(content_type("/"), "text/html; charset=utf-8");
    }
}
