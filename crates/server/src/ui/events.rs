//! The stream of events: the lines of `events --follow` as server-sent events.
//!
//! One task for each workspace looks for new events, as long as a client listens.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use backtrail::EventFollower;
use http_body_util::BodyExt;
use hyper::{
    Response,
    body::{Body, Bytes, Frame},
    header::{CONTENT_TYPE, HeaderValue},
};
use tokio::sync::{broadcast, mpsc};

use super::{
    answers::{for_people, no_store, outcome, protected_page},
    desk::Desk,
    page::State,
};
use crate::{access::Purpose, failure::Failure, http::listen::Answer};

/// The interval at which new events are looked for.
const POLL: Duration = Duration::from_millis(200);
const HEARTBEAT: Duration = Duration::from_secs(10);
/// The number of events that wait for a slow client. If there are more, its connection is closed.
const MAX_WAITING: usize = 256;

/// The events of one workspace, for all clients that listen.
#[derive(Default)]
pub(super) struct Feed(Mutex<Option<broadcast::Sender<Arc<str>>>>);

/// Answers with the stream of events of a workspace.
pub(super) async fn stream(state: &Arc<State>, store: Option<String>) -> Answer {
    let found = Arc::clone(state);
    let desk = match state.running.run_quietly(move |_| found.desks.find(store.as_deref())).await {
        Ok(desk) => desk,
        Err(failure) => return outcome(Err(for_people(failure))),
    };
    let events = match subscribe(state, &desk).await {
        Ok(events) => events,
        Err(failure) => return outcome(Err(for_people(failure))),
    };
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    tokio::spawn(pass_on(events, sender, Arc::clone(state)));
    let mut answer = protected_page(Response::new(Lines(receiver).boxed()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    no_store(answer.headers_mut());
    answer
}

async fn subscribe(state: &Arc<State>, desk: &Arc<Desk>) -> Result<broadcast::Receiver<Arc<str>>, Failure> {
    if let Some(sender) = &*desk.feed.lock() {
        return Ok(sender.subscribe());
    }
    // The events so far are not sent. The client reads the timeline after it has subscribed.
    let (seen, follower) = look(desk, EventFollower::default()).await;
    seen?;
    let mut feed = desk.feed.lock();
    if let Some(sender) = &*feed {
        return Ok(sender.subscribe());
    }
    let (sender, receiver) = broadcast::channel(MAX_WAITING);
    *feed = Some(sender.clone());
    tokio::spawn(follow(Arc::clone(desk), sender, follower, Arc::clone(state)));
    Ok(receiver)
}

impl Feed {
    fn lock(&self) -> std::sync::MutexGuard<'_, Option<broadcast::Sender<Arc<str>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks for new events until nobody listens or the server ends.
async fn follow(desk: Arc<Desk>, sender: broadcast::Sender<Arc<str>>, mut follower: EventFollower, state: Arc<State>) {
    loop {
        tokio::select! {
            () = state.end.cancelled() => break,
            () = tokio::time::sleep(POLL) => {}
        }
        {
            // Under the lock, so that no client subscribes to a feed that ends.
            let mut feed = desk.feed.lock();
            if sender.receiver_count() == 0 {
                *feed = None;
                return;
            }
        }
        // If the events can't be read now, for example because the store is being replaced, the next look may succeed.
        let news;
        (news, follower) = look(&desk, follower).await;
        for line in news.unwrap_or_default() {
            // An error means that nobody listens any more.
            drop(sender.send(line.into()));
        }
    }
    *desk.feed.lock() = None;
}

async fn look(desk: &Arc<Desk>, mut follower: EventFollower) -> (Result<Vec<String>, Failure>, EventFollower) {
    let desk = Arc::clone(desk);
    let look = move || {
        let news = desk.access.open(Purpose::Look).and_then(|workspace| Ok(workspace.new_events(&mut follower)?));
        (news, follower)
    };
    let failed = |_| (Err(Failure::internal("the look at the events failed")), EventFollower::default());
    tokio::task::spawn_blocking(look).await.unwrap_or_else(failed)
}

/// Passes events on to one client, with a sign of life between them. Ends if the client is too slow: it connects again
/// and reads the timeline.
async fn pass_on(mut events: broadcast::Receiver<Arc<str>>, sender: mpsc::Sender<Bytes>, state: Arc<State>) {
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    loop {
        let text = tokio::select! {
            () = state.end.cancelled() => return,
            () = sender.closed() => return,
            _ = heartbeat.tick() => ": heartbeat\n\n".to_owned(),
            event = events.recv() => match event {
                Ok(line) => format!("data: {line}\n\n"),
                Err(_) => return,
            },
        };
        if sender.try_send(text.into()).is_err() {
            return;
        }
    }
}

/// A body that consists of the pieces that arrive on a channel.
struct Lines(mpsc::Receiver<Bytes>);

impl Body for Lines {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}
