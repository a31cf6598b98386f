//! Finds the first checkpoint for which a test fails.
//!
//! The caller runs the tests: [`Bisection`] says which state is next, and [`Scratch`] writes it into a directory.

mod links;
mod scratch;
mod search;
mod source;

pub use links::Links;
pub use scratch::Scratch;
pub use search::{Bisection, Candidate, Culprit, TestResult, Tested};

use crate::{
    address::range::{line_between, line_to},
    error::{Error, Result},
    model::{Change, CheckpointId, Scope},
    operations::diff::PatchLimits,
    workspace::Workspace,
};

impl Workspace {
    /// Returns the states to search: those on the line to `bad`, from `good` on.
    ///
    /// Without `good`, the line begins with the oldest checkpoint. Without `bad`, it ends with the files on disk.
    pub fn bisection(&self, good: Option<CheckpointId>, bad: Option<CheckpointId>) -> Result<Bisection> {
        let timeline = self.timeline_if_any()?;
        let unknown = || Error::UnknownCheckpoint { word: "@".into(), nearest: None };
        let last = match bad {
            Some(bad) => bad,
            None => timeline.current().ok_or_else(unknown)?.id,
        };
        let mut line: Vec<CheckpointId> = match good {
            Some(good) => line_between(&timeline, &good, &last)?,
            None => line_to(&timeline, &last)?.map(|entry| entry.id).collect(),
        };
        line.reverse();
        let first = good.into_iter().chain(line).map(Candidate::Checkpoint);
        let is_unsaved = bad.is_none() && !self.status(None)?.changes.is_empty();
        Ok(Bisection::new(first.chain(is_unsaved.then_some(Candidate::OnDisk)).collect()))
    }

    /// Returns the changes that made the test fail.
    ///
    /// If the first state fails already, these are the changes of that checkpoint.
    pub fn changes_of_culprit(&self, culprit: &Culprit) -> Result<Vec<Change>> {
        let to = match culprit.first_bad {
            None => return Ok(Vec::new()),
            Some(Candidate::OnDisk) => None,
            Some(Candidate::Checkpoint(id)) => Some(id),
        };
        match (culprit.last_good, to) {
            (None, Some(id)) => Ok(self.show(&id)?.changes),
            (from, to) => Ok(self.diff_within(from, to, &Scope::Whole, &PatchLimits::NO_PATCH)?.changes),
        }
    }
}
