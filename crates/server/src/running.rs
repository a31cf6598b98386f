//! Runs the library's blocking operations for requests: how many at once, what is told meanwhile, and when to stop.

use std::{sync::Arc, time::Duration};

use jiff::Zoned;
use rmcp::{
    RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
    service::{Peer, RequestContext},
};
use tokio::sync::Semaphore;

use crate::{failure::Failure, watch::Watch};

/// Operations under way at once; further ones wait.
const MAX_AT_ONCE: u32 = 4;
/// How often a client that wants to know is told.
const TELL_EVERY: Duration = Duration::from_millis(250);
/// The name of a client is cut here.
const MAX_CLIENT_CHARS: usize = 100;

/// What an operation knows of the request that it serves.
pub(crate) struct Call {
    /// When it began, and where that is.
    pub(crate) now: Zoned,
    /// The program that asks, by its own name.
    pub(crate) client: Option<String>,
    /// Where the operation tells how far it is.
    pub(crate) watch: Arc<Watch>,
}

/// The operations under way.
#[derive(Clone)]
pub(crate) struct Running {
    places: Arc<Semaphore>,
}

impl Running {
    pub(crate) fn new() -> Self {
        Self { places: Arc::new(Semaphore::new(MAX_AT_ONCE as usize)) }
    }

    /// Runs `work` on a thread of its own. It is asked to stop when the request is cancelled or forgotten.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        context: &RequestContext<RoleServer>,
        work: impl FnOnce(&Call) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let place = tokio::select! {
            () = context.ct.cancelled() => return Err(Failure::stopped()),
            place = Arc::clone(&self.places).acquire_owned() => place.map_err(|_| Failure::stopped())?,
        };
        let watch = Arc::new(Watch::default());
        let call = Call { now: Zoned::now(), client: client_name(context), watch: Arc::clone(&watch) };
        let mut done = tokio::task::spawn_blocking(move || {
            // Free again when the work is over, not when nobody waits for it any more.
            let _place = place;
            work(&call)
        });
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
        outcome.unwrap_or_else(|_| Err(Failure::internal("the operation ended unexpectedly")))
    }

    /// Waits until nothing is under way, and lets nothing begin any more.
    pub(crate) async fn finish(&self, patience: Duration) {
        // Whatever is still under way then is finished or taken back by the next command, as after a crash.
        drop(tokio::time::timeout(patience, self.places.acquire_many(MAX_AT_ONCE)).await);
        self.places.close();
    }
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

/// Tells a client that asked for it how far the work is.
struct Teller {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    watch: Arc<Watch>,
    /// The number must grow with every notification.
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

    /// What happened at the end must not be lost.
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
        // A client that went away is told nothing, and is no reason to stop here: its request is cancelled elsewhere.
        drop(peer.notify_progress(told).await);
    }
}
