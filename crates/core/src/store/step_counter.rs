//! The number of steps that each session has taken.
//!
//! The file is not synced: after a power cut, the checkpoints of a session still give a lower bound.

use std::io;

use super::{
    Layout,
    checksummed_lines::{self, Lines},
};
use crate::disk::private::{self, Durability};

/// The number of sessions that are remembered: those that took a step last.
const MAX_SESSIONS: usize = 200;

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct SessionSteps {
    session: Option<String>,
    steps: u64,
}

/// Counts one more step of a session that took `at_least` steps or more before. Returns the number of the step, from 1.
pub(super) fn count(layout: &Layout, session: Option<&str>, at_least: u64) -> io::Result<u64> {
    let mut known = read(layout)?;
    let steps = counted_in(&known, session).max(at_least).saturating_add(1);
    known.retain(|known| known.session.as_deref() != session);
    let surplus = (known.len() + 1).saturating_sub(MAX_SESSIONS);
    known.drain(..surplus);
    known.push(SessionSteps { session: session.map(str::to_owned), steps });

    let mut text = String::new();
    for known in &known {
        text.push_str(&checksummed_lines::seal(&serde_json::to_string(known)?));
    }
    private::replace(&layout.steps(), text.as_bytes(), Durability::Unsynced)?;
    Ok(steps)
}

/// Returns the number of steps that a session has taken, which is `at_least` or more.
pub(super) fn counted(layout: &Layout, session: Option<&str>, at_least: u64) -> io::Result<u64> {
    Ok(counted_in(&read(layout)?, session).max(at_least))
}

fn read(layout: &Layout) -> io::Result<Vec<SessionSteps>> {
    let bytes = private::read(&layout.steps())?.unwrap_or_default();
    Ok(Lines::of(&bytes).sound.into_iter().filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn counted_in(known: &[SessionSteps], session: Option<&str>) -> u64 {
    known.iter().find(|known| known.session.as_deref() == session).map_or(0, |known| known.steps)
}
