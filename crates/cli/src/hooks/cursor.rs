//! Payloads of Cursor: conversations that consist of generations, and several workspace roots.

use std::path::PathBuf;

use serde_json::Value;

use super::{
    Agent,
    event::{HookEvent, Moment, Payload, PayloadProblem, ToolCall},
    own_prompts::PromptFacts,
};

/// Parses a payload in this format.
pub(crate) fn read(payload: &Payload<'_>) -> Result<Option<HookEvent>, PayloadProblem> {
    let event = payload.text("hook_event_name").ok_or_else(|| PayloadProblem("it has no hook_event_name".into()))?;
    let tool = || payload.tool("tool_name", "tool_input", "tool_use_id");
    let moment = match event.as_str() {
        "sessionStart" => Moment::SessionStart { source: payload.text("source") },
        "beforeSubmitPrompt" => Moment::Prompt(payload.text("prompt").unwrap_or_default()),
        "preToolUse" => Moment::BeforeTool(tool()?),
        "postToolUse" | "postToolUseFailure" => Moment::AfterTool(tool()?),
        "beforeShellExecution" => Moment::BeforeTool(shell(payload)),
        "afterShellExecution" => Moment::AfterTool(shell(payload)),
        "afterFileEdit" => Moment::AfterTool(edit(payload)),
        "subagentStart" => Moment::SubagentStart,
        "subagentStop" => Moment::SubagentEnd,
        "stop" => Moment::TurnEnd,
        "sessionEnd" => Moment::SessionEnd,
        _ => return Ok(None),
    };
    Ok(Some(HookEvent {
        agent: Agent::Cursor,
        session: payload.session(&["conversation_id", "session_id"])?,
        parent: payload.text("parent_conversation_id"),
        subagent: payload.text("subagent_id"),
        identity: identity(&moment, payload),
        moment,
        prompt: PromptFacts::default(),
        directory: directory(payload),
        transcript: payload.path("transcript_path"),
    }))
}

fn shell(payload: &Payload<'_>) -> ToolCall {
    ToolCall { name: "Shell".into(), id: None, input: serde_json::json!({ "command": payload.text("command") }) }
}

fn edit(payload: &Payload<'_>) -> ToolCall {
    ToolCall { name: "Edit".into(), id: None, input: serde_json::json!({ "file_path": payload.text("file_path") }) }
}

/// Returns the first root. `cwd` is only a fallback, because hooks from the user's own configuration run in an
/// unrelated directory.
fn directory(payload: &Payload<'_>) -> Option<PathBuf> {
    let roots = payload.value("workspace_roots");
    let first = roots.as_array().and_then(|roots| roots.first()).and_then(Value::as_str).map(PathBuf::from);
    first.filter(|root| root.is_absolute()).or_else(|| payload.path("cwd"))
}

fn identity(moment: &Moment, payload: &Payload<'_>) -> Option<String> {
    let generation = payload.text("generation_id");
    match moment {
        Moment::BeforeTool(call) | Moment::AfterTool(call) => call.id.clone(),
        Moment::Prompt(text) => generation.map(|generation| format!("{generation} {text}")),
        _ => None,
    }
}
