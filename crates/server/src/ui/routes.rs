//! Finds the function for a request, after the checks that every request has to pass.

use std::{sync::Arc, time::Duration};

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::{
    Method, Request, StatusCode,
    body::Incoming,
    header::{HeaderValue, LOCATION, SET_COOKIE},
};

use super::{
    answers::{Reply, failed, for_people, no_store, outcome, protected_page},
    assets, changing, conversation,
    desk::Desk,
    diff, events, file,
    guard::Refused,
    page::State,
    query::Query,
    reading,
};
use crate::{
    failure::Failure,
    http::listen::{Answer, answer},
    running::Call,
};

const MAX_BODY_BYTES: usize = 1 << 20;
/// The maximum time in which a client must send the body.
const PATIENCE_FOR_BODY: Duration = Duration::from_secs(30);

type Read = fn(&Desk, &Call, &Query) -> Result<Reply, Failure>;
type Write = fn(&Desk, &Call, &[u8]) -> Result<Reply, Failure>;

const READS: &[(&str, Read)] = &[
    ("checkpoints", reading::checkpoints),
    ("turns", reading::turns),
    ("status", reading::status),
    ("history", reading::history),
    ("blame", reading::blame),
    ("diff", diff::diff),
    ("file", file::file),
    ("conversation", conversation::conversation),
];

const WRITES: &[(&str, Write)] = &[
    ("restore/plan", changing::plan_restore),
    ("revert/plan", changing::plan_revert),
    ("apply", changing::apply),
    ("undo", changing::undo),
    ("redo", changing::redo),
    ("save", changing::save),
    ("pin", changing::pin),
];

/// Answers a request.
pub(super) async fn respond(state: &Arc<State>, request: Request<Incoming>) -> Answer {
    if let Err(refused) = state.guard.check_place(request.headers(), request.uri()) {
        return turn_away(refused);
    }
    if let Some(answer) = sign_in(state, &request) {
        return answer;
    }
    if let Err(refused) = state.guard.check_token(request.headers()) {
        return turn_away(refused);
    }
    let path = request.uri().path().to_owned();
    match path.strip_prefix("/api/") {
        Some(name) => api(state, name, request).await,
        None if request.method() != Method::GET => no_such_path(),
        None => assets::find(&path, request.headers()).unwrap_or_else(no_such_path),
    }
}

/// Exchanges the token in the address for a cookie, so that the token does not stay in the address. Returns `None` for
/// an address without a token.
fn sign_in(state: &State, request: &Request<Incoming>) -> Option<Answer> {
    if request.method() != Method::GET || request.uri().path() != "/" {
        return None;
    }
    let query = Query::parse(request.uri().query().unwrap_or_default()).ok()?;
    let given = query.get("token")?;
    let cookie = state.guard.cookie_for(given).and_then(|cookie| HeaderValue::from_str(&cookie).ok());
    let Some(cookie) = cookie else { return Some(turn_away(Refused::Token)) };
    let mut answer = protected_page(answer(StatusCode::SEE_OTHER, "text/plain; charset=utf-8", ""));
    let headers = answer.headers_mut();
    headers.insert(SET_COOKIE, cookie);
    headers.insert(LOCATION, HeaderValue::from_static("/"));
    no_store(headers);
    Some(answer)
}

async fn api(state: &Arc<State>, name: &str, request: Request<Incoming>) -> Answer {
    let query = match Query::parse(request.uri().query().unwrap_or_default()) {
        Ok(query) => query,
        Err(failure) => return outcome(Err(failure)),
    };
    if request.method() == Method::GET {
        return read(state, name, query).await;
    }
    let Some((_, write)) = WRITES.iter().find(|(known, _)| *known == name) else { return no_such_path() };
    if request.method() != Method::POST {
        return no_such_path();
    }
    if let Err(refused) = state.guard.check_write(request.headers()) {
        return turn_away(refused);
    }
    let body = match body(request).await {
        Ok(body) => body,
        Err(answer) => return answer,
    };
    let store = query.get("workspace").map(str::to_owned);
    run(state, store, move |desk, call| write(desk, call, &body)).await
}

async fn read(state: &Arc<State>, name: &str, query: Query) -> Answer {
    let store = query.get("workspace").map(str::to_owned);
    match name {
        "events" => return events::stream(state, store).await,
        "workspaces" => {
            let found = Arc::clone(state);
            let listed = state.running.run_quietly(move |_| Reply::json(&found.desks.list()?)).await;
            return outcome(listed.map_err(for_people));
        }
        _ => {}
    }
    if let Some(word) = name.strip_prefix("checkpoints/").map(str::to_owned) {
        return run(state, store, move |desk, call| reading::checkpoint(desk, call, &word)).await;
    }
    match READS.iter().find(|(known, _)| *known == name) {
        Some((_, read)) => run(state, store, move |desk, call| read(desk, call, &query)).await,
        None => no_such_path(),
    }
}

async fn run(
    state: &Arc<State>,
    store: Option<String>,
    work: impl FnOnce(&Desk, &Call) -> Result<Reply, Failure> + Send + 'static,
) -> Answer {
    let found = Arc::clone(state);
    let done = state.running.run_quietly(move |call| work(&*found.desks.find(store.as_deref())?, call));
    outcome(done.await.map_err(for_people))
}

async fn body(request: Request<Incoming>) -> Result<Vec<u8>, Answer> {
    let collected =
        tokio::time::timeout(PATIENCE_FOR_BODY, Limited::new(request.into_body(), MAX_BODY_BYTES).collect());
    match collected.await {
        Ok(Ok(body)) => Ok(body.to_bytes().to_vec()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let failure = Failure::usage(format!("the body is larger than {MAX_BODY_BYTES} bytes"));
            Err(failed(StatusCode::PAYLOAD_TOO_LARGE, &failure))
        }
        Ok(Err(_)) | Err(_) => Err(outcome(Err(Failure::usage("the body did not arrive")))),
    }
}

fn no_such_path() -> Answer {
    let failure =
        Failure::usage("there is nothing at this path, or not for this method").with_hint("see: docs/timeline.md");
    failed(StatusCode::NOT_FOUND, &failure)
}

fn turn_away(refused: Refused) -> Answer {
    failed(refused.status(), &Failure::usage(refused.sentence()))
}
