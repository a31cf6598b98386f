//! Checking everything that a store holds.

use crate::{
    error::{Result, While},
    store,
    workspace::Workspace,
};

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The checkpoint that it costs, or the file of the store.
    pub id: String,
    /// What is wrong.
    pub reason: String,
}

/// The outcome of [`Workspace::verify`].
#[derive(Debug, Clone)]
pub struct Verification {
    /// How many checkpoints there are.
    pub checkpoints: usize,
    /// What is wrong; empty where all is well.
    pub damaged: Vec<Damage>,
}

impl Workspace {
    /// Reads every object, ref and record, and compares it with what it should be.
    pub fn verify(&self) -> Result<Verification> {
        let Some(store) = self.store()? else {
            return Ok(Verification { checkpoints: 0, damaged: Vec::new() });
        };
        let found = store::verify(&store).or_fail("verify", self.store_directory())?;
        let damaged = found.damaged.into_iter().map(|(id, reason)| Damage { id, reason }).collect();
        Ok(Verification { checkpoints: found.checkpoints, damaged })
    }
}
