//! Output of `install` and `uninstall`, for users and programs.

use std::path::PathBuf;

use backtrail::CheckpointId;
use serde::Serialize;

use super::{
    Paint,
    visible::{pad, visible, visible_line, visible_path},
};
use crate::{
    hooks::Agent,
    install::{AddedText, FileChange, FilePlan, Rehearsal},
};

/// The JSON answer of `install` and `uninstall`.
#[derive(Serialize)]
pub(crate) struct InstalledJson<'a> {
    agent: &'static str,
    files: Vec<FileJson>,
    dry_run: bool,
    notes: &'a [String],
    #[serde(flatten)]
    after: Option<AfterJson<'a>>,
}

#[derive(Serialize)]
struct AfterJson<'a> {
    checkpoint: Option<String>,
    rehearsal: RehearsalJson<'a>,
    needs: &'a str,
}

#[derive(Serialize)]
struct RehearsalJson<'a> {
    command: &'a str,
    ok: bool,
    milliseconds: u128,
    problem: Option<&'a str>,
}

/// The results of the steps after the files were written.
pub(crate) struct AfterInstall {
    /// The first checkpoint of the workspace. `None` if it had one before, or if none could be taken.
    pub(crate) checkpoint: Option<CheckpointId>,
    /// The result of a sample prompt.
    pub(crate) rehearsal: Rehearsal,
    /// The steps that the user still has to take in the agent itself.
    pub(crate) needs: &'static str,
}

#[derive(Serialize)]
struct FileJson {
    path: String,
    change: &'static str,
}

impl<'a> InstalledJson<'a> {
    pub(crate) fn new(
        agent: Agent,
        files: &[FilePlan],
        dry_run: bool,
        notes: &'a [String],
        after: Option<&'a AfterInstall>,
    ) -> Self {
        let file = |file: &FilePlan| FileJson {
            path: file.path().to_string_lossy().into_owned(),
            change: file.change.as_str(),
        };
        let after = after.map(|after| AfterJson {
            checkpoint: after.checkpoint.map(|id| id.to_string()),
            rehearsal: RehearsalJson {
                command: &after.rehearsal.line,
                ok: after.rehearsal.problem.is_none(),
                milliseconds: after.rehearsal.took.as_millis(),
                problem: after.rehearsal.problem.as_deref(),
            },
            needs: after.needs,
        });
        Self { agent: agent.name(), files: files.iter().map(file).collect(), dry_run, notes, after }
    }
}

/// Returns the results of the steps after the files were written, and the next step for the user.
pub(crate) fn after_install_text(after: &AfterInstall) -> String {
    let mut out = String::new();
    if let Some(checkpoint) = after.checkpoint {
        out.push_str(&format!("took the first checkpoint of this workspace: {}\n", checkpoint.short()));
    }
    if after.rehearsal.problem.is_none() {
        let (line, took) = (visible(&after.rehearsal.line), after.rehearsal.took.as_millis());
        out.push_str(&format!("tested `{line}` with a sample prompt: it took a checkpoint in {took} ms\n"));
    }
    out.push_str(&format!("next: {}\n", after.needs));
    out
}

/// An agent in the answer of `install --list`.
pub(crate) struct AgentListed {
    pub(crate) agent: Agent,
    /// The files that `install` edited or created.
    pub(crate) installed: Vec<PathBuf>,
}

/// The JSON answer of `install --list`.
#[derive(Serialize)]
pub(crate) struct AgentsJson {
    agents: Vec<AgentJson>,
}

#[derive(Serialize)]
struct AgentJson {
    agent: &'static str,
    title: &'static str,
    version_run: Option<&'static str>,
    installed: Vec<String>,
}

impl From<&[AgentListed]> for AgentsJson {
    fn from(agents: &[AgentListed]) -> Self {
        let agent = |listed: &AgentListed| AgentJson {
            agent: listed.agent.name(),
            title: listed.agent.title(),
            version_run: listed.agent.version_run(),
            installed: listed.installed.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
        };
        Self { agents: agents.iter().map(agent).collect() }
    }
}

/// Returns a line for each agent, followed by its files.
pub(crate) fn agents_text(agents: &[AgentListed], paint: Paint) -> String {
    let width = |column: fn(Agent) -> &'static str| agents.iter().map(|it| column(it.agent).len()).max().unwrap_or(0);
    let (names, titles) = (width(Agent::name), width(Agent::title));
    let mut out = String::new();
    for listed in agents {
        let run = match listed.agent.version_run() {
            Some(version) => format!("tested with {version}"),
            None => "written from its documentation".to_owned(),
        };
        let state = if listed.installed.is_empty() { "" } else { ", installed" };
        let name = paint.heading(pad(listed.agent.name(), names));
        out.push_str(&format!("{name}  {}  {run}{state}\n", pad(listed.agent.title(), titles)));
        for path in &listed.installed {
            out.push_str(&format!("  {}\n", visible_path(path)));
        }
    }
    out
}

/// Returns each file with its change. A dry run also shows the lines that would be added or removed.
pub(crate) fn installed_text(files: &[FilePlan], dry_run: bool, paint: Paint) -> String {
    let mut out = String::new();
    for file in files {
        let would = if dry_run && file.change != FileChange::Unchanged { "would be " } else { "" };
        let word = format!("{would}{}", file.change.as_str());
        out.push_str(&format!("{}: {word}\n", visible_path(file.path())));
        if dry_run {
            let is_gain = matches!(file.change, FileChange::Created | FileChange::Edited);
            out.push_str(&pieces_text(file, is_gain, paint));
        }
    }
    out
}

fn pieces_text(file: &FilePlan, is_gain: bool, paint: Paint) -> String {
    let lines = |text: &str, is_added: bool| {
        let lines = text.lines().filter(|line| !line.trim().is_empty()).map(visible_line);
        let line = |line| if is_added { paint.added(format!("+{line}")) } else { paint.removed(format!("-{line}")) };
        lines.map(|text| format!("  {}\n", line(text))).collect::<String>()
    };
    let piece = |piece: &AddedText| {
        let (old, new) = if is_gain { (&piece.replaced, &piece.text) } else { (&piece.text, &piece.replaced) };
        lines(old, false) + &lines(new, true)
    };
    file.pieces.iter().map(piece).collect()
}
