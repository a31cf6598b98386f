//! The JSON answer of `bisect`.

use serde::Serialize;

use super::ChangeJson;
use crate::{
    model::Change,
    operations::bisect::{Bisection, Candidate, TestResult, Tested},
};

/// The JSON answer of `bisect`.
#[derive(Debug, Clone, Serialize)]
pub struct BisectJson {
    /// The first checkpoint for which the command fails; null if the last state passes, or if that checkpoint would be
    /// the files on disk.
    pub first_bad: Option<String>,
    /// True if the files on disk are the first state for which the command fails.
    pub first_bad_is_unsaved: bool,
    /// The last checkpoint before it for which the command passes; null if the first state fails already.
    pub last_good: Option<String>,
    /// The tests, in the order in which they were run.
    pub tested: Vec<TestedJson>,
    /// The changes from the last good state to the first bad one.
    pub changes: Vec<ChangeJson>,
}

impl BisectJson {
    /// Returns the answer for a finished search.
    pub fn new(bisection: &Bisection, changes: &[Change]) -> Self {
        let culprit = bisection.culprit();
        Self {
            first_bad: culprit.first_bad.and_then(Candidate::checkpoint).map(|id| id.to_string()),
            first_bad_is_unsaved: culprit.first_bad == Some(Candidate::OnDisk),
            last_good: culprit.last_good.map(|id| id.to_string()),
            tested: bisection.tested().iter().map(TestedJson::from).collect(),
            changes: changes.iter().map(ChangeJson::from).collect(),
        }
    }
}

/// One test.
#[derive(Debug, Clone, Serialize)]
pub struct TestedJson {
    /// The checkpoint; null for the files on disk.
    pub checkpoint: Option<String>,
    /// The result.
    pub result: TestResult,
    /// The exit status of the command; null if the test was not a command.
    pub exit_code: Option<u8>,
    /// The duration in seconds.
    pub seconds: f64,
}

impl From<&Tested> for TestedJson {
    fn from(tested: &Tested) -> Self {
        Self {
            checkpoint: tested.candidate.checkpoint().map(|id| id.to_string()),
            result: tested.result,
            exit_code: tested.exit_code,
            seconds: tested.seconds,
        }
    }
}
