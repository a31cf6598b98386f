//! Does what an event asks for: takes the checkpoint, in the workspace that the session began in.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use backtrail::{Kind, ListFilter, SaveRequest, StepRequest, Workspace, WorkspacePath, json::start_of};
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{
    event::{HookEvent, Moment, ToolCall},
    news,
    session::{ProcessMark, SessionState, Sessions},
    tools,
};
use crate::{
    cli::{ColorWhen, GlobalOptions},
    failure::Failure,
    invocation::Invocation,
    output,
    settings::Environment,
};

/// How long another process may hold the workspace. Nobody waits for this one any more by then.
const PATIENCE_SECONDS: u64 = 600;

/// Longer prompts are cut: a checkpoint's record is read whenever it is listed.
const MAX_PROMPT_BYTES: usize = 16 << 10;

/// Larger conversations are not kept.
const MAX_TRANSCRIPT_BYTES: u64 = 512 << 20;

/// The name under which a conversation is attached.
pub(crate) const CONVERSATION: &str = "conversation";

/// Takes care of one event.
pub(crate) struct Worker<'a> {
    pub(crate) environment: &'a Environment,
    pub(crate) sessions: &'a Sessions,
    /// The process of the agent, where it is known.
    pub(crate) agent_process: Option<ProcessMark>,
    pub(crate) now: Timestamp,
    /// Takes what went wrong although there is a checkpoint.
    pub(crate) problem: &'a dyn Fn(&str),
}

/// What is known once an event is taken on.
struct Assignment {
    root: PathBuf,
    /// The session that the event counts for.
    session: String,
    turn: u64,
    prompt: Option<String>,
    /// Up to when the agent was told about restores.
    told: Timestamp,
}

impl Worker<'_> {
    /// Takes the checkpoint that an event asks for, and hands over what the agent is to be told; `tell` says whether
    /// that arrived.
    pub(crate) fn run(
        &self,
        event: &HookEvent,
        payload_hash: u64,
        tell: impl FnOnce(&str) -> bool,
    ) -> Result<(), Failure> {
        let Some(assignment) = self.take_on(event, payload_hash)? else { return Ok(()) };
        let done = self.work(event, &assignment);
        self.remember_outcome(&assignment.session, done.as_ref().err());
        let arrived = done?.is_none_or(|news| tell(&news));
        // What did not arrive is told again with the next prompt.
        if arrived && matches!(event.moment, Moment::Prompt(_)) {
            self.remember_told(&assignment.session);
        }
        Ok(())
    }

    fn remember_told(&self, session: &str) {
        let change =
            |known: Option<SessionState>| (known.map(|state| SessionState { told: Some(self.now), ..state }), ());
        self.sessions.change(session, change).unwrap_or_else(|source| self.tell_of_lost_memory(source));
    }

    fn remember_outcome(&self, session: &str, failure: Option<&Failure>) {
        let problem = failure.map(Failure::message);
        let change = |known: Option<SessionState>| {
            let changed = known.filter(|state| state.problem != problem);
            (changed.map(|state| SessionState { problem, ..state }), ())
        };
        // Where it can't be remembered, that was told when the event was taken on.
        drop(self.sessions.change(session, change));
    }

    /// A session that can't be remembered costs the memory alone: the checkpoint is taken all the same.
    fn tell_of_lost_memory(&self, source: io::Error) {
        let failure = Failure::from(backtrail::Error::Io { action: "remember", path: "the session".into(), source });
        (self.problem)(&failure.message());
    }

    /// Claims an event: of several processes that were told the same, one goes on.
    fn take_on(&self, event: &HookEvent, payload_hash: u64) -> Result<Option<Assignment>, Failure> {
        let session = self.session_that_counts(event);
        if let (Moment::SubagentStart, Some(subagent)) = (&event.moment, &event.subagent) {
            self.remember_subagent(event, subagent, &session);
            return Ok(None);
        }
        let known = self.sessions.get(&session);
        let root = match (&event.moment, &known) {
            (Moment::SessionStart { source }, Some(known)) if source.as_deref() == Some("compact") => {
                Some(known.root.clone())
            }
            // A session that goes on somewhere else has another workspace from then on.
            (Moment::SessionStart { .. }, _) => self.root_around(event)?,
            (_, Some(known)) => Some(known.root.clone()),
            (_, None) => self.root_around(event)?,
        };
        let root = match root.filter(|root| root.is_dir()) {
            // It was moved, perhaps to where the agent stands now.
            None if known.is_some() => self.root_around(event)?,
            root => root,
        };
        let Some(root) = root else { return Ok(None) };
        // Without a memory, the store knows how many prompts there were.
        let turns_before = match &known {
            Some(known) => known.turn,
            None => self.turns_in_store(&root, &session),
        };
        let key = event_key(event, payload_hash);
        let claim = |known: Option<SessionState>| {
            let fresh = || {
                let state = SessionState::new(&session, event.agent.name(), root.clone(), self.now);
                SessionState { turn: turns_before, ..state }
            };
            let mut state = known.unwrap_or_else(fresh);
            if !state.note(key, event.identity.is_some(), self.now) {
                return (Some(state), None);
            }
            state.root.clone_from(&root);
            state.is_over = event.moment == Moment::SessionEnd;
            state.transcript = event.transcript.clone().or(state.transcript);
            state.process = self.agent_process.or(state.process);
            let told = *state.told.get_or_insert(self.now);
            if let Moment::Prompt(text) = &event.moment {
                state.turn += 1;
                state.prompt = Some(cut(text));
            }
            let (turn, prompt) = (state.turn, state.prompt.clone());
            let assignment = Assignment { root: root.clone(), session: session.clone(), turn, prompt, told };
            (Some(state), Some(assignment))
        };
        Ok(self.sessions.change(&session, claim).unwrap_or_else(|source| {
            self.tell_of_lost_memory(source);
            claim(known.clone()).1
        }))
    }

    /// What subagents do counts for the session that started them.
    fn session_that_counts(&self, event: &HookEvent) -> String {
        let mut session = event.parent.clone().unwrap_or_else(|| event.session.clone());
        for _ in 0..16 {
            match self.sessions.get(&session).and_then(|state| state.parent) {
                Some(parent) if parent != session => session = parent,
                _ => break,
            }
        }
        session
    }

    fn remember_subagent(&self, event: &HookEvent, subagent: &str, session: &str) {
        if subagent == session {
            return;
        }
        let Some(root) = event.directory.clone() else { return };
        let change = |known: Option<SessionState>| {
            let state = known.unwrap_or_else(|| SessionState::new(subagent, event.agent.name(), root, self.now));
            (Some(SessionState { parent: Some(session.to_owned()), ..state }), ())
        };
        self.sessions.change(subagent, change).unwrap_or_else(|source| self.tell_of_lost_memory(source));
    }

    /// The workspace around the directory in which the agent stands; none where that is not there.
    fn root_around(&self, event: &HookEvent) -> Result<Option<PathBuf>, Failure> {
        let directory = match &event.directory {
            Some(directory) => directory.clone(),
            None => self.environment.current_directory()?.to_owned(),
        };
        if !directory.is_dir() {
            return Ok(None);
        }
        let around = Invocation::new(options(None), self.environment.clone().standing_in(directory));
        Ok(Some(around.survey()?.location.root))
    }

    fn turns_in_store(&self, root: &Path, session: &str) -> u64 {
        let Ok(workspace) = self.invocation(root).workspace() else { return 0 };
        let filter =
            ListFilter { session: Some(session.to_owned()), limit: Some(1), turns: true, ..ListFilter::default() };
        let newest = workspace.list(&filter).ok().and_then(|found| found.into_iter().next());
        newest.and_then(|checkpoint| checkpoint.turn).unwrap_or(0)
    }

    fn invocation(&self, root: &Path) -> Invocation {
        Invocation::new(options(Some(root.to_owned())), self.environment.clone())
    }

    fn work(&self, event: &HookEvent, assignment: &Assignment) -> Result<Option<String>, Failure> {
        let workspace = self.invocation(&assignment.root).workspace_to_protect()?;
        if matches!(event.moment, Moment::SessionStart { .. } | Moment::Prompt(_)) {
            self.tell_of_spoilt_settings(&assignment.root)?;
        }
        if workspace.settings().checkpoints.auto {
            self.take(event, assignment, &workspace)?;
        }
        Ok(news::since(&workspace, event.agent, &event.moment, assignment.told))
    }

    /// Says why the workspace's own settings do not count, where they do not.
    fn tell_of_spoilt_settings(&self, root: &Path) -> Result<(), Failure> {
        for problem in self.invocation(root).survey()?.problems {
            let message = format!("{}; the file counts for nothing until that is mended", problem.message());
            (self.problem)(&message);
            output::talk_of_hook(&format!("backtrail: {message}"));
        }
        Ok(())
    }

    fn take(&self, event: &HookEvent, assignment: &Assignment, workspace: &Workspace) -> Result<(), Failure> {
        match &event.moment {
            Moment::SessionStart { source } if source.as_deref() == Some("compact") => {}
            Moment::SessionStart { source } => {
                let message = match source {
                    Some(source) => format!("a session of {} begins ({source})", event.agent.title()),
                    None => format!("a session of {} begins", event.agent.title()),
                };
                let request = self.request(event, assignment, Kind::Session, message);
                workspace.save(&SaveRequest { turn: None, prompt: None, ..request }, self.now)?;
            }
            Moment::Prompt(text) => {
                let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or("a prompt without words");
                let request = self.request(event, assignment, Kind::Turn, cut_at(first, 200));
                let conversation = conversation(event).unwrap_or_else(|problem| {
                    (self.problem)(&problem);
                    None
                });
                let attachments = conversation.into_iter().collect();
                workspace.save(&SaveRequest { attachments, ..request }, self.now)?;
            }
            Moment::BeforeTool(call) if tools::may_change_files(call) => {
                workspace.step(&self.step(event, assignment, call, workspace), self.now)?;
            }
            Moment::AfterTool(call) if tools::may_change_files(call) => {
                workspace.step_done(&self.step(event, assignment, call, workspace), self.now)?;
            }
            Moment::BeforeTool(_) | Moment::AfterTool(_) | Moment::SubagentStart => {}
            Moment::SubagentEnd | Moment::TurnEnd | Moment::SessionEnd => {
                let request = StepRequest {
                    session: Some(assignment.session.clone()),
                    agent: Some(event.agent.name().to_owned()),
                    turn: Some(assignment.turn).filter(|turn| *turn > 0),
                    prompt: assignment.prompt.clone(),
                    metadata: metadata(event),
                    ..StepRequest::default()
                };
                workspace.step_done(&request, self.now)?;
            }
        }
        Ok(())
    }

    fn request(&self, event: &HookEvent, assignment: &Assignment, kind: Kind, message: String) -> SaveRequest {
        SaveRequest {
            message: Some(message),
            kind: Some(kind),
            session: Some(assignment.session.clone()),
            agent: Some(event.agent.name().to_owned()),
            turn: Some(assignment.turn),
            prompt: assignment.prompt.clone(),
            metadata: metadata(event),
            allow_empty: true,
            ..SaveRequest::default()
        }
    }

    fn step(&self, event: &HookEvent, assignment: &Assignment, call: &ToolCall, workspace: &Workspace) -> StepRequest {
        StepRequest {
            session: Some(assignment.session.clone()),
            agent: Some(event.agent.name().to_owned()),
            turn: Some(assignment.turn).filter(|turn| *turn > 0),
            prompt: assignment.prompt.clone(),
            tool: Some(call.name.clone()),
            message: None,
            metadata: metadata(event),
            paths: touched(event, call, workspace),
        }
    }
}

/// The files that a call names, as far as they lie in the workspace. A directory is not captured for being named.
fn touched(event: &HookEvent, call: &ToolCall, workspace: &Workspace) -> Vec<WorkspacePath> {
    let start = event.directory.as_deref().unwrap_or(workspace.root());
    let named = tools::named_files(call).into_iter().filter(|path| !start.join(path).is_dir());
    named.filter_map(|path| workspace.path_from(start, &path).ok()).filter(|path| !path.is_root()).collect()
}

fn options(workspace: Option<PathBuf>) -> GlobalOptions {
    GlobalOptions { workspace, store: None, json: false, quiet: true, wait: PATIENCE_SECONDS, color: ColorWhen::Never }
}

/// Tells events apart: by what the agent says, else by all that it says.
fn event_key(event: &HookEvent, payload_hash: u64) -> u64 {
    match &event.identity {
        Some(identity) => xxhash_rust::xxh3::xxh3_64(format!("{} {identity}", event.moment.word()).as_bytes()),
        None => payload_hash,
    }
}

fn metadata(event: &HookEvent) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("event".into(), event.moment.word().into());
    let mut put = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            metadata.insert(key.into(), value.into());
        }
    };
    if let Moment::BeforeTool(call) | Moment::AfterTool(call) = &event.moment {
        put("tool_use_id", call.id.clone());
    }
    put("subagent", event.subagent.clone());
    if matches!(event.moment, Moment::Prompt(_) | Moment::SessionStart { .. }) {
        put("transcript", event.transcript.as_ref().map(|path| path.to_string_lossy().into_owned()));
    }
    metadata
}

/// The conversation up to now, in whole lines; none where there is none yet. Else why it is not kept.
fn conversation(event: &HookEvent) -> Result<Option<(String, Vec<u8>)>, String> {
    let Some(path) = &event.transcript else { return Ok(None) };
    let not_kept = |why: String| format!("the conversation is not kept: {} {why}", path.display());
    let mut bytes = match read_transcript(path) {
        // Agents name the file before they write the first line.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(not_kept(format!("can't be read: {error}"))),
        Ok(None) => return Err(not_kept(format!("has more than {} MiB", MAX_TRANSCRIPT_BYTES >> 20))),
        Ok(Some(bytes)) => bytes,
    };
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    bytes.truncate(end);
    Ok((!bytes.is_empty()).then(|| (CONVERSATION.to_owned(), bytes)))
}

/// None where it is too large.
fn read_transcript(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    if metadata.len() > MAX_TRANSCRIPT_BYTES {
        return Ok(None);
    }
    fs::read(path).map(Some)
}

fn cut(text: &str) -> String {
    cut_at(text, MAX_PROMPT_BYTES)
}

fn cut_at(text: &str, bytes: usize) -> String {
    let start = start_of(text, bytes);
    if start.len() == text.len() { text.to_owned() } else { format!("{start}…") }
}
