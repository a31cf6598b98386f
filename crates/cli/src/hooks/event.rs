//! A hook event, independent of the payload format of the agent.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::{Agent, own_prompts::PromptFacts, surrogates::without_lone_surrogates};

/// An action that an agent is about to take, or has taken.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HookEvent {
    /// The agent that sent the event.
    pub(crate) agent: Agent,
    /// The id of the agent's session.
    pub(crate) session: String,
    /// The session that started this one. Set if this is the session of a subagent.
    pub(crate) parent: Option<String>,
    /// The id of the subagent that the event is about. `None` if it is not about a subagent.
    pub(crate) subagent: Option<String>,
    /// The kind of the event.
    pub(crate) moment: Moment,
    /// The agent's current directory.
    pub(crate) directory: Option<PathBuf>,
    /// The file in which the agent stores the conversation.
    pub(crate) transcript: Option<PathBuf>,
    /// The facts that tell prompts apart.
    pub(crate) prompt: PromptFacts,
    /// A text that identifies this event. `None` if the payload holds none.
    pub(crate) identity: Option<String>,
}

/// The kind of an event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Moment {
    /// A session starts or resumes.
    SessionStart {
        /// The reason for the start, as the agent names it.
        source: Option<String>,
    },
    /// The user submitted a prompt.
    Prompt(String),
    /// A tool is about to run.
    BeforeTool(ToolCall),
    /// A tool has run.
    AfterTool(ToolCall),
    /// A subagent starts.
    SubagentStart,
    /// A subagent has finished.
    SubagentEnd,
    /// The answer to a prompt is complete.
    TurnEnd,
    /// The session has ended.
    SessionEnd,
}

impl Moment {
    /// Returns the name of the event for logs.
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

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolCall {
    /// The name of the tool.
    pub(crate) name: String,
    /// The id of the call, if the agent sends one.
    pub(crate) id: Option<String>,
    /// The arguments of the call.
    pub(crate) input: Value,
}

/// The reason why a payload can't be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PayloadProblem(pub(crate) String);

/// The maximum length of a session id. A longer text is not accepted as one.
const MAX_SESSION_BYTES: usize = 512;

/// A payload, with accessors that all formats share.
pub(crate) struct Payload<'p>(pub(crate) &'p Map<String, Value>);

impl Payload<'_> {
    /// Returns the text under a key. Returns `None` if it is empty.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.0.get(key).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned)
    }

    /// Returns the first text that is found under these keys.
    pub(crate) fn first_text(&self, keys: &[&str]) -> Option<String> {
        keys.iter().find_map(|key| self.text(key))
    }

    /// Returns the path under a key. Returns `None` if it is not absolute.
    pub(crate) fn path(&self, key: &str) -> Option<PathBuf> {
        self.text(key).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    /// Returns the value under a key, or null if the key is missing.
    pub(crate) fn value(&self, key: &str) -> Value {
        self.0.get(key).cloned().unwrap_or_default()
    }

    /// Returns the first object that is found under these keys.
    pub(crate) fn first_object(&self, keys: &[&str]) -> Option<Map<String, Value>> {
        keys.iter().find_map(|key| self.0.get(*key)?.as_object().cloned())
    }

    /// Returns the session id, from the first of these keys that has a text.
    pub(crate) fn session(&self, keys: &[&str]) -> Result<String, PayloadProblem> {
        let found = self.first_text(keys).filter(|session| session.len() <= MAX_SESSION_BYTES);
        found.ok_or_else(|| PayloadProblem(format!("it has no {}", keys[0])))
    }

    /// Returns the tool call that the payload describes.
    pub(crate) fn tool(&self, name: &str, input: &str, id: &str) -> Result<ToolCall, PayloadProblem> {
        let named = self.text(name).ok_or_else(|| PayloadProblem(format!("it has no {name}")))?;
        Ok(ToolCall { name: named, id: self.text(id), input: self.value(input) })
    }
}

fn parse(bytes: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(bytes).or_else(|error| {
        // The error is about the payload as it was received, not about the repaired one.
        serde_json::from_slice(&without_lone_surrogates(bytes)).map_err(|_| error)
    })
}

/// Parses an agent's payload. Returns `None` for an event that does not matter to checkpoints.
pub(crate) fn read(agent: Agent, bytes: &[u8]) -> Result<Option<HookEvent>, PayloadProblem> {
    let value = parse(bytes).map_err(|error| PayloadProblem(format!("it is not JSON: {error}")))?;
    let object = value.as_object().ok_or_else(|| PayloadProblem("it is not an object".into()))?;
    let payload = Payload(object);
    // Some agents also run the hooks that are installed for other agents: the format shows which one sent the payload.
    if payload.0.contains_key("cursor_version") {
        return super::cursor::read(&payload);
    }
    match agent {
        Agent::Claude
        | Agent::Codex
        | Agent::Qwen
        | Agent::Opencode
        | Agent::Kilo
        | Agent::Kimi
        | Agent::Pi
        | Agent::Droid => super::claude::read(agent, &payload),
        Agent::Generic => super::generic::read(&payload),
        Agent::Gemini => super::gemini::read(&payload),
        Agent::Cursor => super::cursor::read(&payload),
        Agent::Copilot => super::copilot::read(&payload),
        Agent::Cline => super::cline::read(&payload),
    }
}
