//! How many steps each session has taken.
//!
//! Not synced: after a power cut the checkpoints of a session still tell how far it was at least.

use std::io;

use super::{
    Layout,
    lines::{self, Lines},
};
use crate::disk::private::{self, Durability};

/// So many sessions are remembered, those that took a step last.
const MAX_SESSIONS: usize = 200;

#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct SessionSteps {
    session: Option<String>,
    steps: u64,
}

/// Counts one more step of a session that took `at_least` so many; gives its number, from 1.
pub(super) fn count(layout: &Layout, session: Option<&str>, at_least: u64) -> io::Result<u64> {
    let path = layout.steps();
    let bytes = private::read(&path)?.unwrap_or_default();
    let mut known: Vec<SessionSteps> =
        Lines::of(&bytes).sound.into_iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let counted = known.iter().find(|known| known.session.as_deref() == session).map_or(0, |known| known.steps);
    let steps = counted.max(at_least).saturating_add(1);

    known.retain(|known| known.session.as_deref() != session);
    let surplus = (known.len() + 1).saturating_sub(MAX_SESSIONS);
    known.drain(..surplus);
    known.push(SessionSteps { session: session.map(str::to_owned), steps });

    let mut text = String::new();
    for known in &known {
        text.push_str(&lines::seal(&serde_json::to_string(known)?));
    }
    private::replace(&path, text.as_bytes(), Durability::Unsynced)?;
    Ok(steps)
}
