//! The files in which agents keep conversations, for events that do not name them.

use std::path::PathBuf;

use super::{Agent, event::HookEvent};
use crate::settings::Environment;

/// Returns the file of the conversation that an event belongs to: the one that the payload names, or else its usual
/// place. Returns `None` if it is not known.
pub(super) fn of_event(event: &HookEvent, environment: &Environment) -> Option<PathBuf> {
    event.transcript.clone().or_else(|| usual_place(event, environment))
}

fn usual_place(event: &HookEvent, environment: &Environment) -> Option<PathBuf> {
    let is_name = !event.session.contains('/') && !event.session.starts_with('.');
    match event.agent {
        // Copilot names the file only at the end of an answer.
        Agent::Copilot if is_name => {
            let places = environment.agent_places(event.directory.as_deref()?).ok()?;
            let own = places.copilot.unwrap_or_else(|| places.home.join(".copilot"));
            Some(own.join("session-state").join(&event.session).join("events.jsonl"))
        }
        _ => None,
    }
}
