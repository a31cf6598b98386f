//! The restore plans that were shown, by their hash: what was not shown is not applied.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use backtrail::RestoreRequest;

/// An agent that looks at more plans before it applies one looks again.
const MAX_PLANS: usize = 64;

/// The plans that were shown last.
#[derive(Default)]
pub(crate) struct Plans(Mutex<VecDeque<(String, RestoreRequest)>>);

impl Plans {
    /// Remembers what a plan was made of.
    pub(crate) fn remember(&self, hash: &str, request: RestoreRequest) {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plans.retain(|(known, _)| known != hash);
        plans.push_back((hash.to_owned(), request));
        if plans.len() > MAX_PLANS {
            plans.pop_front();
        }
    }

    /// What was to be restored, bound to the plan as it was shown.
    pub(crate) fn find(&self, hash: &str) -> Option<RestoreRequest> {
        let plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, request) = plans.iter().find(|(known, _)| known == hash)?;
        Some(RestoreRequest { plan: Some(hash.to_owned()), ..request.clone() })
    }
}
