//! Payloads in the format of Claude Code, which several other agents adopted.

use serde_json::Value;

use super::{
    Agent,
    event::{HookEvent, Moment, Payload, PayloadProblem, ToolCall},
    own_prompts::PromptFacts,
    tools,
};

/// Parses a payload in this format.
pub(crate) fn read(agent: Agent, payload: &Payload<'_>) -> Result<Option<HookEvent>, PayloadProblem> {
    let event = payload.text("hook_event_name").ok_or_else(|| PayloadProblem("it has no hook_event_name".into()))?;
    let Some(moment) = moment(&event, payload)? else { return Ok(None) };
    Ok(Some(HookEvent {
        agent,
        session: payload.session(&["session_id"])?,
        parent: None,
        subagent: payload.text("agent_id"),
        identity: identity(&moment, payload),
        prompt: PromptFacts::of(payload, &moment),
        moment,
        directory: payload.path("cwd"),
        transcript: payload.path("transcript_path"),
    }))
}

fn moment(event: &str, payload: &Payload<'_>) -> Result<Option<Moment>, PayloadProblem> {
    let id = if payload.0.contains_key("tool_use_id") { "tool_use_id" } else { "tool_call_id" };
    let tool = || payload.tool("tool_name", "tool_input", id);
    Ok(Some(match event {
        "SessionStart" => Moment::SessionStart { source: payload.text("source") },
        "UserPromptSubmit" => Moment::Prompt(prompt(payload)),
        "PreToolUse" => Moment::BeforeTool(tool()?),
        "PostToolUse" | "PostToolUseFailure" => Moment::AfterTool(tool()?),
        "PostToolBatch" => match last_of_batch(payload) {
            Some(call) => Moment::AfterTool(call),
            None => return Ok(None),
        },
        "SubagentStop" => Moment::SubagentEnd,
        "Stop" | "StopFailure" | "Interrupt" => Moment::TurnEnd,
        "SessionEnd" => Moment::SessionEnd,
        _ => return Ok(None),
    }))
}

/// Returns the text of a prompt. Kimi Code sends a list of parts.
fn prompt(payload: &Payload<'_>) -> String {
    let parts = payload.value("prompt");
    let texts: Vec<&str> = parts.as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect();
    payload.text("prompt").unwrap_or_else(|| texts.join("\n"))
}

/// Returns the last call of a batch that may change files. Usually the call's own event was received before.
fn last_of_batch(payload: &Payload<'_>) -> Option<ToolCall> {
    let calls = payload.value("tool_calls");
    let calls = calls.as_array().into_iter().flatten().rev().filter_map(Value::as_object);
    let call = |call| Payload(call).tool("tool_name", "tool_input", "tool_use_id").ok();
    let mut calls = calls.filter_map(call).filter(tools::may_change_files);
    calls.next().map(|call| ToolCall { id: call.id.map(|id| format!("batch {id}")), ..call })
}

fn identity(moment: &Moment, payload: &Payload<'_>) -> Option<String> {
    match moment {
        Moment::BeforeTool(call) | Moment::AfterTool(call) => call.id.clone(),
        // The same text in the same turn is the same prompt. The id alone is not enough, because not all agents use one
        // id per prompt.
        Moment::Prompt(text) => {
            payload.first_text(&["prompt_id", "turn_id", "timestamp"]).map(|id| format!("{id} {text}"))
        }
        _ => payload.text("timestamp"),
    }
}
