//! Pipelines: steps from a file, run one after the other with checkpoints around them.
//!
//! A file is read ([`file`]), made into a [`Pipeline`] in which nothing is left open ([`plan`]), and only then run
//! ([`runner`]): whatever is wrong with it is said before the first step.

mod agent;
mod condition;
mod file;
mod plan;
mod problem;
mod runner;
mod template;
mod variables;

pub(crate) use plan::{OnFailure, Pipeline, Request, Step, Work};
pub(crate) use problem::Problem;
pub(crate) use runner::{Finished, Outcome, Runner, Status};
