//! Tells an agent, with its next prompt, that files are no longer as it left them, or no longer protected.

use backtrail::{CheckpointId, Event, PatchLimits, Skipped, TimedEvent, Workspace};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{Agent, event::Moment};

/// No more paths than this are named.
const MAX_NAMED: usize = 20;

/// Tells one event of a workspace from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct EventMark(u64);

impl EventMark {
    /// Stands before the first.
    const START: Self = Self(0);

    fn of(line: &str) -> Self {
        Self(xxhash_rust::xxh3::xxh3_64(line.as_bytes()))
    }
}

/// How far an agent was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// Up to this event. A clock may be set back; the order of events can't.
    pub(super) event: Option<EventMark>,
    /// Up to this time, where the event is not known or no longer kept.
    pub(super) time: Timestamp,
}

/// What there is to tell.
#[derive(Debug, Default)]
pub(super) struct News {
    /// In the shape that the agent takes; none where there is nothing to say, or no way to say it.
    pub(super) text: Option<String>,
    /// The last event that was looked at.
    pub(super) last: Option<EventMark>,
}

/// What an agent should know about restores and dropped paths that it was not told about.
pub(super) fn since(workspace: &Workspace, agent: Agent, moment: &Moment, told: &Told) -> News {
    let event = match agent {
        Agent::Claude | Agent::Codex | Agent::Qwen => "UserPromptSubmit",
        Agent::Gemini => "BeforeAgent",
        Agent::Cline => "",
        Agent::Cursor | Agent::Copilot | Agent::Opencode => return News::default(),
    };
    let is_prompt = matches!(moment, Moment::Prompt(_));
    if !is_prompt && told.event.is_some() {
        return News::default();
    }
    let Ok(events) = workspace.events() else { return News::default() };
    let last = Some(events.last().map_or(EventMark::START, |line| EventMark::of(line)));
    let unheard = Unheard::of(&events, told);
    if !is_prompt {
        // A session that begins knows of all that was before; what it does not know is told with its prompt.
        let has_news = !unheard.restores.is_empty() || !unheard.dropped(workspace).is_empty();
        return News { text: None, last: last.filter(|_| !has_news) };
    }
    let is_to_be_told = workspace.settings().checkpoints.tell_agent;
    let text = is_to_be_told.then(|| unheard.text(workspace)).flatten().map(|text| {
        let answer: Value = match agent {
            Agent::Cline => json!({ "cancel": false, "contextModification": text }),
            _ => json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } }),
        };
        format!("{answer}\n")
    });
    News { text, last }
}

/// What happened since the agent was told last, oldest first.
struct Unheard {
    /// The target of each restore, and its safety checkpoint.
    restores: Vec<(CheckpointId, CheckpointId)>,
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
        let mut unheard = Self { restores: Vec::new(), taken: Vec::new() };
        for event in events.filter(|event| position.is_some() || event.time > told.time) {
            match event.event {
                Event::CheckpointRestored { checkpoint, safety: Some(safety) } => {
                    unheard.restores.push((checkpoint, safety));
                }
                Event::CheckpointCreated { checkpoint, .. } => unheard.taken.push(checkpoint),
                _ => {}
            }
        }
        unheard
    }

    /// Returns the paths that these checkpoints dropped. A store that can't be read has none; a hook must not fail by it.
    fn dropped(&self, workspace: &Workspace) -> Vec<Skipped> {
        workspace.dropped_by(&self.taken).unwrap_or_default()
    }

    fn text(&self, workspace: &Workspace) -> Option<String> {
        let parts = [restored_text(workspace, &self.restores), dropped_text(&self.dropped(workspace))];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }
}

/// Tells that paths are not protected any more; `None` if there are none.
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
        "These files of this workspace are not in checkpoints any more, so that a change to them can't be taken back: {}. \
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
