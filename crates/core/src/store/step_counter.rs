//! The number of steps that each session has taken, and the tool calls that it has begun and not ended.
//!
//! The file is not synced: after a power cut, the checkpoints of a session still give a lower bound.

use std::io;

use super::{
    Layout,
    checksummed_lines::{self, Lines},
};
use crate::{
    disk::private::{self, Durability},
    model::{CallBeside, WorkspacePath},
};

/// The number of sessions that are remembered: those that took a step last.
const MAX_SESSIONS: usize = 200;

/// The time after which a call counts as ended, in milliseconds. An agent that was killed never ends its calls.
const MAX_CALL_MILLISECONDS: i64 = 3_600_000;

#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
struct SessionSteps {
    session: Option<String>,
    steps: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<RunningCall>,
}

/// A tool call that has begun.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct RunningCall {
    /// The agent's id of the call.
    pub(crate) id: String,
    /// The number of the prompt in its session.
    pub(crate) turn: Option<u64>,
    /// The time when it began, in milliseconds since 1970.
    pub(crate) began: i64,
    /// The files that the call names.
    pub(crate) paths: Vec<WorkspacePath>,
}

/// Counts one more step of a session that took `at_least` steps or more before, and notes the call that begins with it.
/// Returns the number of the step, from 1.
pub(super) fn count(
    layout: &Layout,
    session: Option<&str>,
    at_least: u64,
    call: Option<RunningCall>,
) -> io::Result<u64> {
    let mut known = read(layout)?;
    let steps = counted_in(&known, session).max(at_least).saturating_add(1);
    let of_session = known.iter().position(|known| known.session.as_deref() == session);
    let mut calls = of_session.map(|position| known.remove(position).calls).unwrap_or_default();
    calls.retain(|running| call.as_ref().is_none_or(|call| running.id != call.id));
    calls.extend(call);
    let surplus = (known.len() + 1).saturating_sub(MAX_SESSIONS);
    known.drain(..surplus);
    known.push(SessionSteps { session: session.map(str::to_owned), steps, calls });
    write(layout, &known)?;
    Ok(steps)
}

/// Notes that a call of a session has ended, or all of its calls.
pub(super) fn end_calls(layout: &Layout, session: Option<&str>, id: Option<&str>) -> io::Result<()> {
    let mut known = read(layout)?;
    let Some(of_session) = known.iter_mut().find(|known| known.session.as_deref() == session) else { return Ok(()) };
    let before = of_session.calls.len();
    of_session.calls.retain(|call| id.is_some_and(|id| call.id != id));
    if of_session.calls.len() == before { Ok(()) } else { write(layout, &known) }
}

/// Returns the calls of other sessions that are running at this time, in milliseconds since 1970.
pub(super) fn calls_beside(layout: &Layout, session: Option<&str>, now: i64) -> io::Result<Vec<CallBeside>> {
    let others = read(layout)?.into_iter().filter(|known| known.session.as_deref() != session);
    let calls = others.flat_map(|known| known.calls.into_iter().map(move |call| (known.session.clone(), call)));
    let running = calls.filter(|(_, call)| (0..MAX_CALL_MILLISECONDS).contains(&(now - call.began)));
    Ok(running.map(|(session, call)| CallBeside { session, turn: call.turn, paths: call.paths }).collect())
}

fn write(layout: &Layout, known: &[SessionSteps]) -> io::Result<()> {
    let mut text = String::new();
    for known in known {
        text.push_str(&checksummed_lines::seal(&serde_json::to_string(known)?));
    }
    private::replace(&layout.steps(), text.as_bytes(), Durability::Unsynced)
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
