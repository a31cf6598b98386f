//! Formats the overview, which is shown if the program is run without a command.

use std::path::Path;

use backtrail::{Checkpoint, Status};
use jiff::Zoned;

use super::{
    Paint, Timeline,
    changes::{change_list, summary},
    visible::visible_path,
    wording::{title, when},
};

/// The maximum number of unsaved paths that are named.
const MAX_PATHS: usize = 10;

/// The facts that the overview shows.
pub(crate) struct Overview<'a> {
    pub(crate) workspace: &'a Path,
    pub(crate) store: &'a Path,
    pub(crate) status: &'a Status,
    pub(crate) newest: &'a [Checkpoint],
    /// Set if the last operation was a restore.
    pub(crate) was_restored: bool,
}

/// Returns the text of the overview.
pub(crate) fn overview(found: &Overview<'_>, timeline: &Timeline<'_>) -> String {
    let paint = timeline.paint;
    let mut out = format!("{}  {}\n", paint.heading("workspace"), visible_path(found.workspace));
    match found.newest {
        [] => out.push_str(&format!("{}      nothing saved yet\n", paint.heading("store"))),
        _ => out.push_str(&format!("{}      {}\n", paint.heading("store"), visible_path(found.store))),
    }
    out.push_str(&unsaved(found.status, timeline.now, paint));
    if !found.newest.is_empty() {
        out.push_str(&format!("\n{}\n{}", paint.heading("checkpoints"), timeline.draw(found.newest)));
    }
    out.push_str(&format!("\n{}\n{}", paint.heading("next"), next_commands(found, paint)));
    out
}

fn unsaved(status: &Status, now: &Zoned, paint: Paint) -> String {
    let heading = paint.heading("unsaved");
    let since = match &status.checkpoint {
        Some(checkpoint) => format!(" since {} ({})", title(checkpoint), when(checkpoint.time, now)),
        None => String::new(),
    };
    if status.changes.is_empty() {
        return format!("{heading}    nothing{since}\n");
    }
    let named = &status.changes[..status.changes.len().min(MAX_PATHS)];
    let mut out = format!("{heading}    {}{since}\n{}", summary(&status.changes), change_list(named, paint));
    if status.changes.len() > MAX_PATHS {
        out.push_str(&format!("  and {} more\n", status.changes.len() - MAX_PATHS));
    }
    out
}

fn next_commands(found: &Overview<'_>, paint: Paint) -> String {
    let save = ("save \"a message\"", "take a checkpoint");
    let list = ("list", "see all checkpoints");
    let mut commands = match (found.newest, found.status.changes.as_slice()) {
        ([], _) => vec![save, ("demo", "see a save, an accident and a restore in a temporary directory")],
        (_, []) => vec![list, ("show @", "see what the last checkpoint changed")],
        _ => vec![
            ("diff", "see the unsaved changes line by line"),
            save,
            ("restore @", "go back to the last checkpoint; unsaved changes are kept"),
            list,
        ],
    };
    if found.newest.iter().any(|checkpoint| checkpoint.origin.turn.is_some()) {
        commands.push(("rewind --turn", "go back to before the agent's last prompt"));
    }
    if !found.newest.is_empty() {
        commands.push(("ui", "see all of it in the browser"));
    }
    if found.was_restored {
        commands.insert(0, ("undo", "take back the last restore"));
    }
    let line =
        |(words, what): &(&str, &str)| format!("  {}  {what}\n", paint.command(format!("backtrail {words:<20}")));
    commands.iter().map(line).collect()
}
