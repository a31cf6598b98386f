//! Remembers the restore plans that clients have seen, by their hash. Only these can be applied.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use backtrail::RestoreRequest;

/// The maximum number of remembered plans. An agent that asks for more has to ask for an older one again.
const MAX_PLANS: usize = 64;

/// The plans that were shown most recently.
#[derive(Default)]
pub(crate) struct Plans(Mutex<VecDeque<(String, RestoreRequest)>>);

impl Plans {
    /// Remembers the request that a plan was made for.
    pub(crate) fn remember(&self, hash: &str, request: RestoreRequest) {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plans.retain(|(known, _)| known != hash);
        plans.push_back((hash.to_owned(), request));
        if plans.len() > MAX_PLANS {
            plans.pop_front();
        }
    }

    /// Returns the request of a plan, bound to its hash. Returns `None` if the plan is not known.
    pub(crate) fn find(&self, hash: &str) -> Option<RestoreRequest> {
        let plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, request) = plans.iter().find(|(known, _)| known == hash)?;
        Some(RestoreRequest { plan: Some(hash.to_owned()), ..request.clone() })
    }
}
