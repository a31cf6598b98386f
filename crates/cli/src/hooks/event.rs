//! What an agent says through a hook, whatever words it uses.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::{Agent, surrogates::without_lone_surrogates};

/// Something that an agent is about to do, or has done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HookEvent {
    /// Who says so.
    pub(crate) agent: Agent,
    /// Its session.
    pub(crate) session: String,
    /// The session that started this one, where it is that of a subagent.
    pub(crate) parent: Option<String>,
    /// Which subagent it is about, where it is about one.
    pub(crate) subagent: Option<String>,
    /// What happens.
    pub(crate) moment: Moment,
    /// Where the agent stands.
    pub(crate) directory: Option<PathBuf>,
    /// The file in which the agent keeps the conversation.
    pub(crate) transcript: Option<PathBuf>,
    /// What tells this event from every other, where the agent says.
    pub(crate) identity: Option<String>,
}

/// What happens.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Moment {
    /// A session begins, or goes on after a break.
    SessionStart {
        /// How it came about, in the agent's word.
        source: Option<String>,
    },
    /// A prompt was given.
    Prompt(String),
    /// A tool is about to run.
    BeforeTool(ToolCall),
    /// A tool has run.
    AfterTool(ToolCall),
    /// A subagent begins.
    SubagentStart,
    /// A subagent is done.
    SubagentEnd,
    /// The answer to a prompt is complete.
    TurnEnd,
    /// The session is over.
    SessionEnd,
}

impl Moment {
    /// A word for logs.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::SessionStart { .. } => "session start",
            Self::Prompt(_) => "prompt",
            Self::BeforeTool(_) => "before tool",
            Self::AfterTool(_) => "after tool",
            Self::SubagentStart => "subagent start",
            Self::SubagentEnd => "subagent end",
            Self::TurnEnd => "turn end",
            Self::SessionEnd => "session end",
        }
    }
}

/// A tool, and what it was told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolCall {
    /// The tool.
    pub(crate) name: String,
    /// Which call of it this is, where the agent says.
    pub(crate) id: Option<String>,
    /// What it was told.
    pub(crate) input: Value,
}

/// Why a payload means nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PayloadProblem(pub(crate) String);

/// Longer words than this are no session.
const MAX_SESSION_BYTES: usize = 512;

/// A payload, with questions that every shape of it answers.
pub(crate) struct Payload<'p>(pub(crate) &'p Map<String, Value>);

impl Payload<'_> {
    /// A text that is not empty.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.0.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// The first of these keys that has a text.
    pub(crate) fn first_text(&self, keys: &[&str]) -> Option<String> {
        keys.iter().find_map(|key| self.text(key))
    }

    /// A path that is absolute.
    pub(crate) fn path(&self, key: &str) -> Option<PathBuf> {
        self.text(key).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// Any value; null where there is none.
    pub(crate) fn value(&self, key: &str) -> Value {
        self.0.get(key).cloned().unwrap_or_default()
    }

    /// The first of these keys that has an object.
    pub(crate) fn first_object(&self, keys: &[&str]) -> Option<Map<String, Value>> {
        keys.iter().find_map(|key| self.0.get(*key)?.as_object().cloned())
    }

    /// The session, under the first of these keys that has one.
    pub(crate) fn session(&self, keys: &[&str]) -> Result<String, PayloadProblem> {
        let found = self.first_text(keys).filter(|session| session.len() <= MAX_SESSION_BYTES);
        found.ok_or_else(|| PayloadProblem(format!("it has no {}", keys[0])))
    }

    /// The tool that it is about.
    pub(crate) fn tool(&self, name: &str, input: &str, id: &str) -> Result<ToolCall, PayloadProblem> {
        let named = self.text(name).ok_or_else(|| PayloadProblem(format!("it has no {name}")))?;
        Ok(ToolCall { name: named, id: self.text(id), input: self.value(input) })
    }
}

fn parse(bytes: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(bytes).or_else(|error| {
        // What was wrong with the payload itself is what is told.
        serde_json::from_slice(&without_lone_surrogates(bytes)).map_err(|_| error)
    })
}

/// What an agent's payload says; none where it is about something that nobody needs to know.
pub(crate) fn read(agent: Agent, bytes: &[u8]) -> Result<Option<HookEvent>, PayloadProblem> {
    let value = parse(bytes).map_err(|error| PayloadProblem(format!("it is no JSON: {error}")))?;
    let object = value.as_object().ok_or_else(|| PayloadProblem("it is no object".into()))?;
    let payload = Payload(object);
    // Some agents also run the hooks of others: the shape tells who is really speaking.
    if payload.0.contains_key("cursor_version") {
        return super::cursor::read(&payload);
    }
    match agent {
        Agent::Claude | Agent::Codex | Agent::Qwen | Agent::Opencode => super::claude::read(agent, &payload),
        Agent::Gemini => super::gemini::read(&payload),
        Agent::Cursor => super::cursor::read(&payload),
        Agent::Copilot => super::copilot::read(&payload),
        Agent::Cline => super::cline::read(&payload),
    }
}
