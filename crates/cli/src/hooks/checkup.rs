//! Checks the hooks for `doctor`.

use std::path::{Path, PathBuf};

use jiff::Zoned;

use super::{
    Agent, late_checkpoint,
    log::{Line, Log, Sort},
    session::{SessionState, Sessions, is_running},
};
use crate::output::{plural, when};

/// The maximum number of problems that are shown.
const MAX_SHOWN: usize = 3;

/// The input of the check.
pub(crate) struct Checkup<'a> {
    /// The root of the workspace.
    pub(crate) root: &'a Path,
    /// Agents that hooks were installed for, with the files that were edited.
    pub(crate) installed: Vec<(Agent, Vec<PathBuf>)>,
    pub(crate) sessions: Sessions,
    pub(crate) log: Log,
    pub(crate) now: &'a Zoned,
}

impl Checkup<'_> {
    /// Returns whether all is well, and the report.
    pub(crate) fn look(&self) -> (bool, String) {
        let mut lines = Vec::new();
        let mut is_well = true;
        let sessions = self.sessions.all();
        for (agent, files) in &self.installed {
            let heard = sessions.iter().find(|state| state.agent == agent.name());
            let (well, line) = self.about(*agent, files, heard);
            is_well &= well;
            lines.push(line);
        }
        if self.installed.is_empty() {
            lines.push("no agent is set up; list the agents with: backtrail install --list".to_owned());
        }
        let here: Vec<&SessionState> = sessions.iter().filter(|state| state.root == self.root).collect();
        if let Some(newest) = here.first() {
            let prompts = plural(usize::try_from(newest.turn).unwrap_or(usize::MAX), "prompt");
            lines.push(format!(
                "last event here: {} {}, {prompts} in its session",
                newest.agent,
                when(newest.heard, self.now)
            ));
            if let Some(problem) = newest.why_unprotected() {
                is_well = false;
                lines.push(format!("not protected at its last event: {problem}"));
            }
        }
        let log = self.log.lines();
        for late in unfinished(&log) {
            is_well = false;
            let place = late.workspace.as_deref().unwrap_or(Path::new("?")).display();
            lines.push(format!("not protected yet: a checkpoint in {place} is still being taken ({})", late.event));
        }
        let is_late_here = |line: &&Line| {
            line.message == late_checkpoint::MEANING
                && line.workspace.as_ref().is_some_and(|place| place.starts_with(self.root))
        };
        if let Some(line) = log.iter().rev().find(is_late_here) {
            let time = when(line.time, self.now);
            lines.push(format!("{time}: {}, {}: the checkpoint was {}", line.agent, line.event, line.message));
        }
        let problems: Vec<&Line> = log.iter().filter(|line| line.sort == Sort::Problem).collect();
        for line in problems.iter().rev().take(MAX_SHOWN) {
            let event = if line.event.is_empty() { String::new() } else { format!(", {}", line.event) };
            lines.push(format!("{}: {}{event}: {}", when(line.time, self.now), line.agent, line.message));
        }
        if problems.len() > MAX_SHOWN {
            lines.push(format!("{} more in {}", problems.len() - MAX_SHOWN, self.log.file().display()));
        }
        (is_well, lines.join("\n"))
    }

    fn about(&self, agent: Agent, files: &[PathBuf], heard: Option<&SessionState>) -> (bool, String) {
        let files = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
        match heard {
            Some(state) => (true, format!("{agent}: {files}; last event {}", when(state.heard, self.now))),
            // Codex silently skips hooks until the user trusts them.
            None if agent == Agent::Codex => {
                (false, format!("{agent}: {files}; no event yet: trust the hooks with /hooks in Codex"))
            }
            None => (true, format!("{agent}: {files}; no event yet")),
        }
    }
}

/// Returns the work that continues without the agent and has not finished.
fn unfinished(log: &[Line]) -> impl Iterator<Item = &Line> {
    let is_done = |late: &Line| log.iter().any(|line| line.sort == Sort::Done && line.process == late.process);
    log.iter()
        .filter(|line| line.sort == Sort::Late)
        .filter(move |line| !is_done(line) && line.process.is_some_and(is_running))
}
