//! Tells an agent, with its next prompt, that files are no longer as it left them.

use backtrail::{CheckpointId, Event, TimedEvent, Workspace};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Agent, event::Moment};

/// No more paths than this are named.
const MAX_NAMED: usize = 20;

/// What an agent should know about restores since a moment, in the shape that it takes; none where there is nothing to
/// say, or no way to say it.
pub(crate) fn since(workspace: &Workspace, agent: Agent, moment: &Moment, last: Timestamp) -> Option<String> {
    if !matches!(moment, Moment::Prompt(_)) || !workspace.settings().checkpoints.tell_agent {
        return None;
    }
    let event = match agent {
        Agent::Claude | Agent::Codex | Agent::Qwen => "UserPromptSubmit",
        Agent::Gemini => "BeforeAgent",
        Agent::Cline => "",
        Agent::Cursor | Agent::Copilot | Agent::Opencode => return None,
    };
    let text = text(workspace, last)?;
    let answer: Value = match agent {
        Agent::Cline => json!({ "cancel": false, "contextModification": text }),
        _ => json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } }),
    };
    Some(format!("{answer}\n"))
}

fn text(workspace: &Workspace, last: Timestamp) -> Option<String> {
    let events = workspace.events().ok()?;
    let events = events.iter().filter_map(|line| serde_json::from_str::<TimedEvent>(line).ok());
    let restores: Vec<(CheckpointId, CheckpointId)> = events
        .filter(|event| event.time > last)
        .filter_map(|event| match event.event {
            Event::CheckpointRestored { checkpoint, safety: Some(safety) } => Some((checkpoint, safety)),
            _ => None,
        })
        .collect();
    let (target, _) = restores.last()?;
    let mut paths: Vec<String> = Vec::new();
    let mut all_named = true;
    for (target, safety) in &restores {
        match workspace.diff(Some(*safety), Some(*target), &backtrail::Scope::Whole) {
            Ok(diff) => paths.extend(diff.changes.iter().map(|change| change.display_path())),
            // One of the two was deleted since: that something changed is still worth a word.
            Err(_) => all_named = false,
        }
    }
    paths.sort();
    paths.dedup();
    if paths.is_empty() && all_named {
        return None;
    }
    Some(format!(
        "Files of this workspace were restored to checkpoint {} since your last turn, so that what is on disk is not what \
         you left: {}. Read a file again before you rely on it or edit it.",
        target.short(),
        in_words(&paths, all_named)
    ))
}

fn in_words(paths: &[String], all_named: bool) -> String {
    let mut words: Vec<String> = paths.iter().take(MAX_NAMED).map(|path| format!("{path:?}")).collect();
    if paths.len() > MAX_NAMED {
        words.push(format!("and {} more", paths.len() - MAX_NAMED));
    }
    if !all_named {
        words.push("and others, of which no list is kept".to_owned());
    }
    words.join(", ")
}
