//! The small payload for programs that are not supported by name. `docs/agents.md` describes it.

use serde_json::{Map, Value};

use super::{
    Agent,
    event::{HookEvent, Moment, Payload, PayloadProblem, ToolCall},
    own_prompts::PromptFacts,
};

/// The name of a tool that the payload does not name.
const UNNAMED_TOOL: &str = "tool";

/// Parses a payload in this format.
pub(crate) fn read(payload: &Payload<'_>) -> Result<Option<HookEvent>, PayloadProblem> {
    let event = payload.text("event").ok_or_else(|| PayloadProblem("it has no event".into()))?;
    let moment = match event.as_str() {
        "session_start" => Moment::SessionStart { source: None },
        "prompt" => Moment::Prompt(payload.text("prompt").unwrap_or_default()),
        "before_tool" => Moment::BeforeTool(tool(payload)),
        "after_tool" => Moment::AfterTool(tool(payload)),
        "turn_end" => Moment::TurnEnd,
        "session_end" => Moment::SessionEnd,
        other => return Err(PayloadProblem(format!("{other:?} is not an event"))),
    };
    Ok(Some(HookEvent {
        agent: Agent::Generic,
        session: payload.session(&["session"])?,
        parent: None,
        subagent: payload.text("subagent"),
        prompt: PromptFacts::default(),
        identity: payload.text("id"),
        moment,
        directory: payload.path("directory"),
        transcript: None,
    }))
}

/// Returns the tool call. The files that it is about to change can be listed; a shell command is searched for them.
fn tool(payload: &Payload<'_>) -> ToolCall {
    let mut input = Map::new();
    for key in ["paths", "command"] {
        let value = payload.value(key);
        if !value.is_null() {
            input.insert(key.into(), value);
        }
    }
    let name = payload.text("tool").unwrap_or_else(|| UNNAMED_TOOL.to_owned());
    ToolCall { name, id: payload.text("id"), input: Value::Object(input) }
}
