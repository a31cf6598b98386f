//! `step`: counts an agent's step, and takes a checkpoint if one is due.

use std::{ffi::OsString, path::PathBuf, process::ExitCode};

use backtrail::{Author, Origin, StepRequest, Stepped, Workspace, json::SteppedJson};
use clap::Args;

use crate::{
    cli::{Assignment, assignment, author, from_one, text},
    failure::Failure,
    invocation::{Invocation, Protection},
    output::{saved_warnings, stepped_sentence},
};

/// Report that an agent is about to take a step
///
/// For hooks and scripts. Steps are counted for each session. Every Nth step takes a checkpoint if something changed; N
/// is `every_n_steps` in the settings. A PATH that the step is going to change is captured at once, even if it is
/// ignored, unless the last checkpoint already has it.
#[derive(Debug, Args)]
pub(crate) struct StepArgs {
    /// Paths that the step is going to change; they need not exist yet
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The id of the agent's session; steps are counted for each session
    #[arg(long, value_name = "ID", value_parser = text())]
    session: Option<String>,
    /// The message of the checkpoint; without one, it names the changed paths
    #[arg(short, long, value_parser = text(), allow_hyphen_values = true)]
    message: Option<String>,
    /// The name of the agent
    #[arg(long, value_name = "NAME", value_parser = text())]
    agent: Option<String>,
    /// The number of the prompt in its session, starting at 1
    #[arg(long, value_name = "N", value_parser = from_one, allow_negative_numbers = true)]
    turn: Option<u64>,
    /// The text of the prompt
    #[arg(long, value_name = "TEXT", value_parser = text(), allow_hyphen_values = true)]
    prompt: Option<String>,
    /// The name of the tool that is about to run
    #[arg(long, value_name = "NAME", value_parser = text())]
    tool: Option<String>,
    /// The command line of that tool, if it is a shell; secrets in it are masked
    #[arg(long = "command", value_name = "LINE", value_parser = text(), allow_hyphen_values = true)]
    command_line: Option<String>,
    /// The author of the changes since the previous checkpoint
    #[arg(long, value_name = "WHO", value_parser = author())]
    author: Option<Author>,
    /// A value to store with the checkpoint; can be given several times
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment::<OsString>())]
    meta: Vec<Assignment<OsString>>,
    /// Allow a protected directory, such as the home directory, as the workspace
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: StepArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let workspace = invocation.workspace_to_write(Protection::unless(args.force))?;
    let request = request(args, &workspace, invocation)?;
    let progress = invocation.output.progress(&workspace, "saving");
    let stepped = workspace.step(&request, invocation.now.timestamp());
    drop(progress);
    report(&stepped?, invocation)
}

fn request(args: StepArgs, workspace: &Workspace, invocation: &Invocation) -> Result<StepRequest, Failure> {
    let paths = args.paths.iter().map(|path| invocation.path(workspace, path));
    Ok(StepRequest {
        message: args.message,
        metadata: args.meta.into_iter().map(|meta| (meta.key, meta.value.to_string_lossy().into())).collect(),
        paths: paths.collect::<Result<_, _>>()?,
        origin: Origin {
            session: args.session,
            agent: args.agent,
            turn: args.turn,
            prompt: args.prompt,
            tool: args.tool,
            command: args.command_line,
            author: args.author,
            ..Origin::default()
        },
        ..StepRequest::default()
    })
}

fn report(stepped: &Stepped, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let output = &invocation.output;
    if output.is_json() {
        output.json(&SteppedJson::from(stepped))?;
    } else {
        output.done(&stepped_sentence(stepped, output.paint))?;
    }
    stepped.saved.iter().flat_map(saved_warnings).for_each(|warning| output.warn(&warning));
    Ok(ExitCode::SUCCESS)
}
