//! Checks everything that a store holds.

use crate::{
    error::{Result, While},
    spans::{Outcome, operation, read_span},
    store,
    workspace::Workspace,
};

/// One damaged part of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The checkpoint that is lost, or the damaged file of the store.
    pub id: String,
    /// The problem.
    pub reason: String,
}

/// The outcome of [`Workspace::verify`].
#[derive(Debug, Clone)]
pub struct Verification {
    /// The number of checkpoints.
    pub checkpoints: usize,
    /// The damaged parts. Empty if there are none.
    pub damaged: Vec<Damage>,
}

impl Workspace {
    /// Reads every object, ref and record, and checks each.
    pub fn verify(&self) -> Result<Verification> {
        let span = read_span!(self.store_directory(), "verify", checkpoints, damaged);
        let found = operation(&span, || self.verify_now())?;
        Outcome::on(&span).count("checkpoints", found.checkpoints).count("damaged", found.damaged.len());
        Ok(found)
    }

    fn verify_now(&self) -> Result<Verification> {
        let Some(store) = self.store()? else {
            return Ok(Verification { checkpoints: 0, damaged: Vec::new() });
        };
        let found = store::verify(&store).or_fail("verify", self.store_directory())?;
        let damaged = found.damaged.into_iter().map(|(id, reason)| Damage { id, reason }).collect();
        Ok(Verification { checkpoints: found.checkpoints, damaged })
    }
}
