//! Output about deleting, pruning, pinning, excluding, forgetting and adopting, for users and programs.

use std::{path::Path, time::Duration};

use backtrail::{
    Checkpoint, CheckpointId, Deleted, Loss, NotApplied, PrunePlan, Pruned, Verdict, WorkspaceEntry, WorkspacePath,
    json::{CheckpointJson, timestamp},
};
use jiff::{Timestamp, Zoned};
use serde::Serialize;

use super::{
    Paint,
    visible::{columns, cut, pad, visible, visible_path, wrapped},
    wording::{bytes, plural, title, when},
};

/// The maximum number of deleted checkpoints that are named one by one.
const MAX_NAMED: usize = 20;

/// The maximum number of paths that are named for one checkpoint.
const MAX_PATHS: usize = 5;

/// The JSON answer of `delete`.
#[derive(Serialize)]
pub(crate) struct DeletedJson {
    deleted: Vec<String>,
}

impl DeletedJson {
    pub(crate) fn new(deleted: &[CheckpointId]) -> Self {
        Self { deleted: texts(deleted.iter()) }
    }
}

/// The JSON answer of `list --deleted`.
#[derive(Serialize)]
pub(crate) struct BinJson {
    checkpoints: Vec<BinnedJson>,
}

#[derive(Serialize)]
struct BinnedJson {
    #[serde(flatten)]
    checkpoint: CheckpointJson,
    deleted: Option<String>,
    kept_until: Option<String>,
}

impl BinJson {
    pub(crate) fn new(deleted: &[Deleted], stay: Duration) -> Self {
        let binned = |deleted: &Deleted| BinnedJson {
            checkpoint: CheckpointJson::from(&deleted.checkpoint),
            deleted: deleted.time.map(timestamp),
            kept_until: kept_until(deleted, stay).map(timestamp),
        };
        Self { checkpoints: deleted.iter().map(binned).collect() }
    }
}

/// Returns the time from which on a save removes a checkpoint from the bin.
fn kept_until(deleted: &Deleted, stay: Duration) -> Option<Timestamp> {
    deleted.time?.checked_add(stay).ok()
}

/// Returns a line for each checkpoint in the bin.
pub(crate) fn bin_text(deleted: &[Deleted], stay: Duration, now: &Zoned, paint: Paint) -> String {
    let line = |deleted: &Deleted| {
        let at = deleted.time.map(|time| format!(", deleted {}", when(time, now))).unwrap_or_default();
        let until = kept_until(deleted, stay).map(|until| format!(", kept until {}", moment(until, now)));
        let rest = paint.faint(format!("{at}{}", until.unwrap_or_default()));
        format!("{}{rest}\n", painted_title(&deleted.checkpoint, paint))
    };
    deleted.iter().map(line).collect()
}

/// Formats a moment that is still to come.
fn moment(time: Timestamp, now: &Zoned) -> String {
    time.to_zoned(now.time_zone().clone()).strftime("%-d %b %H:%M").to_string()
}

/// The JSON answer of `prune`.
#[derive(Serialize)]
pub(crate) struct PruneJson<'a> {
    deleted: Vec<String>,
    kept: usize,
    bytes_before: u64,
    bytes_after: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdicts: Option<Vec<VerdictJson<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    would_lose: Option<Vec<LossJson<'a>>>,
    not_applied: Vec<NotAppliedJson>,
}

/// Contents that exist nowhere else after a checkpoint is deleted.
#[derive(Serialize)]
struct LossJson<'a> {
    id: String,
    paths: &'a [WorkspacePath],
}

/// A limit from the settings that was not applied.
#[derive(Serialize)]
struct NotAppliedJson {
    key: &'static str,
    reason: String,
}

impl From<&NotApplied> for NotAppliedJson {
    fn from(limit: &NotApplied) -> Self {
        Self { key: limit.key(), reason: limit.to_string() }
    }
}

#[derive(Serialize)]
struct VerdictJson<'a> {
    id: String,
    keep: bool,
    reason: &'a str,
}

impl<'a> From<&'a PrunePlan> for PruneJson<'a> {
    fn from(plan: &'a PrunePlan) -> Self {
        let gone = plan.verdicts.iter().filter(|verdict| !verdict.keep);
        let deleted = texts(gone.map(|verdict| &verdict.id));
        let verdict = |verdict: &'a Verdict| VerdictJson {
            id: verdict.id.to_string(),
            keep: verdict.keep,
            reason: &verdict.reason,
        };
        let loss = |loss: &'a Loss| LossJson { id: loss.id.to_string(), paths: &loss.paths };
        Self {
            kept: plan.verdicts.len() - deleted.len(),
            deleted,
            bytes_before: plan.bytes,
            bytes_after: plan.bytes,
            verdicts: Some(plan.verdicts.iter().map(verdict).collect()),
            would_lose: Some(plan.losses.iter().map(loss).collect()),
            not_applied: plan.not_applied.iter().map(NotAppliedJson::from).collect(),
        }
    }
}

impl From<&Pruned> for PruneJson<'_> {
    fn from(pruned: &Pruned) -> Self {
        Self {
            deleted: texts(pruned.deleted.iter()),
            kept: pruned.kept,
            bytes_before: pruned.bytes_before,
            bytes_after: pruned.bytes_after,
            verdicts: None,
            would_lose: None,
            not_applied: pruned.not_applied.iter().map(NotAppliedJson::from).collect(),
        }
    }
}

fn texts<'i>(ids: impl Iterator<Item = &'i CheckpointId>) -> Vec<String> {
    ids.map(CheckpointId::to_string).collect()
}

/// The JSON answer of `pin` and `unpin`.
#[derive(Serialize)]
pub(crate) struct PinnedJson {
    checkpoint: CheckpointJson,
}

impl From<&Checkpoint> for PinnedJson {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self { checkpoint: CheckpointJson::from(checkpoint) }
    }
}

/// The JSON answer of `exclude`.
#[derive(Serialize)]
pub(crate) struct ExcludedJson<'a> {
    file: String,
    exclude: &'a [String],
}

impl<'a> ExcludedJson<'a> {
    pub(crate) fn new(file: &Path, exclude: &'a [String]) -> Self {
        Self { file: path_text(file), exclude }
    }
}

/// The JSON answer of `workspaces --forget`.
#[derive(Serialize)]
pub(crate) struct ForgottenJson {
    forgotten: String,
}

impl ForgottenJson {
    pub(crate) fn new(path: &Path) -> Self {
        Self { forgotten: path_text(path) }
    }
}

/// The JSON answer of `workspaces --adopt`.
#[derive(Serialize)]
pub(crate) struct AdoptedJson {
    workspace: String,
    store: String,
}

impl AdoptedJson {
    pub(crate) fn new(workspace: &Path, store: &Path) -> Self {
        Self { workspace: path_text(workspace), store: path_text(store) }
    }
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Returns a sentence about the checkpoints that were or would be deleted. A few of them are named one by one.
pub(crate) fn deleted_text(checkpoints: &[Checkpoint], what: &str, now: &Zoned, paint: Paint) -> String {
    match checkpoints {
        [] => format!("{what} nothing"),
        [one] => format!("{what} {}", painted_title(one, paint)),
        [first, .., last] if checkpoints.len() > MAX_NAMED => {
            let count = plural(checkpoints.len(), "checkpoint");
            let kinds = counted(checkpoints.iter().map(|checkpoint| checkpoint.kind.as_str()));
            let kinds = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect::<Vec<_>>().join(", ");
            let (oldest, newest) = (first.time.min(last.time), first.time.max(last.time));
            format!("{what} {count}: {kinds}; taken {} to {}", when(oldest, now), when(newest, now))
        }
        many => {
            let named = many.iter().map(|checkpoint| format!("\n  {}", painted_title(checkpoint, paint)));
            format!("{what} {}{}", plural(many.len(), "checkpoint"), named.collect::<String>())
        }
    }
}

/// Returns each distinct word with its number of occurrences, in the order of first occurrence.
fn counted<'w>(words: impl Iterator<Item = &'w str>) -> Vec<(&'w str, usize)> {
    let mut found: Vec<(&str, usize)> = Vec::new();
    for word in words {
        match found.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => found.push((word, 1)),
        }
    }
    found
}

/// Returns the verdict of retention on each checkpoint, one line each, or two on a narrow terminal.
pub(crate) fn verdicts_text(verdicts: &[(&Verdict, Checkpoint)], width: usize, paint: Paint) -> String {
    let widest = verdicts.iter().map(|(verdict, _)| columns(&verdict.reason)).max().unwrap_or(0);
    let line = |(verdict, checkpoint): &(&Verdict, Checkpoint)| {
        let word = if verdict.keep { paint.faint("keep  ") } else { paint.removed("delete") };
        let kind = format!("{:<9}", verdict.kind.as_str());
        let reason = visible(&verdict.reason);
        let named = title(checkpoint);
        let beside = "  delete  ".len() + kind.len() + 2;
        let painted = |named: &str| named.replacen(&checkpoint.id.short(), &paint.id(checkpoint.id.short()), 1);
        if beside + widest + 2 + columns(&named) <= width {
            return format!("  {word}  {kind}  {}  {}\n", pad(&reason, widest), painted(&named));
        }
        let named = painted(&cut(&named, width.saturating_sub(beside).max(20)));
        let reason = paint.faint(wrapped(&reason, width, "          "));
        format!("  {word}  {kind}  {named}\n          {reason}\n")
    };
    verdicts.iter().map(line).collect()
}

/// Returns a line for each checkpoint that has the only copy of some contents, with the first paths.
pub(crate) fn loss_lines(losses: &[Loss]) -> Vec<String> {
    let line = |loss: &Loss| {
        let named: Vec<String> = loss.paths.iter().take(MAX_PATHS).map(|path| visible(path.as_bytes())).collect();
        let more = loss.paths.len() - named.len();
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("{} has the only copy of {}{rest}", loss.id.short(), named.join(", "))
    };
    losses.iter().map(line).collect()
}

/// Returns the number of checkpoints that are kept, for each reason.
pub(crate) fn kept_text(verdicts: &[Verdict], width: usize, paint: Paint) -> String {
    let reasons = counted(verdicts.iter().filter(|verdict| verdict.keep).map(|verdict| verdict.reason.as_str()));
    let digits = reasons.iter().map(|(_, count)| count.to_string().len()).max().unwrap_or(0);
    let line = |(reason, count): &(&str, usize)| {
        let indent = " ".repeat("  keep    ".len() + digits + 2);
        format!("  {}  {count:>digits$}  {}\n", paint.faint("keep  "), wrapped(&visible(reason), width, &indent))
    };
    reasons.iter().map(line).collect()
}

fn painted_title(checkpoint: &Checkpoint, paint: Paint) -> String {
    title(checkpoint).replacen(&checkpoint.id.short(), &paint.id(checkpoint.id.short()), 1)
}

/// Returns a line for each workspace: the size of its store, the number of checkpoints, the time of the newest one, and
/// its path. The line below has the path of the store.
pub(crate) fn workspaces_text(entries: &[WorkspaceEntry], now: &Zoned, paint: Paint) -> String {
    let cells = entries.iter().map(|entry| {
        let newest = entry.newest.map_or_else(|| "-".to_owned(), |newest| when(newest, now));
        [bytes(entry.bytes), plural(entry.checkpoints, "checkpoint"), newest]
    });
    let cells: Vec<[String; 3]> = cells.collect();
    let widths: [usize; 3] =
        std::array::from_fn(|column| cells.iter().map(|row| columns(&row[column])).max().unwrap_or(0));
    let line = |(entry, [size, count, newest]): (&WorkspaceEntry, &[String; 3])| {
        let state = match &entry.moved_to {
            _ if entry.exists => String::new(),
            _ if entry.is_kept => format!("  {}", paint.warning("(no longer in use)")),
            Some(moved) => format!("  {}", paint.warning(&format!("(moved to {})", visible_path(moved)))),
            None if entry.is_gone => format!("  {}", paint.removed("(gone)")),
            None => format!("  {}", paint.warning("(not available now)")),
        };
        let size = format!("{}{size}", " ".repeat(widths[0].saturating_sub(columns(size))));
        let store = paint.faint(format!("  store  {}", visible_path(&entry.store)));
        let (count, newest) = (pad(count, widths[1]), pad(newest, widths[2]));
        format!("{size}  {count}  {newest}  {}{state}\n{store}\n", visible_path(&entry.path))
    };
    entries.iter().zip(&cells).map(line).collect()
}
