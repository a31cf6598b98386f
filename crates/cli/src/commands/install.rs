//! `install` and `uninstall`: add the hooks and the MCP server to an agent's own files, and remove them.

use std::{path::PathBuf, process::ExitCode};

use backtrail::{CheckpointId, Error, SaveRequest};
use clap::{
    Args,
    builder::{PossibleValuesParser, TypedValueParser},
};

use crate::{
    failure::Failure,
    hooks::Agent,
    install::{
        FileChange, InstallLock, InstallPlanner, Plan, Program, Reach, Receipts, Rehearsal, has_uncommitted_files,
        rehearse, wanted,
    },
    invocation::{Invocation, Protection},
    output::{AfterInstall, AgentListed, AgentsJson, InstalledJson, after_install_text, agents_text, installed_text},
    process,
};

/// Set up an agent to take checkpoints, at every prompt and around every tool call
///
/// Adds hooks and the MCP server to the agent's own configuration. Nothing else in it changes.
#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    /// The agent
    #[arg(value_parser = agent(), required_unless_present = "list")]
    agent: Option<Agent>,
    /// List the agents, and the files that were changed for them
    #[arg(long, conflicts_with_all = ["agent", "user", "project", "shared", "dry_run"])]
    list: bool,
    #[command(flatten)]
    reach: ReachArgs,
    /// Show the changes to the files, but make none
    #[arg(long)]
    dry_run: bool,
}

/// Remove the hooks and the server from an agent's configuration
///
/// Removes exactly what install added. A file that install created is removed if it was not changed since.
#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    /// The agent
    #[arg(value_parser = agent())]
    agent: Agent,
    #[command(flatten)]
    reach: ReachArgs,
    /// Show the changes to the files, but make none
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, Args)]
struct ReachArgs {
    /// Use your own configuration, for all projects; this is the default
    #[arg(long, conflicts_with_all = ["project", "shared"])]
    user: bool,
    /// Use this project's configuration that is not committed
    #[arg(long, conflicts_with = "shared")]
    project: bool,
    /// Use this project's configuration that is committed, for all its users
    #[arg(long)]
    shared: bool,
}

impl ReachArgs {
    fn reach(self) -> Reach {
        match (self.project, self.shared) {
            (true, _) => Reach::Project,
            (_, true) => Reach::Shared,
            _ => Reach::User,
        }
    }
}

/// Parses the name of an agent.
fn agent() -> impl TypedValueParser<Value = Agent> {
    PossibleValuesParser::new(Agent::ALL.map(Agent::name)).try_map(|word| word.parse::<Agent>())
}

pub(crate) fn install(args: &InstallArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let Some(agent) = args.agent else { return list(invocation) };
    let alone = if args.dry_run { None } else { Some(lock(invocation)?) };
    let setting = Installation::new(agent, args.reach.reach(), invocation)?;
    let mut plan = setting.planner().install(&setting.wanted())?;
    if setting.reach == Reach::Project && !has_uncommitted_files(agent) {
        let title = agent.title();
        plan.notes
            .push(format!("{title} has no uncommitted project files: these files are for all users of the project"));
    }
    if args.dry_run {
        tell(&setting, &plan, args.dry_run, None, invocation)?;
        return Ok(ExitCode::SUCCESS);
    }
    plan.apply(&setting.receipts, &setting.receipts_file)?;
    drop(alone);
    let after = AfterInstall {
        checkpoint: first_checkpoint(agent, invocation).unwrap_or_else(|problem| {
            plan.notes.push(why_no_checkpoint(&problem));
            None
        }),
        rehearsal: rehearse(agent, &setting.program.hook(agent), invocation)?,
        needs: needs(agent),
    };
    tell(&setting, &plan, args.dry_run, Some(&after), invocation)?;
    Ok(ExitCode::SUCCESS)
}

/// Takes a checkpoint if the workspace has none, so that the agent's first changes can be undone as well.
fn first_checkpoint(agent: Agent, invocation: &Invocation) -> Result<Option<CheckpointId>, Failure> {
    let workspace = invocation.workspace_to_make(Protection::Kept)?;
    workspace.refuse_folder_of_projects()?;
    if workspace.current()?.is_some() {
        return Ok(None);
    }
    let message = format!("before the first session of {}", agent.title());
    let progress = invocation.output.progress(&workspace, "saving");
    let request = SaveRequest { message: Some(message), ..SaveRequest::default() };
    let saved = workspace.save(&request, invocation.now.timestamp());
    drop(progress);
    Ok(Some(saved?.checkpoint.id))
}

fn why_no_checkpoint(problem: &Failure) -> String {
    match problem {
        Failure::Operation(Error::FolderOfProjects { .. }) => format!("not protected: {}", problem.message()),
        _ => format!("the first checkpoint was not taken: {}", problem.message()),
    }
}

/// Returns what the user still has to do in the agent itself.
fn needs(agent: Agent) -> &'static str {
    match agent {
        Agent::Claude => "restart running sessions to use the hooks",
        Agent::Codex => "open /hooks in Codex and trust the hooks: until then, Codex skips them silently",
        Agent::Gemini => "restart running sessions to use the hooks; /hooks lists them",
        Agent::Qwen => "restart running sessions to use the hooks",
        Agent::Cursor => "restart Cursor; its settings show the hooks",
        Agent::Copilot => "restart running sessions to use the hooks",
        Agent::Cline => "in the editor, turn on hooks in Cline's settings; the command line needs nothing",
        Agent::Opencode => "restart opencode: plugins are loaded when it starts",
        Agent::Kilo => "restart Kilo Code: plugins are loaded when it starts",
        Agent::Pi => "restart pi: extensions are loaded when it starts",
        Agent::Kimi | Agent::Droid => "restart running sessions to use the hooks",
        Agent::Generic => "send the documented payload to: backtrail hook generic",
    }
}

pub(crate) fn uninstall(args: &UninstallArgs, invocation: &Invocation) -> Result<ExitCode, Failure> {
    let _alone = if args.dry_run { None } else { Some(lock(invocation)?) };
    let setting = Installation::new(args.agent, args.reach.reach(), invocation)?;
    let mut plan = setting.planner().uninstall(&setting.wanted())?;
    if !args.dry_run {
        plan.apply(&setting.receipts, &setting.receipts_file)?;
    }
    let left = Receipts::read(&setting.receipts_file).unwrap_or_default();
    let is_planned = |path: &std::path::Path| plan.files.iter().any(|file| file.path() == path);
    let elsewhere: Vec<String> = left
        .paths(args.agent)
        .filter(|path| !is_planned(path) && path.exists())
        .map(|path| path.display().to_string())
        .collect();
    if !elsewhere.is_empty() {
        plan.notes.push(format!("still installed in {}", elsewhere.join(", ")));
    }
    tell(&setting, &plan, args.dry_run, None, invocation)?;
    Ok(ExitCode::SUCCESS)
}

/// Locks the receipts. Waits until no other process installs or uninstalls.
fn lock(invocation: &Invocation) -> Result<InstallLock, Failure> {
    let (path, patience) = (receipts_file(invocation)?, invocation.patience());
    match InstallLock::acquire(&path, patience) {
        Ok(Some(lock)) => Ok(lock),
        Ok(None) => Err(Error::Busy { path, seconds: patience.as_secs() }.into()),
        Err(source) => Err(Error::Io { action: "lock", path, source }.into()),
    }
}

fn receipts_file(invocation: &Invocation) -> Result<PathBuf, Failure> {
    invocation.environment().own_file("installed.json")
}

/// The inputs of an installation.
struct Installation {
    agent: Agent,
    reach: Reach,
    program: Program,
    places: crate::install::Places,
    receipts: Receipts,
    receipts_file: PathBuf,
}

impl Installation {
    fn new(agent: Agent, reach: Reach, invocation: &Invocation) -> Result<Self, Failure> {
        let environment = invocation.environment();
        let root = invocation.survey()?.location.root;
        let receipts_file = receipts_file(invocation)?;
        let receipts = read_receipts(&receipts_file)?;
        let program = program(reach, invocation)?;
        Ok(Self { agent, reach, program, places: environment.agent_places(&root)?, receipts, receipts_file })
    }

    fn wanted(&self) -> Vec<crate::install::Wanted> {
        wanted(self.agent, self.reach, &self.places, &self.program)
    }

    fn planner(&self) -> InstallPlanner<'_> {
        InstallPlanner { agent: self.agent, program: &self.program, receipts: &self.receipts }
    }
}

pub(crate) fn read_receipts(file: &std::path::Path) -> Result<Receipts, Failure> {
    Receipts::read(file).map_err(|source| Error::Io { action: "read", path: file.to_owned(), source }.into())
}

/// Returns the command with which agents start this program: its path, or only its name if the file is shared with
/// other machines.
fn program(reach: Reach, invocation: &Invocation) -> Result<Program, Failure> {
    if reach == Reach::Shared {
        return Ok(Program(vec!["backtrail".into()]));
    }
    let words = process::own_words();
    let words = words.map_err(|source| Error::Io { action: "find", path: "this program".into(), source })?;
    let first = words.first().map(PathBuf::from).unwrap_or_default();
    let first = invocation.environment().path_in_shell(&first).unwrap_or(first);
    let words = std::iter::once(first.as_os_str()).chain(words.iter().skip(1).map(AsRef::as_ref));
    let text = |word: &std::ffi::OsStr| match word.to_str() {
        Some(word) => Ok(word.to_owned()),
        None => Err(Failure::usage(
            format!("{} can't be written into a configuration: it is not UTF-8", word.display()),
            Some("move the program to another directory"),
        )),
    };
    Ok(Program(words.map(text).collect::<Result<_, _>>()?))
}

fn list(invocation: &Invocation) -> Result<ExitCode, Failure> {
    let receipts = read_receipts(&receipts_file(invocation)?)?;
    let listed = |agent| AgentListed {
        agent,
        installed: receipts.paths(agent).filter(|path| path.exists()).map(ToOwned::to_owned).collect(),
    };
    let agents = Agent::ALL.map(listed);
    let output = &invocation.output;
    if output.is_json() {
        output.json(&AgentsJson::from(&agents[..]))?;
    } else {
        output.text(&agents_text(&agents, output.paint))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(
    setting: &Installation,
    plan: &Plan,
    dry_run: bool,
    after: Option<&AfterInstall>,
    invocation: &Invocation,
) -> Result<(), Failure> {
    let output = &invocation.output;
    if output.is_json() {
        output.json(&InstalledJson::new(setting.agent, &plan.files, dry_run, &plan.notes, after))?;
    } else {
        output.text(&installed_text(&plan.files, dry_run, output.paint))?;
        if plan.files.iter().all(|file| file.change == FileChange::Unchanged) {
            output.note("nothing to change");
        }
        if let Some(after) = after {
            output.text(&after_install_text(after))?;
        }
    }
    plan.notes.iter().for_each(|note| output.note(note));
    if let Some(Rehearsal { line, problem: Some(problem), .. }) = after.map(|after| &after.rehearsal) {
        output.warn(&format!("the test of `{line}` with a sample prompt failed: {problem}"));
    }
    Ok(())
}
