//! Recognizes prompts that no person typed: an agent tells itself that a background task has ended, or continues after
//! the result of a tool. Their work belongs to the prompt that started it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    event::{HookEvent, Moment, Payload},
    session::SessionState,
};

/// The maximum number of prompts and of background tasks that a session remembers.
const MAX_KNOWN: usize = 64;

/// The sources of prompts that a person gave, in the word of the agent.
const SOURCES_OF_PEOPLE: &[&str] = &["user", "sdk"];

/// The facts in a payload that tell prompts apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct PromptFacts {
    /// The agent's id of the prompt that the event belongs to.
    pub(crate) id: Option<String>,
    /// Set if the prompt may be one that no person typed.
    pub(crate) own: Option<OwnPrompt>,
    /// The ids of tasks that run in the background.
    pub(crate) background: Vec<String>,
}

/// A prompt that the agent may have given itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OwnPrompt {
    /// The agent names a source that is not a person, and perhaps the task that ended.
    BySource(Option<String>),
    /// The text has the form of the message that this background task has ended. A person may type that.
    ByText(String),
    /// There is no text, and perhaps none will follow: Cline's command line does not name the prompt.
    Unnamed,
    /// There is no text. It continues an earlier prompt if the session knows its id.
    Empty,
}

impl PromptFacts {
    /// Reads the facts from a payload in the format of Claude Code.
    pub(super) fn of(payload: &Payload<'_>, moment: &Moment) -> Self {
        let own = match moment {
            Moment::Prompt(text) => own(payload, text),
            _ => None,
        };
        Self { id: payload.text("prompt_id"), own, background: background(payload) }
    }
}

fn own(payload: &Payload<'_>, text: &str) -> Option<OwnPrompt> {
    let task = notified_task(text);
    match payload.text("source") {
        Some(source) if SOURCES_OF_PEOPLE.contains(&source.as_str()) => None,
        Some(_) => Some(OwnPrompt::BySource(task)),
        None if text.is_empty() => Some(OwnPrompt::Empty),
        None => task.map(OwnPrompt::ByText),
    }
}

/// Returns the task that a message of Claude Code is about. Returns `None` if the text is anything else than one such
/// message.
fn notified_task(text: &str) -> Option<String> {
    let inner = text.trim().strip_prefix("<task-notification>")?.strip_suffix("</task-notification>")?;
    let (_, rest) = inner.split_once("<task-id>")?;
    let (task, rest) = rest.split_once("</task-id>")?;
    (inner.matches("<task-id>").count() == 1 && rest.contains("<status>")).then(|| task.trim().to_owned())
}

fn background(payload: &Payload<'_>) -> Vec<String> {
    let tasks = payload.value("background_tasks");
    let listed = tasks.as_array().into_iter().flatten().filter_map(|task| task["id"].as_str());
    let response = payload.value("tool_response");
    let started = response.get("backgroundTaskId").and_then(Value::as_str);
    listed.chain(started).map(str::to_owned).take(MAX_KNOWN).collect()
}

/// A prompt of a session, or a background task that was started for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KnownPrompt {
    /// The agent's id of the prompt or of the task.
    id: String,
    /// The number of the prompt.
    turn: u64,
    prompt: Option<String>,
}

impl SessionState {
    /// Returns whether this prompt is one that no person typed.
    pub(super) fn is_own_prompt(&self, event: &HookEvent) -> bool {
        match &event.prompt.own {
            None => false,
            Some(OwnPrompt::BySource(_)) => true,
            Some(OwnPrompt::Unnamed) => self.is_prompt_fresh,
            // Without any id to compare with, only the text is left.
            Some(OwnPrompt::ByText(task)) => self.tasks.is_empty() || find(&self.tasks, task).is_some(),
            Some(OwnPrompt::Empty) => event.prompt.id.as_ref().is_some_and(|id| find(&self.prompts, id).is_some()),
        }
    }

    /// Remembers which prompt the event's ids belong to.
    pub(super) fn note_prompt(&mut self, event: &HookEvent) {
        let is_prompt = matches!(event.moment, Moment::Prompt(_));
        if is_prompt && !self.is_own_prompt(event) {
            // Some agents use an id again.
            self.prompts.retain(|known| Some(&known.id) != event.prompt.id.as_ref());
        }
        let (turn, prompt) = self.prompt_of(event);
        let known = |id: &String| KnownPrompt { id: id.clone(), turn, prompt: prompt.clone() };
        event.prompt.background.iter().for_each(|id| add(&mut self.tasks, known(id)));
        if is_prompt {
            event.prompt.id.iter().for_each(|id| add(&mut self.prompts, known(id)));
        }
    }

    /// Returns the number and the text of the prompt that an event belongs to: the one that started it, if that is
    /// known, and the last one otherwise.
    pub(super) fn prompt_of(&self, event: &HookEvent) -> (u64, Option<String>) {
        let by_id = event.prompt.id.as_ref().and_then(|id| find(&self.prompts, id));
        let task = match &event.prompt.own {
            Some(OwnPrompt::BySource(Some(task)) | OwnPrompt::ByText(task)) if self.is_own_prompt(event) => {
                find(&self.tasks, task)
            }
            _ => None,
        };
        by_id.or(task).map_or((self.turn, self.prompt.clone()), |known| (known.turn, known.prompt.clone()))
    }
}

fn find<'k>(known: &'k [KnownPrompt], id: &str) -> Option<&'k KnownPrompt> {
    known.iter().find(|known| known.id == id)
}

/// Adds a prompt or task, unless it is known. The oldest are forgotten.
fn add(known: &mut Vec<KnownPrompt>, new: KnownPrompt) {
    if find(known, &new.id).is_none() {
        known.push(new);
        let surplus = known.len().saturating_sub(MAX_KNOWN);
        known.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_message_is_about_a_task() {
        let message = "<task-notification>\n<task-id>b1</task-id>\n<status>completed</status>\n</task-notification>";
        assert_eq!(notified_task(message).as_deref(), Some("b1"));
        for typed in ["<task-notification>", "what is <task-notification>?", &format!("explain {message}")] {
            assert_eq!(notified_task(typed), None, "{typed}");
        }
    }
}
