//! Payloads of Cline. Sessions are called tasks, and the details of an event are under a key of their own.
//!
//! The command line starts an agent for each prompt, and names neither the prompt nor the session's start: the start of
//! the agent is the prompt. The editor extension names both.

use std::path::PathBuf;

use serde_json::Value;

use super::{
    Agent,
    event::{HookEvent, Moment, Payload, PayloadProblem, ToolCall},
    own_prompts::{OwnPrompt, PromptFacts},
};

/// Parses a payload in this format.
pub(crate) fn read(payload: &Payload<'_>) -> Result<Option<HookEvent>, PayloadProblem> {
    let event = payload.first_text(&["hookName", "hook_event_name"]);
    let event = event.ok_or_else(|| PayloadProblem("it has no hookName".into()))?;
    let parent_agent = payload.text("parent_agent_id");
    let moment = match event.as_str() {
        "TaskStart" => Moment::SessionStart { source: Some("start".into()) },
        "TaskResume" => Moment::SessionStart { source: Some("resume".into()) },
        "agent_start" | "agent_resume" if parent_agent.is_some() => Moment::SubagentStart,
        "agent_start" | "agent_resume" => Moment::Prompt(String::new()),
        "UserPromptSubmit" | "prompt_submit" => Moment::Prompt(prompt(payload)),
        "PreToolUse" | "tool_call" => Moment::BeforeTool(tool(payload, &["tool_call", "preToolUse"])?),
        "PostToolUse" | "tool_result" => {
            Moment::AfterTool(tool(payload, &["tool_result", "postToolUse", "tool_call"])?)
        }
        "agent_end" if parent_agent.is_some() => Moment::SubagentEnd,
        "TaskComplete" | "TaskError" | "agent_end" => Moment::TurnEnd,
        "TaskCancel" | "SessionShutdown" | "session_shutdown" => Moment::SessionEnd,
        _ => return Ok(None),
    };
    let unnamed = (moment == Moment::Prompt(String::new())).then_some(OwnPrompt::Unnamed);
    let id = match &moment {
        Moment::BeforeTool(call) | Moment::AfterTool(call) => call.id.clone(),
        _ => None,
    };
    Ok(Some(HookEvent {
        agent: Agent::Cline,
        session: session(payload)?,
        parent: payload.text("parentTaskId"),
        subagent: payload.text("agent_id").filter(|_| parent_agent.is_some()),
        identity: id.or_else(|| payload.0.get("timestamp").filter(|time| !time.is_null()).map(Value::to_string)),
        moment,
        prompt: PromptFacts { own: unnamed, ..PromptFacts::default() },
        directory: directory(payload),
        transcript: None,
    }))
}

/// Returns the session. The command line has one task for each agent of a session.
fn session(payload: &Payload<'_>) -> Result<String, PayloadProblem> {
    let context = payload.first_object(&["sessionContext"]);
    let root = context.and_then(|context| Payload(&context).session(&["rootSessionId"]).ok());
    root.map_or_else(|| payload.session(&["taskId", "conversationId"]), Ok)
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
