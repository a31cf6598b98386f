//! Pipelines: steps from a file, run one after the other with checkpoints around them.
//!
//! A file is read ([`file`]), resolved into a [`Pipeline`] ([`plan`]), and only then run ([`runner`]): all errors in it
//! are reported before the first step.

mod agent;
mod condition;
mod file;
mod plan;
mod problem;
mod runner;
mod template;
mod variables;

pub(crate) use plan::{OnFailure, Pipeline, PipelineStep, Request, Work};
pub(crate) use problem::PipelineProblem;
pub(crate) use runner::{Finished, Outcome, Runner, Status};
