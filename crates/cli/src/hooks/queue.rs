//! Keeps the events of a session in the order of their arrival, even after the agent has stopped waiting for a hook.
//! Without it, the checkpoint of a prompt could come after the checkpoints of the steps for that prompt.
//!
//! The session's file lists the processes that work on an event or wait for their turn. A process that crashed does not
//! block the queue, and its event counts as one without a checkpoint.

use serde::{Deserialize, Serialize};

use super::session::{ProcessMark, SessionState};

/// A process and the event that it works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InQueue {
    process: ProcessMark,
    /// The kind of the event.
    event: String,
}

impl SessionState {
    /// Appends a process, unless it is in the queue already.
    pub(super) fn queue_up(&mut self, process: ProcessMark, event: &str) {
        if self.queue.iter().all(|other| other.process != process) {
            self.queue.push(InQueue { process, event: event.to_owned() });
        }
    }

    /// Returns whether a running process is ahead of this one.
    pub(super) fn has_others_before(&self, process: ProcessMark) -> bool {
        self.queue.iter().take_while(|other| other.process != process).any(|other| other.process.is_running())
    }

    pub(super) fn leave_queue(&mut self, process: ProcessMark) {
        self.queue.retain(|other| other.process != process);
    }

    /// Removes the processes that crashed. Returns one problem for each, and stores the last one as the session's
    /// problem.
    pub(super) fn bury(&mut self) -> Vec<String> {
        let problems: Vec<String> = self.abandoned().map(problem_of).collect();
        self.queue.retain(|other| other.process.is_running());
        self.problem = problems.last().cloned().or(self.problem.take());
        problems
    }

    /// Removes a worker that is known to have ended, and stores the session's problem. `process` is `None` if no worker
    /// could be started.
    pub(super) fn bury_process(&mut self, process: Option<u32>, problem: &str) {
        self.queue.retain(|other| Some(other.process.id()) != process);
        self.problem = Some(problem.to_owned());
    }

    /// Returns why the last event got no checkpoint. Returns `None` if it got one.
    pub(crate) fn why_unprotected(&self) -> Option<String> {
        self.abandoned().last().map(problem_of).or_else(|| self.problem.clone())
    }

    fn abandoned(&self) -> impl Iterator<Item = &InQueue> {
        self.queue.iter().filter(|other| !other.process.is_running())
    }
}

fn problem_of(abandoned: &InQueue) -> String {
    format!("the process that was to take it ended without a word ({})", abandoned.event)
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn start() -> (Child, ProcessMark) {
        let child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mark = ProcessMark::of(child.id()).unwrap();
        (child, mark)
    }

    #[test]
    fn workers_run_in_order_and_dead_ones_do_not_block() {
        let mut state = SessionState::new("s", "claude", "/w".into(), jiff::Timestamp::UNIX_EPOCH);
        let (mut first_child, first) = start();
        let (mut second_child, second) = start();
        let own = ProcessMark::own().unwrap();
        state.queue_up(first, "prompt");
        state.queue_up(second, "before tool");
        state.queue_up(own, "after tool");
        state.queue_up(first, "prompt");
        assert_eq!(state.queue.len(), 3);
        assert!(!state.has_others_before(first) && state.has_others_before(second) && state.has_others_before(own));
        assert_eq!((state.bury(), state.why_unprotected()), (Vec::new(), None));

        // Not waited for: a zombie process counts as ended.
        first_child.kill().unwrap();
        while first.is_running() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        assert!(!state.has_others_before(second));
        assert!(state.why_unprotected().is_some_and(|why| why.ends_with("(prompt)")));
        assert_eq!(state.bury().len(), 1);
        assert_eq!((state.bury().len(), state.queue.len()), (0, 2), "a dead worker is removed once");
        assert!(state.why_unprotected().is_some_and(|why| why.ends_with("(prompt)")));

        assert!(state.has_others_before(own));
        state.leave_queue(second);
        assert!(!state.has_others_before(own));
        first_child.wait().unwrap();
        second_child.kill().unwrap();
        second_child.wait().unwrap();
    }
}
