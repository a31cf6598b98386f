//! Payloads of Gemini CLI: Claude Code's keys with other event names, and a timestamp instead of ids.

use super::{
    Agent,
    event::{HookEvent, Moment, Payload, PayloadProblem},
    own_prompts::PromptFacts,
};

/// Parses a payload in this format.
pub(crate) fn read(payload: &Payload<'_>) -> Result<Option<HookEvent>, PayloadProblem> {
    let event = payload.text("hook_event_name").ok_or_else(|| PayloadProblem("it has no hook_event_name".into()))?;
    let tool = || payload.tool("tool_name", "tool_input", "tool_use_id");
    let moment = match event.as_str() {
        "SessionStart" => Moment::SessionStart { source: payload.text("source") },
        "BeforeAgent" => Moment::Prompt(payload.text("prompt").unwrap_or_default()),
        "BeforeTool" => Moment::BeforeTool(tool()?),
        "AfterTool" => Moment::AfterTool(tool()?),
        "AfterAgent" => Moment::TurnEnd,
        "SessionEnd" => Moment::SessionEnd,
        _ => return Ok(None),
    };
    // Two calls of one tool differ at least in the timestamp or in the input.
    let told = payload.0.get("tool_input").map(ToString::to_string).unwrap_or_default();
    Ok(Some(HookEvent {
        agent: Agent::Gemini,
        session: payload.session(&["session_id"])?,
        parent: None,
        subagent: None,
        identity: payload.text("timestamp").map(|time| format!("{time} {told}")),
        moment,
        prompt: PromptFacts::default(),
        directory: payload.path("cwd"),
        transcript: payload.path("transcript_path"),
    }))
}
