//! Answers to requests: JSON, bytes and failures, with the headers that protect the page.

use backtrail::ErrorCode;
use hyper::{
    HeaderMap, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY,
        X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
    },
};
use serde::Serialize;

use crate::{
    failure::Failure,
    http::listen::{Answer, answer},
};

/// What the page may load and run. The component that shows differences needs inline styles.
const POLICY: &str = "default-src 'none'; script-src 'self'; worker-src 'self'; style-src 'self' 'unsafe-inline'; \
img-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The same for the files of a workspace, if a browser opens one of them by itself.
const POLICY_OF_FILES: &str = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'";

/// The content of an answer.
pub(super) enum Reply {
    /// A JSON document.
    Json(Vec<u8>),
    /// A file of the workspace.
    File {
        content_type: &'static str,
        /// Set if the browser must not show it.
        is_attachment: bool,
        bytes: Vec<u8>,
    },
}

impl Reply {
    pub(super) fn json(value: &impl Serialize) -> Result<Self, Failure> {
        serde_json::to_vec(value).map(Self::Json).map_err(|error| Failure::internal(error.to_string()))
    }
}

/// Returns the answer for the outcome of a request.
pub(super) fn outcome(outcome: Result<Reply, Failure>) -> Answer {
    match outcome {
        Ok(Reply::Json(bytes)) => json(StatusCode::OK, bytes),
        Ok(Reply::File { content_type, is_attachment, bytes }) => {
            let mut answer = protected(answer(StatusCode::OK, content_type, bytes), POLICY_OF_FILES);
            no_store(answer.headers_mut());
            if is_attachment {
                answer.headers_mut().insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
            }
            answer
        }
        Err(failure) => failed(status_of(&failure), &failure),
    }
}

/// Returns the answer for a request that failed.
pub(super) fn failed(status: StatusCode, failure: &Failure) -> Answer {
    json(status, failure.to_json().to_string().into_bytes())
}

fn json(status: StatusCode, bytes: Vec<u8>) -> Answer {
    let mut answer = protected(answer(status, "application/json", bytes), POLICY);
    no_store(answer.headers_mut());
    answer
}

pub(super) fn no_store(headers: &mut HeaderMap) {
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
}

/// Adds the headers that every answer of the page has.
pub(super) fn protected_page(answer: Answer) -> Answer {
    protected(answer, POLICY)
}

fn protected(mut answer: Answer, policy: &'static str) -> Answer {
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    answer
}

fn status_of(failure: &Failure) -> StatusCode {
    let is = |codes: &[ErrorCode]| codes.iter().any(|code| failure.is(*code));
    if is(&[ErrorCode::Usage, ErrorCode::Settings, ErrorCode::Pipeline]) {
        StatusCode::BAD_REQUEST
    } else if is(&[ErrorCode::UnknownCheckpoint, ErrorCode::AmbiguousCheckpoint, ErrorCode::UnknownPath]) {
        StatusCode::NOT_FOUND
    } else if is(&[ErrorCode::PlanChanged, ErrorCode::Conflict]) {
        StatusCode::CONFLICT
    } else if is(&[
        ErrorCode::ProtectedDirectory,
        ErrorCode::FeatureCheckpoint,
        ErrorCode::PathOutsideWorkspace,
        ErrorCode::GitState,
    ]) {
        StatusCode::FORBIDDEN
    } else if is(&[ErrorCode::Busy]) {
        StatusCode::LOCKED
    } else {
        StatusCode::INTERNAL_SERVER_ERROR
    }
}

/// Replaces hints that name tools of the MCP server.
pub(super) fn for_people(failure: Failure) -> Failure {
    let hint = [
        (ErrorCode::PlanChanged, "look at the new plan, then apply that one"),
        (ErrorCode::Conflict, "move what is in the way, or leave out the files with conflicts"),
        (ErrorCode::UnknownCheckpoint, "it may have been deleted; load the page again"),
        (ErrorCode::UnknownPath, "paths are relative to the workspace"),
        (ErrorCode::StoreDamaged, "run: backtrail verify"),
        (ErrorCode::Busy, "another process is using the workspace; try again"),
    ];
    match hint.into_iter().find(|(code, _)| failure.is(*code)) {
        Some((_, hint)) => failure.with_hint(hint),
        None => failure,
    }
}
