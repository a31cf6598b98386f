//! Payloads of GitHub Copilot CLI: Claude Code's format for events whose names are capitalized, its own for all others.

use serde_json::Value;

use super::{
    Agent, claude,
    event::{HookEvent, Moment, Payload, PayloadProblem, ToolCall},
    own_prompts::PromptFacts,
};

/// Parses a payload in either format.
pub(crate) fn read(payload: &Payload<'_>) -> Result<Option<HookEvent>, PayloadProblem> {
    if payload.0.contains_key("hook_event_name") {
        return claude::read(Agent::Copilot, payload);
    }
    // Copilot's own format does not name the event: the keys identify it.
    let has = |key: &str| payload.0.contains_key(key);
    let moment = if has("toolResult") {
        Moment::AfterTool(tool(payload)?)
    } else if has("toolName") {
        Moment::BeforeTool(tool(payload)?)
    } else if has("prompt") && !has("source") {
        Moment::Prompt(payload.text("prompt").unwrap_or_default())
    } else if has("source") {
        Moment::SessionStart { source: payload.text("source") }
    } else if has("stopReason") {
        Moment::TurnEnd
    } else if has("reason") {
        Moment::SessionEnd
    } else {
        return Ok(None);
    };
    let time = payload.0.get("timestamp").filter(|time| !time.is_null()).map(Value::to_string);
    Ok(Some(HookEvent {
        agent: Agent::Copilot,
        session: payload.session(&["sessionId"])?,
        parent: None,
        subagent: None,
        identity: time.map(|time| format!("{time} {}", payload.value("toolArgs"))),
        moment,
        prompt: PromptFacts::default(),
        directory: payload.path("cwd"),
        transcript: payload.path("transcriptPath"),
    }))
}

/// Returns the tool call. Its arguments may be a string that holds JSON.
fn tool(payload: &Payload<'_>) -> Result<ToolCall, PayloadProblem> {
    let call = payload.tool("toolName", "toolArgs", "toolCallId")?;
    let input = match &call.input {
        Value::String(text) => serde_json::from_str(text).unwrap_or(call.input.clone()),
        other => other.clone(),
    };
    Ok(ToolCall { input, ..call })
}
