//! Remembers the plans that clients have seen, by their hash. Only these can be applied.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use backtrail::{RestoreRequest, RevertRequest};

/// The maximum number of remembered plans. A client that asks for more has to ask for an older one again.
const MAX_PLANS: usize = 64;

/// A request that a plan can be made for.
pub(crate) trait Planned: Clone {
    /// Returns the request, bound to the plan with this hash.
    fn bound_to(self, hash: String) -> Self;
}

impl Planned for RestoreRequest {
    fn bound_to(self, hash: String) -> Self {
        Self { plan: Some(hash), ..self }
    }
}

impl Planned for RevertRequest {
    fn bound_to(self, hash: String) -> Self {
        Self { plan: Some(hash), ..self }
    }
}

/// The plans that were shown most recently.
pub(crate) struct Plans<R>(Mutex<VecDeque<(String, R)>>);

impl<R> Default for Plans<R> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<R: Planned> Plans<R> {
    /// Remembers the request that a plan was made for.
    pub(crate) fn remember(&self, hash: &str, request: R) {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plans.retain(|(known, _)| known != hash);
        plans.push_back((hash.to_owned(), request));
        if plans.len() > MAX_PLANS {
            plans.pop_front();
        }
    }

    /// Returns the request of a plan, bound to its hash. Returns `None` if the plan is not known.
    pub(crate) fn find(&self, hash: &str) -> Option<R> {
        let plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, request) = plans.iter().find(|(known, _)| known == hash)?;
        Some(request.clone().bound_to(hash.to_owned()))
    }
}
