//! Tells an agent, with its next prompt, that files were restored or are no longer protected.

use backtrail::{CheckpointId, Event, PatchLimits, Skipped, TimedEvent, Workspace};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Agent, event::Moment};

/// The maximum number of paths in a message.
const MAX_NAMED: usize = 20;

/// Identifies an event in the workspace's event log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EventMark(u64);

impl EventMark {
    /// The position before the first event.
    const START: Self = Self(0);

    fn of(line: &str) -> Self {
        Self(xxhash_rust::xxh3::xxh3_64(line.as_bytes()))
    }
}

/// The position up to which an agent was informed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// The last event that the agent was informed about. A clock may be set back, but the order of events does not
    /// change.
    pub(super) event: Option<EventMark>,
    /// The time of the last message. Used if the event is not known or no longer in the log.
    pub(super) time: Timestamp,
}

/// The message for an agent.
#[derive(Debug, Default)]
pub(super) struct RestoreNotice {
    /// The message in the agent's format. `None` if there is nothing to say, or if the agent accepts no message.
    pub(super) text: Option<String>,
    /// The last event that was read.
    pub(super) last: Option<EventMark>,
}

/// Returns the message about restores and dropped paths that the agent was not informed about.
pub(super) fn since(workspace: &Workspace, agent: Agent, moment: &Moment, told: &Told) -> RestoreNotice {
    let Some(channel) = Channel::of(agent) else { return RestoreNotice::default() };
    let is_heard = channel.is_heard_at(moment);
    if !is_heard && told.event.is_some() {
        return RestoreNotice::default();
    }
    let Ok(events) = workspace.events() else { return RestoreNotice::default() };
    let last = Some(events.last().map_or(EventMark::START, |line| EventMark::of(line)));
    let unheard = Unheard::of(&events, told);
    if !is_heard {
        // A new session knows everything that happened before it. Anything newer is sent with its first prompt.
        let has_news =
            !unheard.restores.is_empty() || !unheard.reverts.is_empty() || !unheard.dropped(workspace).is_empty();
        return RestoreNotice { text: None, last: last.filter(|_| !has_news) };
    }
    let is_to_be_told = workspace.settings().checkpoints.tell_agent;
    let text = is_to_be_told.then(|| unheard.text(workspace)).flatten();
    RestoreNotice { text: text.map(|text| channel.answer(text)), last }
}

/// The way in which the output of an agent's hook reaches the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Channel {
    /// The format of Claude Code, with the name of the event.
    Claude(&'static str),
    Copilot,
    Cline,
    /// The text itself.
    Plain,
}

impl Channel {
    /// Returns `None` if the agent has no channel.
    fn of(agent: Agent) -> Option<Self> {
        match agent {
            Agent::Claude | Agent::Codex | Agent::Qwen => Some(Self::Claude("UserPromptSubmit")),
            Agent::Gemini => Some(Self::Claude("BeforeAgent")),
            Agent::Copilot => Some(Self::Copilot),
            Agent::Cline => Some(Self::Cline),
            Agent::Kimi | Agent::Pi | Agent::Generic => Some(Self::Plain),
            Agent::Cursor | Agent::Opencode | Agent::Kilo | Agent::Droid => None,
        }
    }

    /// Returns whether the agent reads the output of the hook of this event.
    fn is_heard_at(self, moment: &Moment) -> bool {
        match (self, moment) {
            // Cline's command line starts the hook of its prompts in the background, and does not read its output.
            (Self::Cline, Moment::Prompt(text)) => !text.is_empty(),
            (Self::Cline, Moment::BeforeTool(_)) | (_, Moment::Prompt(_)) => true,
            _ => false,
        }
    }

    fn answer(self, text: String) -> String {
        let answer = match self {
            Self::Plain => Value::Null,
            Self::Claude(event) => {
                json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } })
            }
            Self::Copilot => json!({ "additionalContext": text }),
            // The editor extension reads one key, the command line the other.
            Self::Cline => json!({ "cancel": false, "contextModification": text, "context": text }),
        };
        if self == Self::Plain { format!("{text}\n") } else { format!("{answer}\n") }
    }
}

/// Events since the last message to the agent, oldest first.
struct Unheard {
    /// The target of each restore, and its safety checkpoint.
    restores: Vec<(CheckpointId, CheckpointId)>,
    /// The newest checkpoint that each revert took back, and its safety checkpoint.
    reverts: Vec<(CheckpointId, CheckpointId)>,
    /// The checkpoints that were taken.
    taken: Vec<CheckpointId>,
}

impl Unheard {
    fn of(events: &[String], told: &Told) -> Self {
        let position = match told.event {
            Some(EventMark::START) => Some(0),
            Some(mark) => events.iter().rposition(|line| EventMark::of(line) == mark).map(|position| position + 1),
            None => None,
        };
        let events =
            events[position.unwrap_or(0)..].iter().filter_map(|line| serde_json::from_str::<TimedEvent>(line).ok());
        let mut unheard = Self { restores: Vec::new(), reverts: Vec::new(), taken: Vec::new() };
        for event in events.filter(|event| position.is_some() || event.time > told.time) {
            match event.event {
                Event::CheckpointRestored { checkpoint, safety: Some(safety) } => {
                    unheard.restores.push((checkpoint, safety));
                }
                Event::Reverted { checkpoints, safety } => {
                    unheard.reverts.extend(checkpoints.first().map(|newest| (*newest, safety)));
                }
                Event::CheckpointCreated { checkpoint, .. } => unheard.taken.push(checkpoint),
                _ => {}
            }
        }
        unheard
    }

    /// Returns the paths that these checkpoints dropped. Returns none if the store can't be read, because a hook must
    /// not fail for that.
    fn dropped(&self, workspace: &Workspace) -> Vec<Skipped> {
        workspace.dropped_by(&self.taken).unwrap_or_default()
    }

    fn text(&self, workspace: &Workspace) -> Option<String> {
        let parts = [
            restored_text(workspace, &self.restores),
            reverted_text(workspace, &self.reverts),
            dropped_text(&self.dropped(workspace)),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }
}

/// Returns the message about paths that are no longer protected. Returns `None` if there are no such paths.
fn dropped_text(dropped: &[Skipped]) -> Option<String> {
    if dropped.is_empty() {
        return None;
    }
    let path = |skipped: &Skipped| format!("{:?} ({})", skipped.path.to_text(), skipped.reason.as_str());
    let mut words: Vec<String> = dropped.iter().take(MAX_NAMED).map(path).collect();
    if dropped.len() > MAX_NAMED {
        words.push(format!("and {} more", dropped.len() - MAX_NAMED));
    }
    Some(format!(
        "These files of this workspace are not in checkpoints any more, so a change to them can't be taken back: {}. \
         Tell the user before you change or delete them.",
        words.join(", ")
    ))
}

fn restored_text(workspace: &Workspace, restores: &[(CheckpointId, CheckpointId)]) -> Option<String> {
    let (target, _) = restores.last()?;
    let mut paths: Vec<String> = Vec::new();
    let mut all_named = true;
    for (target, safety) in restores {
        match workspace.diff_within(Some(*safety), Some(*target), &backtrail::Scope::Whole, &PatchLimits::NO_PATCH) {
            Ok(diff) => paths.extend(diff.changes.iter().map(|change| change.display_path())),
            // One of the two checkpoints was deleted since. The agent still has to know that files changed.
            Err(_) => all_named = false,
        }
    }
    paths.sort();
    paths.dedup();
    if paths.is_empty() && all_named {
        return None;
    }
    Some(format!(
        "Files of this workspace were restored to checkpoint {} since your last turn, so these files on disk may not \
         be as you left them: {}. Read a file again before you rely on it or edit it.",
        target.short(),
        in_words(&paths, all_named)
    ))
}

/// Returns the message about changes that were taken back. The safety checkpoint of a revert covers what it changed.
fn reverted_text(workspace: &Workspace, reverts: &[(CheckpointId, CheckpointId)]) -> Option<String> {
    let (newest, _) = reverts.last()?;
    let mut paths: Vec<String> = Vec::new();
    let mut all_named = true;
    for (_, safety) in reverts {
        match workspace.get(safety) {
            Ok(safety) => paths.extend(safety.scope.paths().unwrap_or_default().iter().map(ToString::to_string)),
            Err(_) => all_named = false,
        }
    }
    paths.sort();
    paths.dedup();
    Some(format!(
        "Changes of checkpoint {} were taken back since your last turn, so that what is on disk is not what you left: \
         {}. Read a file again before you rely on it or edit it, and do not make those changes again.",
        newest.short(),
        in_words(&paths, all_named)
    ))
}

fn in_words(paths: &[String], all_named: bool) -> String {
    let mut words: Vec<String> = paths.iter().take(MAX_NAMED).map(|path| format!("{path:?}")).collect();
    if paths.len() > MAX_NAMED {
        words.push(format!("and {} more", paths.len() - MAX_NAMED));
    }
    if !all_named {
        words.push("and others that are not listed".to_owned());
    }
    words.join(", ")
}
