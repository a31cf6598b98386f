//! Payloads of Cline. Sessions are called tasks, and the details of an event are under a key of their own.

use std::path::PathBuf;

use serde_json::Value;

use super::{
    Agent,
    event::{HookEvent, Moment, Payload, PayloadProblem, ToolCall},
};

/// Parses a payload in this format.
pub(crate) fn read(payload: &Payload<'_>) -> Result<Option<HookEvent>, PayloadProblem> {
    let event = payload.first_text(&["hookName", "hook_event_name"]);
    let event = event.ok_or_else(|| PayloadProblem("it has no hookName".into()))?;
    let moment = match event.as_str() {
        "TaskStart" | "agent_start" => Moment::SessionStart { source: Some("start".into()) },
        "TaskResume" | "agent_resume" => Moment::SessionStart { source: Some("resume".into()) },
        "UserPromptSubmit" | "prompt_submit" => Moment::Prompt(prompt(payload)),
        "PreToolUse" | "tool_call" => Moment::BeforeTool(tool(payload, &["preToolUse", "tool_call"])?),
        "PostToolUse" | "tool_result" => {
            Moment::AfterTool(tool(payload, &["postToolUse", "tool_result", "tool_call"])?)
        }
        "TaskComplete" | "TaskError" | "agent_end" => Moment::TurnEnd,
        "TaskCancel" | "SessionShutdown" | "session_shutdown" => Moment::SessionEnd,
        _ => return Ok(None),
    };
    let id = match &moment {
        Moment::BeforeTool(call) | Moment::AfterTool(call) => call.id.clone(),
        _ => None,
    };
    Ok(Some(HookEvent {
        agent: Agent::Cline,
        session: payload.session(&["taskId", "conversationId"])?,
        parent: payload.text("parentTaskId"),
        subagent: None,
        identity: id.or_else(|| payload.0.get("timestamp").filter(|time| !time.is_null()).map(Value::to_string)),
        moment,
        directory: directory(payload),
        transcript: None,
    }))
}

fn prompt(payload: &Payload<'_>) -> String {
    let inner = payload.first_object(&["userPromptSubmit", "prompt_submit"]);
    let inner = inner.and_then(|inner| Payload(&inner).first_text(&["prompt", "text"]));
    inner.or_else(|| payload.text("prompt")).unwrap_or_default()
}

fn tool(payload: &Payload<'_>, keys: &[&str]) -> Result<ToolCall, PayloadProblem> {
    let inner = payload.first_object(keys).ok_or_else(|| PayloadProblem(format!("it has no {}", keys[0])))?;
    let inner = Payload(&inner);
    let name = inner.first_text(&["toolName", "tool", "name"]);
    let input = ["parameters", "input"].iter().map(|key| inner.value(key)).find(|value| !value.is_null());
    Ok(ToolCall {
        name: name.ok_or_else(|| PayloadProblem("it has no tool name".into()))?,
        id: inner.first_text(&["id", "toolUseId"]),
        input: input.unwrap_or_default(),
    })
}

fn directory(payload: &Payload<'_>) -> Option<PathBuf> {
    let roots = payload.value("workspaceRoots");
    let first = roots.as_array().and_then(|roots| roots.first()).and_then(Value::as_str).map(PathBuf::from);
    let root = || payload.first_object(&["workspaceInfo"]).and_then(|info| Payload(&info).path("rootPath"));
    first.filter(|root| root.is_absolute()).or_else(root).or_else(|| payload.path("cwd"))
}
