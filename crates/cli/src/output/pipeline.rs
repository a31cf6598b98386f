//! Output of `pipeline`, for users and programs.

use backtrail::json::{ConflictJson, SkippedJson};
use serde::Serialize;

use super::{
    tried::RollbackErrorJson,
    visible::{first_line, visible},
    wording::shell_words,
};
use crate::pipeline::{OnFailure, Outcome, Pipeline, PipelineStep, Work};

/// The JSON answer of `pipeline`.
#[derive(Serialize)]
pub(crate) struct PipelineJson {
    steps: Vec<StepJson>,
}

#[derive(Serialize)]
struct StepJson {
    name: String,
    status: &'static str,
    checkpoint: Option<String>,
    exit_code: Option<u8>,
    seconds: f64,
    dropped: Vec<SkippedJson>,
    not_taken_back: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conflicts: Vec<ConflictJson>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rollback_error: Option<RollbackErrorJson>,
}

impl From<&[Outcome]> for PipelineJson {
    fn from(outcomes: &[Outcome]) -> Self {
        let step = |outcome: &Outcome| StepJson {
            name: outcome.name.clone(),
            status: outcome.status.as_str(),
            checkpoint: outcome.checkpoint.map(|id| id.to_string()),
            exit_code: outcome.exit_code,
            seconds: (outcome.time.as_secs_f64() * 1000.0).round() / 1000.0,
            dropped: outcome.dropped.iter().map(SkippedJson::from).collect(),
            not_taken_back: outcome.remains.not_taken_back.iter().map(ToString::to_string).collect(),
            conflicts: outcome.remains.conflicts.clone(),
            rollback_error: outcome.rollback_error.clone(),
        };
        Self { steps: outcomes.iter().map(step).collect() }
    }
}

/// Returns the steps that a pipeline would run.
pub(crate) fn pipeline_plan_text(pipeline: &Pipeline) -> String {
    let mut text = format!("{}\n", visible(&pipeline.name));
    for (index, step) in pipeline.steps.iter().enumerate() {
        let passed_over = if index < pipeline.first { " (not run)" } else { "" };
        text.push_str(&format!("{:>3}. {}{passed_over}\n", index + 1, visible(&step.name)));
        details(step).iter().for_each(|detail| text.push_str(&format!("     {detail}\n")));
    }
    text
}

fn details(step: &PipelineStep) -> Vec<String> {
    let mut details = Vec::new();
    if let Some(condition) = &step.condition {
        details.push(format!("if {}", first_line(&condition.source())));
    }
    details.push(match &step.work {
        Work::Run(command) => format!("run {}", first_line(&command.source())),
        Work::Prompt { text, agent, model } => {
            let prompt = first_line(&text.source());
            let words = agent.words(&prompt, model.as_deref());
            format!("ask {}", visible(shell_words(words.iter().map(String::as_str))))
        }
    });
    if step.checkpoint {
        details.push("then take a checkpoint".into());
    }
    match step.on_failure {
        OnFailure::Stop => {}
        OnFailure::Continue => details.push("continue if it fails".into()),
        OnFailure::Rollback => details.push("roll back if it fails".into()),
    }
    details
}
