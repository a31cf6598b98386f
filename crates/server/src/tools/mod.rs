//! The tools: one file for each, with its arguments, its answer and its implementation.

mod blame;
mod diff;
mod fork;
mod history;
mod hunks;
mod list;
mod restore;
mod revert;
mod save;
mod show;
mod status;
mod undo;

use std::sync::Arc;

use backtrail::{Precious, Workspace};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    access::{Access, Purpose},
    failure::Failure,
    plans::Plans,
    running::Call,
    schema,
};
pub(crate) use {diff::CUT_MARK, list::timeline};

/// The state that all tools share.
pub(crate) struct Shared {
    pub(crate) access: Access,
    pub(crate) plans: Plans,
}

impl Shared {
    /// Opens the workspace, and reports its events to the client. Returns it with the paths whose contents must not be
    /// shown.
    pub(crate) fn open(&self, purpose: Purpose, call: &Call) -> Result<(Workspace, Precious), Failure> {
        let mut workspace = self.access.open(purpose)?;
        call.watch.follow(&mut workspace);
        let precious = self.access.precious(&workspace);
        Ok((workspace, precious))
    }
}

/// The effect of a tool on the workspace and its checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// Changes nothing.
    Reads,
    /// Adds a checkpoint.
    Adds,
    /// Takes a safety checkpoint, then replaces or removes files.
    Replaces,
}

type Work = Box<dyn Fn(&Shared, &Call, JsonObject) -> Result<Value, Failure> + Send + Sync>;

/// A tool: its description for clients, and its implementation.
pub(crate) struct Offered {
    pub(crate) listed: Tool,
    work: Work,
}

impl Offered {
    /// Runs the tool.
    pub(crate) fn call(&self, shared: &Shared, call: &Call, arguments: JsonObject) -> Result<Value, Failure> {
        (self.work)(shared, call, arguments)
    }
}

/// The names of the tools, in the order in which they are listed.
pub const TOOL_NAMES: &[&str] = &[
    "checkpoint_save",
    "checkpoint_list",
    "checkpoint_show",
    "checkpoint_diff",
    "workspace_status",
    "file_history",
    "blame",
    "restore_plan",
    "restore_apply",
    "hunks",
    "revert_plan",
    "revert",
    "fork",
    "adopt",
    "undo",
];

/// Returns all tools, in the order in which they are listed.
pub(crate) fn all() -> Vec<Arc<Offered>> {
    vec![
        offer(Effect::Adds, "checkpoint_save", "Save a checkpoint", save::ABOUT, save::run),
        offer(Effect::Reads, "checkpoint_list", "List checkpoints", list::ABOUT, list::run),
        offer(Effect::Reads, "checkpoint_show", "Show a checkpoint", show::ABOUT, show::run),
        offer(Effect::Reads, "checkpoint_diff", "Compare checkpoints", diff::ABOUT, diff::run),
        offer(Effect::Reads, "workspace_status", "What changed on disk", status::ABOUT, status::run),
        offer(Effect::Reads, "file_history", "Versions of a file", history::ABOUT, history::run),
        offer(Effect::Reads, "blame", "Origin of each line", blame::ABOUT, blame::run),
        offer(Effect::Reads, "restore_plan", "Plan a restore", restore::ABOUT_PLAN, restore::plan),
        offer(Effect::Replaces, "restore_apply", "Apply a restore plan", restore::ABOUT_APPLY, restore::apply),
        offer(Effect::Reads, "hunks", "Hunks of a restore or revert", hunks::ABOUT, hunks::run),
        offer(Effect::Reads, "revert_plan", "Plan a revert", revert::ABOUT_PLAN, revert::plan),
        offer(Effect::Replaces, "revert", "Apply a revert plan", revert::ABOUT_APPLY, revert::apply),
        offer(Effect::Adds, "fork", "Make a second workspace", fork::ABOUT_FORK, fork::fork),
        offer(Effect::Replaces, "adopt", "Bring back the work of a fork", fork::ABOUT_ADOPT, fork::adopt),
        offer(Effect::Replaces, "undo", "Take back the last restore", undo::ABOUT, undo::run),
    ]
}

fn offer<A, R>(
    effect: Effect,
    name: &'static str,
    title: &'static str,
    about: &'static str,
    run: fn(&Shared, &Call, A) -> Result<R, Failure>,
) -> Arc<Offered>
where
    A: DeserializeOwned + JsonSchema + 'static,
    R: Serialize + JsonSchema + 'static,
{
    let annotations = ToolAnnotations::with_title(title)
        .read_only(effect == Effect::Reads)
        .destructive(effect == Effect::Replaces)
        .idempotent(effect == Effect::Reads)
        .open_world(false);
    let listed = Tool::new(name, about, schema::of_input::<A>())
        .with_title(title)
        .with_raw_output_schema(Arc::new(schema::of_output::<R>()))
        .with_annotations(annotations);
    let work = move |shared: &Shared, call: &Call, arguments: JsonObject| {
        let arguments = serde_json::from_value(Value::Object(arguments)).map_err(|error| {
            Failure::usage(format!("invalid arguments for {name}: {error}"))
                .with_hint("its input schema lists the arguments")
        })?;
        let answer = run(shared, call, arguments)?;
        serde_json::to_value(answer).map_err(|error| Failure::internal(error.to_string()))
    };
    Arc::new(Offered { listed, work: Box::new(work) })
}

/// Returns the requested number, or the default. Refuses a number that is out of range.
pub(crate) fn count(name: &str, wanted: Option<u64>, usual: usize, most: usize) -> Result<usize, Failure> {
    match wanted {
        None => Ok(usual),
        Some(wanted) if (1..=most as u64).contains(&wanted) => Ok(wanted as usize),
        Some(wanted) => Err(Failure::usage(format!("{name} is {wanted}, but must be from 1 to {most}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_say_what_they_do() {
        let hints = |name: &str| {
            let tool = all().into_iter().find(|tool| tool.listed.name == name).unwrap();
            let annotations = tool.listed.annotations.clone().unwrap();
            (annotations.read_only_hint.unwrap(), annotations.destructive_hint.unwrap())
        };
        assert_eq!(hints("restore_plan"), (true, false));
        assert_eq!(hints("checkpoint_save"), (false, false));
        assert_eq!(hints("restore_apply"), (false, true));
        assert_eq!((hints("revert_plan"), hints("hunks")), ((true, false), (true, false)));
        assert_eq!((hints("revert"), hints("adopt")), ((false, true), (false, true)));
        assert_eq!(hints("fork"), (false, false));
        assert_eq!(hints("undo"), (false, true));
    }

    #[test]
    fn nothing_deletes() {
        let names: Vec<_> = all().iter().map(|tool| tool.listed.name.to_string()).collect();
        let is_bad =
            |name: &String| ["delete", "prune", "forget", "exclude", "pin"].iter().any(|bad| name.contains(bad));
        assert!(!names.iter().any(is_bad), "{names:?}");
        assert_eq!(names, TOOL_NAMES);
    }

    #[test]
    fn what_tools_take_is_plain() {
        for tool in all() {
            let input = serde_json::to_string(&tool.listed.input_schema).unwrap();
            for bad in ["\"null\"", "$ref", "\"format\"", "anyOf"] {
                assert!(!input.contains(bad), "{} has {bad}: {input}", tool.listed.name);
            }
            assert_eq!(tool.listed.input_schema["type"], "object");
            assert_eq!(tool.listed.input_schema["additionalProperties"], false, "{}", tool.listed.name);
            let output = tool.listed.output_schema.clone().unwrap();
            assert_eq!(output["type"], "object", "{}", tool.listed.name);
            let output = serde_json::to_string(&output).unwrap();
            assert!(!output.contains("\"format\"") && !output.contains("\"type\":["), "{output}");
        }
    }
}
