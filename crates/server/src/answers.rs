//! Limits the size of answers. The types are those of `docs/json.md`, with long parts truncated and marked, and without
//! the contents of precious files.

use backtrail::{
    Change, Checkpoint, Conflict, Precious, Skipped,
    json::{ChangeJson, CheckpointJson, ConflictJson, SkippedJson, start_of},
};
use schemars::JsonSchema;
use serde::Serialize;

/// The maximum length of a checkpoint's lists, if it is one of many, and if it is shown in full.
const MAX_PATHS_IN_LIST: usize = 20;
const MAX_PATHS_IN_FULL: usize = 500;
/// The maximum number of paths that are listed with a reason.
const MAX_REASONS: usize = 100;
/// The maximum length of a text from users or agents.
const MAX_TEXT_BYTES: usize = 4_000;
/// The maximum length of all paths of one list together.
const MAX_PATH_LIST_BYTES: usize = 64_000;
/// The maximum length of a checkpoint's metadata, as JSON.
const MAX_METADATA_BYTES: usize = 16_000;

/// The level of detail of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The checkpoint is one of many.
    InList,
    /// The checkpoint is shown alone.
    Full,
}

/// `Checkpoint`, with a note for each truncated part.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "BoundedCheckpoint")]
pub(crate) struct BoundedCheckpoint {
    #[serde(flatten)]
    checkpoint: CheckpointJson,
    /// The truncated fields, and how much each lost; empty if nothing was truncated.
    truncated: Vec<String>,
}

impl BoundedCheckpoint {
    pub(crate) fn new(checkpoint: &Checkpoint, detail: Detail) -> Self {
        let mut checkpoint = CheckpointJson::from(checkpoint);
        let mut notes = Notes::default();
        let most = if detail == Detail::InList { MAX_PATHS_IN_LIST } else { MAX_PATHS_IN_FULL };
        notes.cut_text("message", &mut checkpoint.message);
        for (name, text) in [
            ("name", &mut checkpoint.name),
            ("description", &mut checkpoint.description),
            ("prompt", &mut checkpoint.origin.prompt),
            ("session", &mut checkpoint.origin.session),
            ("agent", &mut checkpoint.origin.agent),
            ("tool", &mut checkpoint.origin.tool),
        ] {
            text.iter_mut().for_each(|text| notes.cut_text(name, text));
        }
        notes.cut_list("files_changed", &mut checkpoint.files_changed, most, String::len);
        notes.cut_list("attachments", &mut checkpoint.attachments, most, |attachment| attachment.name.len());
        if let Some(git) = &mut checkpoint.git {
            notes.cut_list("git.dirty_files", &mut git.dirty_files, most, String::len);
        }
        if let Some(features) = &mut checkpoint.feature_state {
            features.current.iter_mut().for_each(|current| notes.cut_text("feature_state.current", current));
            notes.cut_list("feature_state.completed", &mut features.completed, most, String::len);
        }
        if let Some(scope) = &mut checkpoint.scope {
            notes.cut_list("scope", scope, most, String::len);
        }
        let metadata_bytes = serde_json::to_string(&checkpoint.metadata).map_or(0, |text| text.len());
        if metadata_bytes > MAX_METADATA_BYTES {
            checkpoint.metadata.clear();
            notes.add(format!("metadata: {metadata_bytes} bytes left out"));
        }
        Self { checkpoint, truncated: notes.0 }
    }
}

/// `Change`, and whether its contents may be shown.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "ShownChange")]
pub(crate) struct ShownChange {
    #[serde(flatten)]
    change: ChangeJson,
    /// True if the path is precious. Then its contents and line counts are not shown.
    hidden: bool,
}

impl ShownChange {
    fn new(change: &Change, precious: &Precious) -> Self {
        let hidden = precious.contains(&change.path);
        let mut change = ChangeJson::from(change);
        if hidden {
            (change.insertions, change.deletions, change.binary, change.hunks) = (0, 0, false, None);
        }
        Self { change, hidden }
    }
}

/// Returns the first changes.
pub(crate) fn changes(changes: &[Change], most: usize, precious: &Precious, notes: &mut Notes) -> Vec<ShownChange> {
    let mut shown: Vec<_> = changes.iter().take(most).map(|change| ShownChange::new(change, precious)).collect();
    let before = shown.len();
    notes.cut_list("changes", &mut shown, most, |change| change.change.path.len());
    if changes.len() > before {
        notes.add(format!("changes: {} more", changes.len() - before));
    }
    shown
}

/// Limits the hunks of the changes to `max_bytes` of lines together. Later hunks are left out.
pub(crate) fn limit_hunks(changes: &mut [ShownChange], max_bytes: usize, notes: &mut Notes) {
    let (mut total, mut left_out) = (0, 0);
    for hunks in changes.iter_mut().filter_map(|change| change.change.hunks.as_mut()) {
        let before = hunks.len();
        hunks.retain(|hunk| {
            total += hunk.lines.iter().map(|line| line.len() + 1).sum::<usize>();
            total <= max_bytes
        });
        left_out += before - hunks.len();
    }
    if left_out > 0 {
        notes.add(format!("hunks: {left_out} more; raise max_bytes or limit the paths"));
    }
}

/// Returns the first paths that are not in a checkpoint. `name` is the name of the list in the answer.
pub(crate) fn skipped(name: &str, skipped: &[Skipped], notes: &mut Notes) -> Vec<SkippedJson> {
    let mut told: Vec<_> = skipped.iter().map(SkippedJson::from).collect();
    notes.cut_list(name, &mut told, MAX_REASONS, |skipped| skipped.path.len());
    told
}

/// Returns the first paths that a restore leaves unchanged. `name` is the name of the list in the answer.
///
/// For a precious path it does not contain the lines, or the id of the contents.
pub(crate) fn conflicts(
    name: &str,
    conflicts: &[Conflict],
    precious: &Precious,
    notes: &mut Notes,
) -> Vec<ConflictJson> {
    let shown = |conflict: &Conflict| match precious.contains(&conflict.path) {
        true => ConflictJson { kept: None, lines: Vec::new(), ..ConflictJson::from(conflict) },
        false => ConflictJson::from(conflict),
    };
    let mut told: Vec<_> = conflicts.iter().map(shown).collect();
    notes.cut_list(name, &mut told, MAX_REASONS, |conflict| conflict.path.len());
    told
}

/// Notes on the truncated parts of an answer, for the client.
#[derive(Debug, Default)]
pub(crate) struct Notes(Vec<String>);

impl Notes {
    pub(crate) fn add(&mut self, note: impl Into<String>) {
        self.0.push(note.into());
    }

    pub(crate) fn into_inner(self) -> Vec<String> {
        self.0
    }

    /// Truncates a list after `most` items, or earlier if the items together are too long.
    pub(crate) fn cut_list<T>(&mut self, name: &str, list: &mut Vec<T>, most: usize, bytes: impl Fn(&T) -> usize) {
        let mut total = 0;
        let fitting = list.iter().take_while(|item| {
            total += bytes(item);
            total <= MAX_PATH_LIST_BYTES
        });
        let kept = fitting.count().min(most);
        if kept < list.len() {
            self.add(format!("{name}: {} more", list.len() - kept));
            list.truncate(kept);
        }
    }

    pub(crate) fn cut_text(&mut self, name: &str, text: &mut String) {
        if text.len() <= MAX_TEXT_BYTES {
            return;
        }
        let end = start_of(text, MAX_TEXT_BYTES).len();
        self.add(format!("{name}: {} more bytes", text.len() - end));
        text.truncate(end);
        text.push_str("… [truncated]");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_and_texts_are_cut_with_a_mark() {
        let mut notes = Notes::default();
        let mut list: Vec<String> = (0..30).map(|number| number.to_string()).collect();
        notes.cut_list("files", &mut list, 20, String::len);
        assert_eq!(list.len(), 20);
        let mut long: Vec<String> = vec!["x".repeat(40_000); 3];
        notes.cut_list("long", &mut long, 20, String::len);
        assert_eq!(long.len(), 1);
        let mut text = "ä".repeat(MAX_TEXT_BYTES);
        notes.cut_text("text", &mut text);
        assert!(text.ends_with("… [truncated]") && text.len() < MAX_TEXT_BYTES + 20);
        assert_eq!(notes.into_inner(), ["files: 10 more", "long: 2 more", "text: 4000 more bytes"]);
    }
}
