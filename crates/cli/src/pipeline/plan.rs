//! A resolved pipeline: all names, variables, commands and agents are known.

use std::{collections::BTreeSet, time::Duration};

use backtrail::validate_name;
use serde_saphyr::Spanned;

use super::{
    agent::AgentCommand,
    condition::Condition,
    file::{OnFailureWord, PipelineFile, StepSection},
    problem::{PipelineProblem, Result},
    template::Template,
    variables::{Variables, is_variable_name},
};
use crate::cli::seconds_or_duration;

/// The options that the caller gives beside the file.
pub(crate) struct Request<'r> {
    /// The name for a pipeline without a name.
    pub(crate) default_name: String,
    /// Values that override the file's.
    pub(crate) variables: Vec<(String, String)>,
    /// The agent that overrides all others.
    pub(crate) agent: Option<&'r str>,
    /// The agent from the user's settings.
    pub(crate) usual_agent: Option<&'r str>,
    /// The name of the first step to run.
    pub(crate) from_step: Option<&'r str>,
    /// Returns whether there is a program of this name.
    pub(crate) has_program: &'r dyn Fn(&str) -> bool,
}

/// A pipeline that can be run.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) name: String,
    pub(crate) steps: Vec<PipelineStep>,
    /// The index of the first step to run.
    pub(crate) first: usize,
    pub(super) variables: Variables,
    /// An automatic checkpoint is taken before every n-th step. `None` if automatic checkpoints are disabled.
    pub(super) every_n_steps: Option<u64>,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
}

/// A step of a pipeline.
#[derive(Debug)]
pub(crate) struct PipelineStep {
    pub(crate) name: String,
    pub(crate) work: Work,
    pub(crate) condition: Option<Condition>,
    pub(super) checks: Vec<Template>,
    pub(crate) checkpoint: bool,
    pub(super) output_var: Option<String>,
    pub(super) timeout: Option<Duration>,
    pub(crate) on_failure: OnFailure,
}

/// The work of a step.
#[derive(Debug)]
pub(crate) enum Work {
    /// A shell command.
    Run(Template),
    /// A prompt for an agent.
    Prompt { text: Template, agent: AgentCommand, model: Option<String> },
}

/// The effect of a failed step on the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnFailure {
    /// The pipeline ends.
    Stop,
    /// The pipeline continues.
    Continue,
    /// The step is rolled back, and the pipeline ends.
    Rollback,
}

impl From<OnFailureWord> for OnFailure {
    fn from(word: OnFailureWord) -> Self {
        match word {
            OnFailureWord::Stop => Self::Stop,
            OnFailureWord::Continue => Self::Continue,
            OnFailureWord::Rollback => Self::Rollback,
        }
    }
}

impl Pipeline {
    pub(crate) fn read(text: &str, request: &Request<'_>) -> Result<Self> {
        let file = PipelineFile::parse(text)?;
        if file.steps.value.is_empty() {
            return Err(PipelineProblem::at(file.steps.referenced.line(), "steps is empty: there is nothing to run"));
        }
        let every_n_steps = every_n_steps(&file)?;
        let variables = variables(&file, request)?;
        let mut planner =
            PipelinePlanner { request, file_agent: file.agent.as_ref(), variables: &variables, warnings: Vec::new() };
        let mut steps = Vec::new();
        for (index, section) in file.steps.value.iter().enumerate() {
            let name = step_name(section, index, &steps)?;
            steps.push((planner.shape(section, name)?, section));
        }
        let first = first_step(&steps, request)?;
        planner.check_variables(&steps, first)?;
        planner.check_agents(&steps[first..])?;
        let warnings = planner.warnings;
        let steps = steps.into_iter().map(|(step, _)| step).collect();
        let name = file.name.unwrap_or_else(|| request.default_name.clone());
        Ok(Self { name, steps, first, variables, every_n_steps, warnings })
    }
}

type Section = Spanned<StepSection>;

fn line<T>(written: &Spanned<T>) -> u64 {
    written.referenced.line()
}

fn every_n_steps(file: &PipelineFile) -> Result<Option<u64>> {
    let every = file.checkpoints.every_n_steps.as_ref();
    if let Some(every) = every.filter(|every| !(1..=50).contains(&every.value)) {
        let message = format!("every_n_steps is {}, but must be from 1 to 50", every.value);
        return Err(PipelineProblem::at(line(every), message));
    }
    let is_enabled = file.checkpoints.enabled.unwrap_or(true);
    Ok(is_enabled.then(|| every.map_or(1, |every| every.value)))
}

fn variables(file: &PipelineFile, request: &Request<'_>) -> Result<Variables> {
    let mut variables = Variables::default();
    for (name, value) in &file.variables {
        if !is_variable_name(name) {
            return Err(PipelineProblem::at(line(value), bad_variable(name)));
        }
        variables.set(name, value.value.clone().unwrap_or_default());
    }
    for (name, value) in &request.variables {
        if !is_variable_name(name) {
            return Err(PipelineProblem::anywhere(format!("--var: {}", bad_variable(name))));
        }
        variables.set(name, value);
    }
    Ok(variables)
}

fn bad_variable(name: &str) -> String {
    format!("{name:?} can't be the name of a variable: use letters, digits and _, and no digit at the start")
}

fn step_name(section: &Section, index: usize, before: &[(PipelineStep, &Section)]) -> Result<String> {
    let Some(name) = &section.value.name else { return Ok(format!("step-{}", index + 1)) };
    if name.value.trim().is_empty() || name.value.chars().any(char::is_control) {
        return Err(PipelineProblem::at(line(name), "name must be one line and not empty"));
    }
    if before.iter().any(|(step, _)| step.name == name.value) {
        return Err(PipelineProblem::at(
            line(name),
            format!("name: an earlier step is already called {:?}", name.value),
        ));
    }
    if section.value.checkpoint && validate_name(&name.value).is_err() {
        let message = format!("name: a checkpoint can't be called {:?}: it has another meaning", name.value);
        return Err(PipelineProblem::at(line(name), message));
    }
    Ok(name.value.clone())
}

fn first_step(steps: &[(PipelineStep, &Section)], request: &Request<'_>) -> Result<usize> {
    let Some(wanted) = request.from_step else { return Ok(0) };
    steps.iter().position(|(step, _)| step.name == wanted).ok_or_else(|| {
        let names: Vec<&str> = steps.iter().map(|(step, _)| step.name.as_str()).collect();
        PipelineProblem::anywhere(format!("--from-step: there is no step {wanted:?}"))
            .with_hint(format!("the steps are: {}", names.join(", ")))
    })
}

struct PipelinePlanner<'p> {
    request: &'p Request<'p>,
    file_agent: Option<&'p Spanned<String>>,
    variables: &'p Variables,
    warnings: Vec<String>,
}

impl PipelinePlanner<'_> {
    fn shape(&mut self, section: &Section, name: String) -> Result<PipelineStep> {
        let step = &section.value;
        let work = self.work(section, &name)?;
        if let Some(variable) = step.output_var.as_ref().filter(|variable| !is_variable_name(&variable.value)) {
            return Err(PipelineProblem::at(line(variable), format!("output_var: {}", bad_variable(&variable.value))));
        }
        let checks = step.checks.as_ref().map(|checks| &checks.value.0[..]).unwrap_or_default();
        if let (Some(written), true) = (&step.checks, checks.iter().any(|check| check.trim().is_empty())) {
            return Err(PipelineProblem::at(line(written), "checks: a check is empty"));
        }
        Ok(PipelineStep {
            work,
            condition: step.condition.as_ref().map(|text| Condition::parse(text.value.as_deref().unwrap_or_default())),
            checks: checks.iter().map(|check| Template::parse(check)).collect(),
            checkpoint: step.checkpoint,
            output_var: step.output_var.as_ref().map(|variable| variable.value.clone()),
            timeout: step.timeout.as_ref().map(timeout).transpose()?,
            on_failure: step.on_failure.into(),
            name,
        })
    }

    fn work(&mut self, section: &Section, name: &str) -> Result<Work> {
        let step = &section.value;
        let of_step = |message: &str| PipelineProblem::at(line(section), format!("step {name:?} {message}"));
        match (&step.run, &step.prompt) {
            (Some(_), Some(prompt)) => Err(PipelineProblem::at(
                line(prompt),
                format!("step {name:?} has both run and prompt; split it into two"),
            )),
            (None, None) => Err(of_step("has neither run nor prompt")),
            (Some(run), None) if run.value.trim().is_empty() => Err(PipelineProblem::at(line(run), "run is empty")),
            (Some(_), None) if step.agent.is_some() || step.model.is_some() => {
                Err(of_step("has an agent or a model, but no prompt for it"))
            }
            (Some(run), None) => Ok(Work::Run(Template::parse(&run.value))),
            (None, Some(prompt)) if prompt.value.trim().is_empty() => {
                Err(PipelineProblem::at(line(prompt), "prompt is empty"))
            }
            (None, Some(prompt)) => {
                let agent = self.agent(section, name)?;
                let model = step.model.as_ref().map(|model| model.value.clone());
                if model.is_some() && !agent.takes_model() {
                    self.warnings.push(format!("step {name:?} names a model, but its agent command has no {{model}}"));
                }
                if let (None, true) = (&model, agent.takes_model()) {
                    return Err(of_step("has no model, but its agent command has a {model}"));
                }
                Ok(Work::Prompt { text: Template::parse(&prompt.value), agent, model })
            }
        }
    }

    fn agent(&self, section: &Section, name: &str) -> Result<AgentCommand> {
        if let Some(template) = self.request.agent {
            return AgentCommand::parse(template).map_err(|why| PipelineProblem::anywhere(format!("--agent: {why}")));
        }
        if let Some(written) = section.value.agent.as_ref().or(self.file_agent) {
            return AgentCommand::parse(&written.value).map_err(|why| PipelineProblem::at(line(written), why));
        }
        if let Some(template) = self.request.usual_agent {
            return AgentCommand::parse(template)
                .map_err(|why| PipelineProblem::anywhere(format!("in your settings: {why}")));
        }
        let hint =
            "set one with --agent 'claude -p {prompt}', as agent in the file, or under [pipelines] in your settings";
        Err(PipelineProblem::at(line(section), format!("step {name:?} has a prompt, but there is no agent for it"))
            .with_hint(hint))
    }

    /// Checks that every variable is known at the step that uses it.
    fn check_variables(&self, steps: &[(PipelineStep, &Section)], first: usize) -> Result<()> {
        let mut set_before: BTreeSet<&str> = BTreeSet::new();
        for (index, (step, section)) in steps.iter().enumerate() {
            if index >= first {
                for (key, at, name) in uses(step, section) {
                    if !self.variables.has(name) && !set_before.contains(name) {
                        return Err(unknown_variable(key, at, name, &steps[..first], index > 0));
                    }
                }
                set_before.extend(step.output_var.as_deref());
            }
        }
        Ok(())
    }

    /// Checks that the program of every agent that is used exists.
    fn check_agents(&self, steps: &[(PipelineStep, &Section)]) -> Result<()> {
        for (step, section) in steps {
            let Work::Prompt { agent, .. } = &step.work else { continue };
            if !(self.request.has_program)(agent.program()) {
                let message =
                    format!("step {:?}: its agent, the program {:?}, was not found", step.name, agent.program());
                let hint = "install it, or choose another with --agent 'COMMAND {prompt}'";
                return Err(PipelineProblem::at(line(*section), message).with_hint(hint));
            }
        }
        Ok(())
    }
}

fn timeout(written: &Spanned<String>) -> Result<Duration> {
    let parsed = seconds_or_duration(&written.value)
        .map_err(|why| PipelineProblem::at(line(written), format!("timeout: {why}")))?;
    if parsed.is_zero() {
        return Err(PipelineProblem::at(line(written), "timeout: it must be more than 0"));
    }
    Ok(parsed)
}

/// Returns the variables that a step uses: key, line and name of each.
fn uses<'s>(step: &'s PipelineStep, section: &Section) -> Vec<(&'static str, u64, &'s str)> {
    let written = &section.value;
    let mut found = Vec::new();
    if let (Some(condition), Some(at)) = (&step.condition, &written.condition) {
        found.extend(condition.variables().into_iter().map(|name| ("condition", line(at), name)));
    }
    let (key, at, text) = match &step.work {
        Work::Run(text) => ("run", written.run.as_ref().map(line), text),
        Work::Prompt { text, .. } => ("prompt", written.prompt.as_ref().map(line), text),
    };
    found.extend(text.variables().map(|name| (key, at.unwrap_or_default(), name)));
    if let Some(at) = &written.checks {
        // A check may use the output of its own step.
        let foreign = |name: &&str| step.output_var.as_deref() != Some(*name);
        let names = step.checks.iter().flat_map(Template::variables).filter(foreign);
        found.extend(names.map(|name| ("checks", line(at), name)));
    }
    found
}

fn unknown_variable(
    key: &str,
    at: u64,
    name: &str,
    not_run: &[(PipelineStep, &Section)],
    has_earlier: bool,
) -> PipelineProblem {
    let problem = PipelineProblem::at(at, format!("{key}: there is no variable {{{{{name}}}}}"));
    if let Some((step, _)) = not_run.iter().find(|(step, _)| step.output_var.as_deref() == Some(name)) {
        return problem.with_hint(format!("step {:?} sets it, but is not run; set it with --var {name}=…", step.name));
    }
    let earlier = if has_earlier { ", or set it with output_var in an earlier step" } else { "" };
    problem.with_hint(format!("define it under variables, set it with --var {name}=…{earlier}"))
}
