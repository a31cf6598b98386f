//! The search itself: which state to test next, and what the results say.

use crate::model::CheckpointId;

/// A state of the files that can be tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Candidate {
    /// The files of a checkpoint.
    Checkpoint(CheckpointId),
    /// The files on disk, which differ from the last checkpoint.
    OnDisk,
}

impl Candidate {
    /// Returns the checkpoint. Returns `None` for the files on disk.
    pub fn checkpoint(self) -> Option<CheckpointId> {
        match self {
            Self::Checkpoint(id) => Some(id),
            Self::OnDisk => None,
        }
    }
}

/// The result of one test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum TestResult {
    /// The test passed.
    Good,
    /// The test failed.
    Bad,
    /// The state can't be tested.
    Skipped,
}

/// One test that was run.
#[derive(Debug, Clone, PartialEq)]
pub struct Tested {
    /// The state.
    pub candidate: Candidate,
    /// The result.
    pub result: TestResult,
    /// The exit status of the command. `None` if the test was not a command.
    pub exit_code: Option<u8>,
    /// The duration in seconds.
    pub seconds: f64,
}

/// The answer of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Culprit {
    /// The first state for which the test fails. `None` if the last state passes.
    pub first_bad: Option<Candidate>,
    /// The last checkpoint before it for which the test passes. `None` if the first state fails already.
    pub last_good: Option<CheckpointId>,
    /// The number of states between the two that could not be tested. Each of them may be the first bad one.
    pub untested: usize,
}

/// A search for the first state for which a test fails. Both ends are tested first.
#[derive(Debug, Clone)]
pub struct Bisection {
    candidates: Vec<Candidate>,
    results: Vec<Option<TestResult>>,
    tested: Vec<Tested>,
}

impl Bisection {
    /// Starts a search in these states, oldest first. There is at least one.
    pub(super) fn new(candidates: Vec<Candidate>) -> Self {
        Self { results: vec![None; candidates.len()], candidates, tested: Vec::new() }
    }

    /// Returns the number of states.
    pub fn count(&self) -> usize {
        self.candidates.len()
    }

    /// Returns the tests that were run, in their order.
    pub fn tested(&self) -> &[Tested] {
        &self.tested
    }

    /// Returns the state to test next. Returns `None` if the search is over.
    pub fn next_candidate(&self) -> Option<Candidate> {
        self.next_position().map(|position| self.candidates[position])
    }

    /// Records the result for the state that [`Self::next_candidate`] returned.
    pub fn record(&mut self, result: TestResult, exit_code: Option<u8>, seconds: f64) {
        let Some(position) = self.next_position() else { return };
        self.results[position] = Some(result);
        self.tested.push(Tested { candidate: self.candidates[position], result, exit_code, seconds });
    }

    /// Returns an end of the line that can't be tested, so that there is no answer. `true` stands for the first one.
    pub fn untestable_end(&self) -> Option<(bool, Candidate)> {
        let ends = [(true, self.candidates.first()), (false, self.candidates.last())];
        let results = [self.results.first(), self.results.last()];
        let is_skipped = |result: &Option<&Option<TestResult>>| *result == Some(&Some(TestResult::Skipped));
        let (end, _) = ends.into_iter().zip(results).find(|(_, result)| is_skipped(result))?;
        Some((end.0, *end.1?))
    }

    /// Returns the answer that the results give.
    pub fn culprit(&self) -> Culprit {
        let bad = self.first_bad();
        let good = self.last_good(bad);
        let untested = match (good, bad) {
            (Some(good), Some(bad)) => bad - good - 1,
            _ => 0,
        };
        Culprit {
            first_bad: bad.map(|bad| self.candidates[bad]),
            last_good: good.and_then(|good| self.candidates[good].checkpoint()),
            untested,
        }
    }

    fn first_bad(&self) -> Option<usize> {
        self.results.iter().position(|result| *result == Some(TestResult::Bad))
    }

    fn last_good(&self, bad: Option<usize>) -> Option<usize> {
        self.results[..bad.unwrap_or(self.results.len())].iter().rposition(|result| *result == Some(TestResult::Good))
    }

    fn next_position(&self) -> Option<usize> {
        let last = self.candidates.len().checked_sub(1)?;
        for (end, expected) in [(0, TestResult::Good), (last, TestResult::Bad)] {
            match self.results[end] {
                None => return Some(end),
                Some(result) if result != expected => return None,
                Some(_) => {}
            }
        }
        let bad = self.first_bad()?;
        let good = self.last_good(Some(bad))?;
        let unknown: Vec<usize> = (good + 1..bad).filter(|position| self.results[*position].is_none()).collect();
        // Half of the unknown ones, so that untestable ones in the middle cost one run each.
        unknown.get(unknown.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(count: usize) -> Bisection {
        let id = |number: usize| format!("{number:040x}").parse().unwrap();
        Bisection::new((0..count).map(|number| Candidate::Checkpoint(id(number))).collect())
    }

    /// Runs a search in which everything from `bad` on fails, except for the skipped ones.
    fn search(count: usize, bad: usize, skipped: &dyn Fn(usize) -> bool) -> Bisection {
        let mut bisection = line(count);
        while let Some(position) = bisection.next_position() {
            let result = match position {
                _ if skipped(position) => TestResult::Skipped,
                _ if position >= bad => TestResult::Bad,
                _ => TestResult::Good,
            };
            bisection.record(result, None, 0.0);
        }
        bisection
    }

    #[test]
    fn the_first_bad_one_is_found_with_few_runs() {
        for count in 2..40_usize {
            let most = count.next_power_of_two().ilog2() as usize + 2;
            for bad in 1..count {
                let done = search(count, bad, &|_| false);
                let expected = Culprit {
                    first_bad: Some(done.candidates[bad]),
                    last_good: done.candidates[bad - 1].checkpoint(),
                    untested: 0,
                };
                assert_eq!(done.culprit(), expected, "{bad} of {count}");
                assert!(done.tested().len() <= most, "{} runs for {count}", done.tested().len());
            }
        }
    }

    #[test]
    fn untestable_ones_cost_one_run_each() {
        for count in 3..24_usize {
            for bad in 1..count {
                for from in 1..count - 1 {
                    for to in from..count - 1 {
                        let skips = |position: usize| (from..=to).contains(&position);
                        let done = search(count, bad, &skips);
                        let culprit = done.culprit();
                        let first = (bad..count).find(|position| !skips(*position)).unwrap();
                        let last = (0..bad).rev().find(|position| !skips(*position)).unwrap();
                        assert_eq!(culprit.first_bad, Some(done.candidates[first]));
                        assert_eq!(culprit.last_good, done.candidates[last].checkpoint());
                        assert_eq!(culprit.untested, first - last - 1);
                        let most = count.next_power_of_two().ilog2() as usize + 2;
                        let skipped = done.tested().iter().filter(|it| it.result == TestResult::Skipped).count();
                        assert!(done.tested().len() <= most + skipped);
                    }
                }
            }
        }
    }

    #[test]
    fn the_ends_decide_if_they_are_not_as_expected() {
        let all_bad = search(5, 0, &|_| false);
        assert_eq!(all_bad.culprit(), Culprit { first_bad: Some(all_bad.candidates[0]), last_good: None, untested: 0 });
        assert_eq!(all_bad.tested().len(), 1);
        let all_good = search(5, 9, &|_| false);
        assert_eq!((all_good.culprit().first_bad, all_good.tested().len()), (None, 2));
        assert_eq!(search(1, 9, &|_| false).culprit().first_bad, None);
        let end = search(5, 3, &|position| position == 4);
        assert_eq!(end.untestable_end(), Some((false, end.candidates[4])));
        assert_eq!(search(5, 3, &|position| position == 0).untestable_end().map(|(first, _)| first), Some(true));
        assert_eq!(search(5, 3, &|_| false).untestable_end(), None);
    }
}
