//! Ranges of checkpoints: `FROM..TO`.

use jiff::Zoned;

use super::resolve::Search;
use crate::{
    error::{Error, Result},
    model::CheckpointId,
    store::{Timeline, TimelineEntry},
    workspace::Workspace,
};

/// Two checkpoints that exist: the ends of `FROM..TO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// The checkpoint before the range. It does not belong to it.
    pub from: CheckpointId,
    /// The last checkpoint of the range.
    pub to: CheckpointId,
}

/// Splits `FROM..TO` into its ends. Returns `None` for any other word, such as `wait...`.
pub(super) fn split_range(word: &str) -> Option<(&str, &str)> {
    word.split_once("..").filter(|(from, to)| !from.is_empty() && !to.is_empty() && !to.starts_with('.'))
}

impl Workspace {
    /// Returns the range that a word names. Returns `None` if the word is not of the form `FROM..TO`, or if it is the
    /// name of a checkpoint. `session` selects the session of `turn:N`.
    pub fn resolve_range(&self, word: &str, session: Option<&str>, now: &Zoned) -> Result<Option<Range>> {
        let Some((from, to)) = split_range(word) else { return Ok(None) };
        let timeline = self.timeline_if_any()?;
        let search = Search { timeline: &timeline, session, now };
        if search.named(word).is_some() {
            return Ok(None);
        }
        Ok(Some(Range { from: search.require(from)?.id, to: search.require(to)?.id }))
    }

    /// Returns an error if a range runs backwards: its last checkpoint is one of those that led to its first.
    pub fn refuse_backwards(&self, range: &Range) -> Result<()> {
        let timeline = self.timeline_if_any()?;
        let is_backwards = range.from != range.to && line_to(&timeline, &range.from)?.any(|entry| entry.id == range.to);
        if is_backwards { Err(backwards(range)) } else { Ok(()) }
    }
}

/// Returns the checkpoints after one checkpoint up to another, newest first. Returns an error if the first is not among
/// those that led to the second.
pub(crate) fn line_between(timeline: &Timeline, from: &CheckpointId, to: &CheckpointId) -> Result<Vec<CheckpointId>> {
    let mut found = Vec::new();
    for entry in line_to(timeline, to)? {
        if entry.id == *from {
            return Ok(found);
        }
        found.push(entry.id);
    }
    if line_to(timeline, from)?.any(|entry| entry.id == *to) {
        return Err(backwards(&Range { from: *from, to: *to }));
    }
    Err(Error::Usage(format!("{} is not on the line that leads to {}", from.short(), to.short())))
}

/// Returns a checkpoint and those that led to it, newest first. Deleted ones are skipped.
pub(crate) fn line_to<'t>(
    timeline: &'t Timeline,
    id: &CheckpointId,
) -> Result<impl Iterator<Item = &'t TimelineEntry> + use<'t>> {
    Ok(std::iter::successors(Some(timeline.require(id)?), |entry| timeline.nearest(entry.parent?)))
}

fn backwards(range: &Range) -> Error {
    let (from, to) = (range.from.short(), range.to.short());
    Error::Usage(format!("the range {from}..{to} runs backwards; write {to}..{from}"))
}
