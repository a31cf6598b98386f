//! Merges one path: what is there, its contents and its permission bits.

use super::{
    Labels,
    clash::Clash,
    lines::{MergedLines, merge_lines},
};
use crate::{
    error::Result,
    model::{ContentId, Mode, Side},
    text::is_binary,
};

/// The three sides of a path. `None` means that there is nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sides {
    pub(super) base: Option<Side>,
    pub(super) now: Option<Side>,
    pub(super) other: Option<Side>,
}

/// The outcome for one path.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MergedPath {
    /// The path stays as it is on disk.
    Stays,
    /// The path becomes this side, which a checkpoint holds.
    Becomes(Option<Side>),
    /// The path becomes a file with merged contents.
    Merged { contents: Vec<u8>, mode: Mode },
    /// The lines overlap. Everything else about the path fits.
    Overlapping { lines: Vec<[u64; 2]>, marked: Vec<u8>, mode: Mode },
    /// The sides don't fit together, for this reason.
    Conflict(Clash),
}

/// Reads the three contents of a path: base, now, other. Returns `None` for contents that are too large to merge.
pub(super) trait ContentSource {
    fn stored(&self, content: &ContentId) -> Result<Option<Vec<u8>>>;
    fn present(&self, content: &ContentId) -> Result<Option<Vec<u8>>>;
}

/// Merges a path that the change modified, created or deleted.
pub(super) fn merge_path(sides: Sides, contents: &dyn ContentSource, labels: &Labels) -> Result<MergedPath> {
    let Sides { base, now, other } = sides;
    if now == other {
        return Ok(MergedPath::Stays);
    }
    if now == base {
        return Ok(MergedPath::Becomes(other));
    }
    Ok(match (base, now, other) {
        (None, _, _) => MergedPath::Conflict(Clash::Occupied),
        (_, _, None) => MergedPath::Conflict(edited_since(base, now)),
        (_, None, _) => MergedPath::Conflict(Clash::Deleted),
        (
            Some(Side::File { content: base, mode: base_mode }),
            Some(Side::File { content: now, mode: now_mode }),
            Some(Side::File { content: other, mode: other_mode }),
        ) => {
            let Some(mode) = scalar(base_mode, now_mode, other_mode) else {
                return Ok(MergedPath::Conflict(Clash::Both("its permission bits were changed since")));
            };
            match scalar(base, now, other) {
                Some(content) => MergedPath::Becomes(Some(Side::File { content, mode })),
                None => merge_contents([base, now, other], mode, contents, labels)?,
            }
        }
        (Some(Side::Symlink { .. }), Some(Side::Symlink { .. }), Some(Side::Symlink { .. })) => {
            MergedPath::Conflict(Clash::Both("the symlink was changed since"))
        }
        _ => MergedPath::Conflict(Clash::Both("it is of another type now")),
    })
}

/// Returns the reason why a path that the change created can't be removed.
fn edited_since(base: Option<Side>, now: Option<Side>) -> Clash {
    match (base, now) {
        (Some(Side::File { content: base, .. }), Some(Side::File { content: now, .. })) if base == now => {
            Clash::ModeChanged
        }
        (Some(Side::File { .. }), Some(Side::File { .. })) => Clash::Edited,
        _ => Clash::Replaced,
    }
}

/// Merges values that can't be split. Returns `None` if both sides changed them, each in another way.
fn scalar<T: PartialEq>(base: T, now: T, other: T) -> Option<T> {
    if base == now || now == other {
        Some(other)
    } else if base == other {
        Some(now)
    } else {
        None
    }
}

/// Merges permission bits. Returns `None` if both sides changed them, each in another way.
pub(super) fn merge_modes(base: Mode, now: Mode, other: Mode) -> Option<Mode> {
    scalar(base, now, other)
}

fn merge_contents(
    [base, now, other]: [ContentId; 3],
    mode: Mode,
    contents: &dyn ContentSource,
    labels: &Labels,
) -> Result<MergedPath> {
    let texts = (contents.stored(&base)?, contents.present(&now)?, contents.stored(&other)?);
    let (Some(base), Some(now), Some(other)) = texts else {
        return Ok(MergedPath::Conflict(Clash::Both("it was changed since, and is too large to merge")));
    };
    if [&base, &now, &other].into_iter().any(|bytes| is_binary(bytes)) {
        return Ok(MergedPath::Conflict(Clash::Both("it was changed since, and is binary")));
    }
    Ok(match merge_lines(&base, &now, &other, labels) {
        MergedLines::Clean(contents) => MergedPath::Merged { contents, mode },
        MergedLines::Overlapping { lines, marked } => MergedPath::Overlapping { lines, marked, mode },
    })
}
