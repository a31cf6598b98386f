//! The state of the server of the page.

use std::sync::Arc;

use hyper::{Request, body::Incoming};
use tokio_util::sync::CancellationToken;

use super::{
    desk::{Desks, ShownWorkspaces},
    guard::{PageGuard, PageTokens},
    routes,
};
use crate::{http::Listening, running::Running};

/// Serves the page and its API.
#[derive(Clone)]
pub(crate) struct Page(Arc<State>);

/// Everything that a request needs.
pub(super) struct State {
    pub(super) guard: PageGuard,
    pub(super) desks: Desks,
    pub(super) running: Running,
    /// Cancelled when the server ends.
    pub(super) end: CancellationToken,
}

impl Page {
    pub(crate) fn new(
        shown: ShownWorkspaces,
        port: u16,
        tokens: PageTokens,
        end: CancellationToken,
    ) -> backtrail::Result<Self> {
        let guard = PageGuard::new(port, tokens);
        Ok(Self(Arc::new(State { guard, desks: Desks::new(shown)?, running: Running::new(), end })))
    }

    /// Serves until `end` is cancelled.
    pub(crate) async fn serve(&self, listening: Listening, end: CancellationToken) {
        let state = Arc::clone(&self.0);
        let respond = move |request: Request<Incoming>| {
            let state = Arc::clone(&state);
            async move { routes::respond(&state, request).await }
        };
        listening.serve(respond, end).await;
    }

    /// Returns the running operations.
    pub(crate) fn running(&self) -> &Running {
        &self.0.running
    }
}
