//! Runs the steps of a pipeline.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use backtrail::{CheckpointId, Kind, SaveRequest, Saved, Skipped, Workspace};
use jiff::Timestamp;

use super::{
    condition::Verdict,
    plan::{OnFailure, Pipeline, PipelineStep, Work},
    template::Template,
    variables::Variables,
};
use crate::{
    child::{self, Ended, HeldSignals, Limit},
    failure::Failure,
    invocation::Invocation,
    output::{RollbackErrorJson, dropped_warnings},
    rollback_point::{Remains, Repeat, RolledBack, WayBack, take_automatic},
};

/// The prefix of the message of a step's checkpoint. Other tools find the checkpoint by it.
const MESSAGE_PREFIX: &str = "architect:checkpoint:";
/// The maximum size of a variable. A larger one might not fit into the environment with the rest.
const MAX_OUTPUT_BYTES: usize = 64 << 10;
/// The exit status of programs that were interrupted and have cleaned up.
const INTERRUPTED: u8 = 130;
/// The exit status of a shell that can't run a command. The next number has the same meaning.
const CAN_NOT_RUN: u8 = 126;

/// The status of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Success,
    Failed,
    Skipped,
    RolledBack,
    DryRun,
}

impl Status {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::RolledBack => "rolled_back",
            Self::DryRun => "dry_run",
        }
    }
}

/// The result of a step.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) status: Status,
    pub(crate) checkpoint: Option<CheckpointId>,
    pub(crate) exit_code: Option<u8>,
    pub(crate) time: Duration,
    /// Paths that the step's checkpoints could not capture any more.
    pub(crate) dropped: Vec<Skipped>,
    /// The changes that a rollback did not take back.
    pub(crate) remains: Remains,
    /// The reason why a rollback failed.
    pub(crate) rollback_error: Option<RollbackErrorJson>,
}

impl Outcome {
    /// Returns the result of a step that was not run.
    pub(crate) fn of_none(step: &PipelineStep, status: Status) -> Self {
        Self {
            name: step.name.clone(),
            status,
            checkpoint: None,
            exit_code: None,
            time: Duration::ZERO,
            dropped: Vec::new(),
            remains: Remains::default(),
            rollback_error: None,
        }
    }

    pub(crate) fn has_failed(&self) -> bool {
        matches!(self.status, Status::Failed | Status::RolledBack)
    }
}

/// The result of a pipeline.
pub(crate) struct Finished {
    pub(crate) outcomes: Vec<Outcome>,
    /// The step to resume from if the pipeline ended early. The number of steps if the last step was completed.
    pub(crate) stopped_at: Option<usize>,
    /// The exit status for the signal that interrupted the pipeline.
    pub(crate) interrupted: Option<u8>,
}

/// Runs the steps of a pipeline.
pub(crate) struct Runner<'r> {
    pub(crate) workspace: &'r Workspace,
    pub(crate) invocation: &'r Invocation,
    pub(crate) pipeline: &'r Pipeline,
    pub(crate) signals: &'r HeldSignals,
}

impl Runner<'_> {
    pub(crate) fn run(&self) -> Result<Finished, Failure> {
        let mut variables = self.pipeline.variables.clone();
        let mut finished = Finished { outcomes: Vec::new(), stopped_at: None, interrupted: None };
        for (index, step) in self.pipeline.steps.iter().enumerate() {
            if index < self.pipeline.first || finished.stopped_at.is_some() {
                finished.outcomes.push(Outcome::of_none(step, Status::Skipped));
                continue;
            }
            let outcome = self.step(index, step, &mut variables)?;
            finished.interrupted = self.interruption(&outcome);
            let is_over = outcome.has_failed() && step.on_failure != OnFailure::Continue;
            if is_over || finished.interrupted.is_some() {
                // A step that succeeded in spite of the interruption does not have to run again.
                finished.stopped_at = Some(if outcome.has_failed() { index } else { index + 1 });
            }
            finished.outcomes.push(outcome);
        }
        Ok(finished)
    }

    /// Returns the exit status of an interruption by the user. `INTERRUPTED` as the step's own status counts as well,
    /// because only the step receives the signals of a terminal.
    fn interruption(&self, outcome: &Outcome) -> Option<u8> {
        let is_interrupt = outcome.exit_code == Some(INTERRUPTED);
        let by_signal = self.signals.first_heard().map(|signal| Ended::Killed(signal).exit_code());
        by_signal.or(is_interrupt.then_some(INTERRUPTED))
    }

    fn step(&self, index: usize, step: &PipelineStep, variables: &mut Variables) -> Result<Outcome, Failure> {
        let output = &self.invocation.output;
        output.note(&format!("step {} of {}: {}", index + 1, self.pipeline.steps.len(), step.name));
        let began = Instant::now();
        match self.is_wanted(step, variables) {
            Ok(true) => {}
            Ok(false) => {
                output.note("skipped: its condition is false");
                return Ok(Outcome::of_none(step, Status::Skipped));
            }
            Err(attempt) => return Ok(self.failed(step, &attempt, Before::default(), began)),
        }
        let mut before = self.checkpoint_before(index, step)?;
        let attempt = self.attempt(step, variables);
        if !attempt.is_success() {
            return Ok(self.failed(step, &attempt, before, began));
        }
        let saved = step.checkpoint.then(|| self.checkpoint_after(step)).transpose();
        let time = began.elapsed();
        if let Some(way_back) = before.way_back.take() {
            way_back.let_go();
        }
        let saved = saved?;
        before.dropped.extend(saved.iter().flat_map(|saved| saved.dropped.iter().cloned()));
        Ok(Outcome {
            checkpoint: saved.map(|saved| saved.checkpoint.id),
            dropped: before.dropped,
            exit_code: Some(0),
            time,
            ..Outcome::of_none(step, Status::Success)
        })
    }

    fn failed(&self, step: &PipelineStep, attempt: &Attempt, before: Before<'_>, began: Instant) -> Outcome {
        self.invocation.output.warn(&format!("step {:?}: {}", step.name, attempt.describe()));
        let mut outcome = Outcome {
            exit_code: Some(attempt.exit_code()),
            dropped: before.dropped,
            time: began.elapsed(),
            ..Outcome::of_none(step, Status::Failed)
        };
        match before.way_back.map(WayBack::roll_back) {
            None => {}
            Some(RolledBack::Done(remains)) => {
                outcome.remains = remains;
                outcome.status = Status::RolledBack;
            }
            Some(RolledBack::Failed(failure)) => outcome.rollback_error = Some(RollbackErrorJson::from(&failure)),
        }
        outcome
    }

    /// Takes the automatic checkpoint if one is due. If the step may be rolled back, the checkpoint is kept as the way
    /// back.
    fn checkpoint_before(&self, index: usize, step: &PipelineStep) -> Result<Before<'_>, Failure> {
        let message = format!("before step {:?} of {}", step.name, self.pipeline.name);
        if step.on_failure == OnFailure::Rollback {
            let way_back = WayBack::take(self.workspace, self.invocation, message, Repeat::No)?;
            return Ok(Before { dropped: way_back.dropped.clone(), way_back: Some(way_back) });
        }
        let steps_done = (index - self.pipeline.first) as u64;
        if self.pipeline.every_n_steps.is_some_and(|every| steps_done.is_multiple_of(every)) {
            let saved = take_automatic(self.workspace, self.invocation, message, Repeat::No)?;
            return Ok(Before { dropped: saved.dropped, way_back: None });
        }
        Ok(Before::default())
    }

    /// Takes the checkpoint that a step asks for, after it has succeeded.
    fn checkpoint_after(&self, step: &PipelineStep) -> Result<Saved, Failure> {
        let request = SaveRequest {
            message: Some(format!("{MESSAGE_PREFIX}{}", step.name)),
            name: Some(step.name.clone()),
            kind: Some(Kind::Manual),
            metadata: [("pipeline".to_owned(), self.pipeline.name.clone().into())].into_iter().collect(),
            ..SaveRequest::default()
        };
        let progress = self.invocation.output.progress(self.workspace, "saving");
        let saved = self.workspace.save(&request, Timestamp::now());
        drop(progress);
        let saved = saved?;
        let id = saved.checkpoint.id.short();
        self.invocation.output.note(&format!("checkpoint {id} {:?}", step.name));
        dropped_warnings(&saved).iter().for_each(|warning| self.invocation.output.warn(warning));
        Ok(saved)
    }

    fn is_wanted(&self, step: &PipelineStep, variables: &Variables) -> Result<bool, Attempt> {
        let command = match step.condition.as_ref().map(|condition| condition.judge(variables)) {
            None => return Ok(true),
            Some(Verdict::Known(verdict)) => return Ok(verdict),
            Some(Verdict::Ask(command)) => command,
        };
        match self.run_shell(command, variables, Limit::after(step.timeout)) {
            Ended::Exited(0) => Ok(true),
            Ended::Exited(1..CAN_NOT_RUN) => Ok(false),
            ended => Err(Attempt { what: "its condition", problem: Some(Trouble::Ended(ended)) }),
        }
    }

    /// Runs a step's work and its checks.
    fn attempt(&self, step: &PipelineStep, variables: &mut Variables) -> Attempt {
        let limit = Limit::after(step.timeout);
        if let Err(problem) = self.work(step, variables, limit) {
            return Attempt { what: "it", problem: Some(problem) };
        }
        for check in &step.checks {
            let ended = self.run_shell(check, variables, limit);
            if !ended.is_success() {
                return Attempt { what: "a check", problem: Some(Trouble::Check(check.source(), ended)) };
            }
        }
        Attempt { what: "it", problem: None }
    }

    fn work(&self, step: &PipelineStep, variables: &mut Variables, limit: Limit) -> Result<(), Trouble> {
        let mut command = match &step.work {
            Work::Run(text) => self.shell(text, variables),
            Work::Prompt { text, agent, model } => {
                let mut command = agent.command(&text.to_text(variables), model.as_deref());
                command.current_dir(self.workspace.root()).stdout(self.invocation.output.child_stdout());
                command
            }
        };
        let Some(variable) = &step.output_var else {
            return Trouble::unless_success(child::run(&mut command, limit, self.signals));
        };
        let output = self.invocation.output.clone();
        let listener = Box::new(move |piece: &[u8]| output.pass_on_from_child(piece));
        let (ended, said) = child::run_listening(&mut command, limit, self.signals, MAX_OUTPUT_BYTES + 1, listener);
        Trouble::unless_success(ended)?;
        variables.set(variable, value_of(said)?);
        Ok(())
    }

    fn run_shell(&self, text: &Template, variables: &Variables, limit: Limit) -> Ended {
        child::run(&mut self.shell(text, variables), limit, self.signals)
    }

    fn shell(&self, text: &Template, variables: &Variables) -> Command {
        let mut command = child::by_shell(text.to_shell());
        command.current_dir(self.workspace.root()).envs(variables.environment());
        command.stdout(self.invocation.output.child_stdout());
        command
    }
}

/// Returns the value of a variable from the output of a step.
fn value_of(said: Vec<u8>) -> Result<String, Trouble> {
    if said.len() > MAX_OUTPUT_BYTES {
        return Err(Trouble::Output(format!(
            "its output is longer than the {MAX_OUTPUT_BYTES} bytes that output_var can hold"
        )));
    }
    let text = String::from_utf8(said).map_err(|_| Trouble::Output("its output is not UTF-8".into()))?;
    if text.contains('\0') {
        return Err(Trouble::Output("its output contains a NUL character, which a variable can't hold".into()));
    }
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// The checkpoint before a step.
#[derive(Default)]
struct Before<'r> {
    /// Paths that the checkpoint before the step could not capture any more.
    dropped: Vec<Skipped>,
    /// Set if the step is rolled back when it fails.
    way_back: Option<WayBack<'r>>,
}

/// The result of running a step.
struct Attempt {
    what: &'static str,
    problem: Option<Trouble>,
}

/// The reason why a step failed.
enum Trouble {
    Ended(Ended),
    Check(String, Ended),
    /// The output can't be stored in a variable.
    Output(String),
}

impl Trouble {
    fn unless_success(ended: Ended) -> Result<(), Self> {
        if ended.is_success() { Ok(()) } else { Err(Self::Ended(ended)) }
    }
}

impl Attempt {
    fn is_success(&self) -> bool {
        self.problem.is_none()
    }

    /// Returns the exit status of the command. Returns 1 if only a check failed, as `try` does.
    fn exit_code(&self) -> u8 {
        match &self.problem {
            None => 0,
            Some(Trouble::Ended(ended)) => ended.exit_code(),
            Some(Trouble::Check(_, ended @ (Ended::TimedOut | Ended::Interrupted(_)))) => ended.exit_code(),
            Some(Trouble::Check(_, ended)) if ended.exit_code() == INTERRUPTED => INTERRUPTED,
            Some(Trouble::Check(..) | Trouble::Output(_)) => 1,
        }
    }

    fn describe(&self) -> String {
        match &self.problem {
            None => format!("{} succeeded", self.what),
            Some(Trouble::Ended(ended)) => format!("{} {}", self.what, ended.describe()),
            Some(Trouble::Check(command, ended)) => format!("{} {}: {command}", self.what, ended.describe()),
            Some(Trouble::Output(problem)) => problem.clone(),
        }
    }
}
