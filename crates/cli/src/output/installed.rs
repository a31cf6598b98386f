//! What `install` and `uninstall` tell people and programs.

use std::path::PathBuf;

use serde::Serialize;

use super::{
    Paint,
    visible::{pad, visible, visible_path},
};
use crate::{
    hooks::Agent,
    install::{FileChange, FilePlan},
};

/// What `install` and `uninstall` answer.
#[derive(Serialize)]
pub(crate) struct InstalledJson<'a> {
    agent: &'static str,
    files: Vec<FileJson>,
    dry_run: bool,
    notes: &'a [String],
}

#[derive(Serialize)]
struct FileJson {
    path: String,
    change: &'static str,
}

impl<'a> InstalledJson<'a> {
    pub(crate) fn new(agent: Agent, files: &[FilePlan], dry_run: bool, notes: &'a [String]) -> Self {
        let file = |file: &FilePlan| FileJson {
            path: file.path().to_string_lossy().into_owned(),
            change: file.change.as_str(),
        };
        Self { agent: agent.name(), files: files.iter().map(file).collect(), dry_run, notes }
    }
}

/// An agent in the list.
pub(crate) struct AgentListed {
    pub(crate) agent: Agent,
    /// The files that something was installed into.
    pub(crate) installed: Vec<PathBuf>,
}

/// What `install --list` answers.
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

/// A line for each agent, the files below it.
pub(crate) fn agents_text(agents: &[AgentListed], paint: Paint) -> String {
    let width = |column: fn(Agent) -> &'static str| agents.iter().map(|it| column(it.agent).len()).max().unwrap_or(0);
    let (names, titles) = (width(Agent::name), width(Agent::title));
    let mut out = String::new();
    for listed in agents {
        let run = match listed.agent.version_run() {
            Some(version) => format!("run with {version}"),
            None => "by its documentation".to_owned(),
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

/// Every file with what happens to it, and in a preview with the lines that come or go.
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
    let mut out = String::new();
    for line in file.pieces.iter().flat_map(|piece| piece.text.lines()).filter(|line| !line.trim().is_empty()) {
        let line = visible(line);
        let line = if is_gain { paint.added(format!("+{line}")) } else { paint.removed(format!("-{line}")) };
        out.push_str(&format!("  {line}\n"));
    }
    out
}
