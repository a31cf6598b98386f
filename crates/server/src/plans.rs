//! Remembers the plans that clients have seen, by their hash. Only these can be applied.

use std::{
    collections::VecDeque,
    mem::discriminant,
    sync::{Mutex, PoisonError},
};

use backtrail::{AdoptRequest, ErrorCode, RestoreRequest, RevertRequest};

use crate::{access::limited, failure::Failure};

/// The maximum number of remembered plans. An agent that asks for more has to ask for an older one again.
const MAX_PLANS: usize = 64;
const MAX_PLAN_BYTES: usize = 200;

/// The request that a plan was made for.
#[derive(Debug, Clone)]
pub(crate) enum Planned {
    Restore(RestoreRequest),
    Revert(RevertRequest),
    Adopt(AdoptRequest),
}

/// The plans that were shown most recently.
#[derive(Default)]
pub(crate) struct Plans(Mutex<VecDeque<(String, Planned)>>);

impl Plans {
    pub(crate) fn remember_restore(&self, hash: &str, request: RestoreRequest) {
        self.remember(hash, Planned::Restore(RestoreRequest { plan: Some(hash.to_owned()), ..request }));
    }

    pub(crate) fn remember_revert(&self, hash: &str, request: RevertRequest) {
        self.remember(hash, Planned::Revert(RevertRequest { plan: Some(hash.to_owned()), ..request }));
    }

    pub(crate) fn remember_adopt(&self, hash: &str, request: AdoptRequest) {
        self.remember(hash, Planned::Adopt(AdoptRequest { plan: Some(hash.to_owned()), ..request }));
    }

    /// Returns the request of a plan that `restore_plan` has shown, bound to its hash.
    pub(crate) fn restore(&self, hash: &str) -> Result<RestoreRequest, Failure> {
        let is_one = |planned| if let Planned::Restore(request) = planned { Some(request) } else { None };
        self.find(hash, "call restore_plan first, and pass its plan", is_one)
    }

    /// Returns the request of a plan that `revert_plan` has shown, bound to its hash.
    pub(crate) fn revert(&self, hash: &str) -> Result<RevertRequest, Failure> {
        let is_one = |planned| if let Planned::Revert(request) = planned { Some(request) } else { None };
        self.find(hash, "call revert_plan first, and pass its plan", is_one)
    }

    /// Returns the request of a plan that `adopt` has shown, bound to its hash.
    pub(crate) fn adopt(&self, hash: &str) -> Result<AdoptRequest, Failure> {
        let is_one = |planned| if let Planned::Adopt(request) = planned { Some(request) } else { None };
        self.find(hash, "call adopt with the directory first, and pass its plan", is_one)
    }

    /// Returns the request of any plan that was shown, bound to its hash.
    pub(crate) fn any(&self, hash: &str) -> Result<Planned, Failure> {
        self.find(hash, "make the plan again", Some)
    }

    fn remember(&self, hash: &str, planned: Planned) {
        let mut plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        plans.retain(|(known, other)| known != hash || discriminant(other) != discriminant(&planned));
        plans.push_back((hash.to_owned(), planned));
        if plans.len() > MAX_PLANS {
            plans.pop_front();
        }
    }

    fn find<T>(&self, hash: &str, hint: &str, is_one: impl Fn(Planned) -> Option<T>) -> Result<T, Failure> {
        limited("plan", hash, MAX_PLAN_BYTES)?;
        let plans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut fitting = plans.iter().filter(|(known, _)| known == hash);
        fitting.find_map(|(_, planned)| is_one(planned.clone())).ok_or_else(|| {
            Failure::new(ErrorCode::PlanChanged, format!("this server has no recent plan {hash:?}")).with_hint(hint)
        })
    }
}
