//! A sample payload for each agent, to test an installation.

use std::path::Path;

use serde_json::{Value, json};

use super::Agent;

/// The session id of a sample.
pub(crate) const SESSION: &str = "backtrail-sample";

/// Returns the payload of a prompt that is submitted in this directory.
pub(crate) fn prompt(agent: Agent, directory: &Path) -> Value {
    let directory = directory.to_string_lossy();
    let prompt = "a sample prompt";
    match agent {
        Agent::Claude
        | Agent::Codex
        | Agent::Qwen
        | Agent::Opencode
        | Agent::Copilot
        | Agent::Kilo
        | Agent::Kimi
        | Agent::Pi
        | Agent::Droid => json!({
            "session_id": SESSION, "hook_event_name": "UserPromptSubmit", "cwd": directory,
            "prompt": prompt, "prompt_id": "1",
        }),
        Agent::Gemini => json!({
            "session_id": SESSION, "hook_event_name": "BeforeAgent", "cwd": directory,
            "prompt": prompt, "timestamp": "2026-11-15T06:28:15.939Z",
        }),
        Agent::Cursor => json!({
            "conversation_id": SESSION, "generation_id": "1", "cursor_version": "0",
            "hook_event_name": "beforeSubmitPrompt", "workspace_roots": [directory], "prompt": prompt,
        }),
        Agent::Generic => json!({
            "session": SESSION, "event": "prompt", "directory": directory, "prompt": prompt, "id": "1",
        }),
        Agent::Cline => json!({
            "taskId": SESSION, "hookName": "UserPromptSubmit", "workspaceRoots": [directory],
            "userPromptSubmit": { "prompt": prompt },
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::{Moment, read};
    use super::*;

    #[test]
    fn every_agents_sample_is_a_prompt() {
        for agent in Agent::ALL {
            let payload = prompt(agent, Path::new("/w")).to_string();
            let event = read(agent, payload.as_bytes()).unwrap().unwrap();
            assert_eq!((event.agent, event.session.as_str()), (agent, SESSION));
            assert_eq!(event.moment, Moment::Prompt("a sample prompt".into()));
            assert_eq!(event.directory.as_deref(), Some(Path::new("/w")));
        }
    }
}
