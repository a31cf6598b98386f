//! `pipeline`: runs the steps of a file, with checkpoints around them.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    process::ExitCode,
};

use backtrail::Error;
use clap::Args;

use crate::{
    child::HeldSignals,
    cli::{Assignment, assignment, text},
    failure::Failure,
    invocation::{Invocation, Protection},
    output::{PipelineJson, pipeline_plan_text, shell_words},
    pipeline::{Finished, Outcome, Pipeline, PipelineProblem, Request, Runner, Status},
};

/// The exit status if a step failed.
const STEP_FAILED: u8 = 1;

/// Run the steps of a pipeline file, with checkpoints between them
///
/// Each step runs a shell command, or gives a prompt to an agent, in the workspace. An automatic checkpoint is taken
/// before a step. After a step with `checkpoint: true`, if it succeeds, a manual checkpoint with the name of the step
/// is taken. Errors in the file are reported before the first step runs. See docs/pipelines.md for all keys.
#[derive(Debug, Args)]
pub(crate) struct PipelineArgs {
    /// The pipeline file, in YAML
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Start with this step
    #[arg(long, value_name = "NAME", value_parser = text())]
    from_step: Option<String>,
    /// The value of a variable; can be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment::<OsString>())]
    var: Vec<Assignment<OsString>>,
    /// The command that receives the prompts, such as 'claude -p {prompt}'; overrides the file
    #[arg(long, value_name = "TEMPLATE", value_parser = text())]
    agent: Option<String>,
    /// Check the file and show the steps, but run none
    #[arg(long)]
    dry_run: bool,
    /// Allow a protected directory, such as the home directory, as the workspace
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &PipelineArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let mut workspace = if args.dry_run {
        invocation.workspace()?
    } else {
        invocation.workspace_to_write(Protection::unless(args.force))?
    };
    workspace.scan_fully();
    let pipeline = read(args, workspace.root(), invocation)?;
    let output = &invocation.output;
    pipeline.warnings.iter().for_each(|warning| output.warn(warning));
    if args.dry_run {
        return show(&pipeline, invocation);
    }
    // From here on, a signal ends the current step but not this process, so that the work after the step is still done.
    let signals = HeldSignals::hold()?;
    let runner = Runner { workspace: &workspace, invocation, pipeline: &pipeline, signals: &signals };
    let finished = runner.run()?;
    tell(args, &pipeline, &finished, invocation);
    if output.is_json() {
        output.json(&PipelineJson::from(&finished.outcomes[..]))?;
    }
    Ok(exit_code(&finished))
}

fn read(args: &PipelineArgs, root: &Path, invocation: &Invocation) -> Result<Pipeline, Failure> {
    let path = invocation.file(&args.file)?;
    let failed = |problem: PipelineProblem| Failure::pipeline(&args.file, problem);
    let unreadable = |message: &str| failed(PipelineProblem { line: None, message: message.into(), hint: None });
    let bytes = std::fs::read(&path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => unreadable("no such file"),
        std::io::ErrorKind::IsADirectory => unreadable("it is a directory"),
        _ => Error::Io { action: "read the pipeline", path: path.clone(), source }.into(),
    })?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        failed(PipelineProblem { line: Some(line), message: "not UTF-8".into(), hint: None })
    })?;
    let settings = invocation.user_settings()?;
    let variables = args.var.iter().map(|var| variable(var, &failed)).collect::<Result<_, _>>()?;
    let request = Request {
        default_name: args.file.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        variables,
        agent: args.agent.as_deref(),
        usual_agent: settings.pipelines.agent.as_deref(),
        from_step: args.from_step.as_deref(),
        has_program: &|name| invocation.has_program(name, root),
    };
    Pipeline::read(&text, &request).map_err(failed)
}

fn variable(
    var: &Assignment<OsString>,
    failed: &dyn Fn(PipelineProblem) -> Failure,
) -> Result<(String, String), Failure> {
    let value = var.value.clone().into_string().map_err(|_| {
        failed(PipelineProblem {
            line: None,
            message: format!("--var: the value of {:?} is not UTF-8", var.key),
            hint: None,
        })
    })?;
    Ok((var.key.clone(), value))
}

fn show(pipeline: &Pipeline, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let output = &invocation.output;
    if output.is_json() {
        let status = |index: usize| if index < pipeline.first { Status::Skipped } else { Status::DryRun };
        let steps = pipeline.steps.iter().enumerate();
        let outcomes: Vec<Outcome> = steps.map(|(index, step)| Outcome::of_none(step, status(index))).collect();
        output.json(&PipelineJson::from(&outcomes[..]))?;
    } else {
        output.text(&pipeline_plan_text(pipeline))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells the user at which step the pipeline stopped early, and how to continue.
fn tell(args: &PipelineArgs, pipeline: &Pipeline, finished: &Finished, invocation: &Invocation) {
    let Some(index) = finished.stopped_at else { return };
    let Some(step) = pipeline.steps.get(index) else { return };
    let name = &step.name;
    let how = if finished.interrupted.is_some() { "interrupted" } else { "stopped" };
    let file = args.file.to_string_lossy();
    let again = shell_words(["backtrail", "pipeline", &*file, "--from-step", name]);
    let place = format!("step {} of {}, {name:?}", index + 1, pipeline.steps.len());
    invocation.output.note(&format!("{how} at {place}; continue there with: {again}"));
}

fn exit_code(finished: &Finished) -> ExitCode {
    match finished.interrupted {
        Some(code) => ExitCode::from(code),
        None if finished.outcomes.iter().any(Outcome::has_failed) => ExitCode::from(STEP_FAILED),
        None => ExitCode::SUCCESS,
    }
}
