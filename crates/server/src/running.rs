//! Runs the library's blocking operations for requests. Limits their number, reports progress, and stops them.

use std::{sync::Arc, time::Duration};

use jiff::Zoned;
use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::{JoinError, JoinHandle},
};

use crate::{failure::Failure, watch::Watch};

/// The maximum number of simultaneous operations. Further ones wait.
const MAX_AT_ONCE: u32 = 4;
/// The interval of progress notifications.
const TELL_EVERY: Duration = Duration::from_millis(250);
/// The maximum length of a client's name.
const MAX_CLIENT_CHARS: usize = 100;

/// The facts about a request that its operation needs.
pub(crate) struct Call {
    /// The time when the operation started, with the time zone.
    pub(crate) now: Zoned,
    /// The name that the client program gives itself.
    pub(crate) client: Option<String>,
    /// The progress of the operation, and the request to stop it.
    pub(crate) watch: Arc<Watch>,
}

/// The running operations.
#[derive(Clone)]
pub(crate) struct Running {
    places: Arc<Semaphore>,
}

impl Running {
    pub(crate) fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(MAX_AT_ONCE as usize)) }
    }

    /// Runs `work` on a separate thread. Asks it to stop if the client cancels the request or this future is dropped.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&Call) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let place = tokio::select! {
            () = context.ct.cancelled() => return Err(Failure::stopped()),
            place = self.place() => place?,
        };
        let watch = Arc::new(Watch::default());
        let call = Call { now: Zoned::now(), client: client_name(context), watch: Arc::clone(&watch) };
        let mut done = start(place, call, work);
        let stop = StopWhenDropped(Arc::clone(&watch));
        let mut teller = Teller::new(context, watch);
        let mut tick = tokio::time::interval(TELL_EVERY);
        let mut is_cancelled = false;
        let outcome = loop {
            tokio::select! {
                outcome = &mut done => break outcome,
                () = context.ct.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    stop.0.stop();
                }
                _ = tick.tick() => teller.tell().await,
            }
        };
        teller.tell_rest().await;
        ended(outcome)
    }

    /// Runs `work` on a separate thread for a client that needs no progress. Asks it to stop if this future is dropped,
    /// because the client disconnected.
    pub(crate) async fn run_quietly<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Call) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let place = self.place().await?;
        let watch = Arc::new(Watch::default());
        let _stop = StopWhenDropped(Arc::clone(&watch));
        ended(start(place, Call { now: Zoned::now(), client: None, watch }, work).await)
    }

    async fn place(&self) -> Result<OwnedSemaphorePermit, Failure> {
        Arc::clone(&self.places).acquire_owned().await.map_err(|_| Failure::stopped())
    }

    /// Waits until no operation runs, and prevents new ones from starting.
    pub(crate) async fn finish(&self, patience: Duration) {
        // An operation that still runs after this time is finished or taken back by the next command, as after a crash.
        drop(tokio::time::timeout(patience, self.places.acquire_many(MAX_AT_ONCE)).await);
        self.places.close();
    }
}

fn start<T: Send + 'static>(
    place: OwnedSemaphorePermit,
    call: Call,
    work: impl FnOnce(&Call) -> Result<T, Failure> + Send + 'static,
) -> JoinHandle<Result<T, Failure>> {
    // The subscriber of the command that serves, which is known to its own thread alone.
    let subscriber = tracing::dispatcher::get_default(Clone::clone);
    tokio::task::spawn_blocking(move || {
        // The permit is released when the work ends, even if the request was dropped before.
        let _place = place;
        tracing::dispatcher::with_default(&subscriber, || work(&call))
    })
}

fn ended<T>(outcome: Result<Result<T, Failure>, JoinError>) -> Result<T, Failure> {
    outcome.unwrap_or_else(|_| Err(Failure::internal("the operation ended unexpectedly")))
}

fn client_name(context: &RequestContext<RoleServer>) -> Option<String> {
    let name = context.client_info()?.name;
    Some(name.chars().filter(|character| !character.is_control()).take(MAX_CLIENT_CHARS).collect())
}

struct StopWhenDropped(Arc<Watch>);

impl Drop for StopWhenDropped {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Sends progress notifications to a client that asked for them.
struct Teller {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    watch: Arc<Watch>,
    /// The last number that was sent. The protocol requires it to increase with every notification.
    told: Option<u64>,
}

impl Teller {
    fn new(context: &RequestContext<RoleServer>, watch: Arc<Watch>) -> Self {
        let to = context.meta.get_progress_token().map(|token| (context.peer.clone(), token));
        Self { to, watch, told: None }
    }

    async fn tell(&mut self) {
        let news = self.watch.news();
        let (entries, bytes) = self.watch.counts();
        if self.told.is_none_or(|told| entries > told) {
            self.notify(entries, format!("entries: {entries}, bytes read: {bytes}")).await;
        }
        for sentence in news {
            self.notify(entries, sentence).await;
        }
    }

    /// Sends the events that happened since the last notification.
    async fn tell_rest(&mut self) {
        let (entries, _) = self.watch.counts();
        for sentence in self.watch.news() {
            self.notify(entries, sentence).await;
        }
    }

    async fn notify(&mut self, entries: u64, sentence: String) {
        let Some((peer, token)) = &self.to else { return };
        let number = self.told.map_or(entries, |told| entries.max(told + 1));
        self.told = Some(number);
        let told = ProgressNotificationParam::new(token.clone(), number as f64).with_message(sentence);
        // Errors are ignored: if the client has disconnected, its request is cancelled elsewhere.
        drop(peer.notify_progress(told).await);
    }
}
