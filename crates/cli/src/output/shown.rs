//! Formats one checkpoint with all its facts for the user.

use std::fmt::Display;

use backtrail::{Change, Checkpoint, GitState, Shown, Skipped};
use jiff::Zoned;

use super::{
    Paint,
    changes::change_list,
    visible::{pad, visible, wrapped},
    wording::{bytes, lines, plural, when},
};
use crate::hooks;

/// The width of the labels, with the space behind them.
const LABEL_WIDTH: usize = 13;

/// The maximum number of dropped paths that are named.
const MAX_NAMED: usize = 20;

/// Describes a checkpoint, its changes, and the paths that it dropped.
pub(crate) fn shown(shown: &Shown, dropped: &[Skipped], now: &Zoned, paint: Paint) -> String {
    let checkpoint = &shown.checkpoint;
    let mut out = format!("{} {}\n", paint.heading("checkpoint"), paint.id(checkpoint.id));
    for (label, value) in facts(checkpoint, now).into_iter().chain(not_protected(checkpoint, dropped)) {
        let value = wrapped(&value, paint.line_width(), &" ".repeat(LABEL_WIDTH));
        out.push_str(&format!("{}{value}\n", paint.faint(pad(label, LABEL_WIDTH))));
    }
    for text in [Some(&checkpoint.message), checkpoint.description.as_ref()].into_iter().flatten() {
        out.push_str(&indented(text));
    }
    let sum = lines(checkpoint.insertions, checkpoint.deletions);
    let heading = match shown.changes.len() {
        0 if shown.work.is_some() => "no changes before this prompt".to_owned(),
        0 => "no changes".to_owned(),
        count => {
            let before = if shown.work.is_some() { "before this prompt: " } else { "" };
            format!("{before}{} {sum}", plural(count, "change")).trim_end().to_owned()
        }
    };
    out.push_str(&format!("\n{}\n{}", paint.heading(heading), change_list(&shown.changes, paint)));
    if let Some(work) = &shown.work {
        out.push_str(&format!("\n{}\n{}", paint.heading(heading_of_work(work)), change_list(work, paint)));
    }
    out
}

fn heading_of_work(work: &[Change]) -> String {
    let (came, went) = work.iter().fold((0, 0), |sum, change| (sum.0 + change.insertions, sum.1 + change.deletions));
    match work.len() {
        0 => "the agent changed nothing for this prompt".to_owned(),
        count => format!("the agent's work for this prompt: {} {}", plural(count, "file"), lines(came, went)),
    }
}

/// Returns the known facts about a checkpoint, each with a label.
fn facts(checkpoint: &Checkpoint, now: &Zoned) -> Vec<(&'static str, String)> {
    let local = checkpoint.time.to_zoned(now.time_zone().clone());
    let time = format!("{} ({})", local.strftime("%Y-%m-%d %H:%M:%S"), when(checkpoint.time, now));
    let mut facts = vec![("time", time), ("kind", checkpoint.kind.to_string())];
    let mut add = |label, value: Option<String>| facts.extend(value.map(|value| (label, value)));
    add("name", text(&checkpoint.name));
    add("parent", text(&checkpoint.parent));
    add("agent", text(&checkpoint.origin.agent));
    add("session", text(&checkpoint.origin.session));
    add("session no.", text(&checkpoint.context.as_ref().and_then(|context| context.session_number)));
    add("tokens", text(&checkpoint.context.as_ref().and_then(|context| context.token_usage)));
    add("prompt no.", text(&checkpoint.origin.turn));
    add("prompt", text(&checkpoint.origin.prompt));
    add("step", text(&checkpoint.origin.step));
    add("tool", text(&checkpoint.origin.tool));
    add("command", text(&checkpoint.origin.command));
    add("git", checkpoint.git.as_ref().map(git));
    add("feature", text(&checkpoint.feature_state.as_ref().and_then(|state| state.current.clone())));
    for attachment in &checkpoint.attachments {
        add("attachment", Some(format!("{} ({})", visible(&attachment.name), bytes(attachment.bytes))));
    }
    for (key, value) in &checkpoint.metadata {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        add("metadata", Some(format!("{} = {}", visible(key), visible(value))));
    }
    for path in checkpoint.scope.paths().unwrap_or_default() {
        add("covers", Some(visible(path.as_bytes())));
    }
    add("pinned", checkpoint.pinned.then(|| "yes".to_owned()));
    add("incomplete", (!checkpoint.complete).then(|| "some files could not be read".to_owned()));
    add("late", hooks::is_late(checkpoint).then(|| hooks::MEANING_OF_LATE.to_owned()));
    facts
}

/// Names the paths that a checkpoint dropped, or counts them if their list can't be read.
fn not_protected(checkpoint: &Checkpoint, dropped: &[Skipped]) -> Vec<(&'static str, String)> {
    const LABEL: &str = "unprotected";
    let line = |skipped: &Skipped| {
        (LABEL, format!("{} ({}) from here on", visible(skipped.path.as_bytes()), skipped.reason.as_str()))
    };
    if dropped.is_empty() && checkpoint.dropped > 0 {
        let count = usize::try_from(checkpoint.dropped).unwrap_or(usize::MAX);
        return vec![(LABEL, format!("{} from here on", plural(count, "path")))];
    }
    let more = dropped.len().saturating_sub(MAX_NAMED);
    let rest = (more > 0).then(|| (LABEL, format!("and {more} more")));
    dropped.iter().take(MAX_NAMED).map(line).chain(rest).collect()
}

fn text(value: &Option<impl Display>) -> Option<String> {
    value.as_ref().map(|value| visible(value.to_string()))
}

fn git(state: &GitState) -> String {
    let branch = state.branch.as_deref().map_or("detached".to_owned(), visible);
    let commit = state.commit.as_deref().map_or("no commit yet".to_owned(), |commit| commit.chars().take(12).collect());
    let dirty = match state.dirty_count {
        0 => "clean".to_owned(),
        count => format!("{} with changes", plural(count as usize, "file")),
    };
    format!("{branch} at {commit}, {dirty}")
}

/// Returns an indented text with an empty line above it. Returns an empty string for a blank text.
fn indented(text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    let lines = text.trim_end().lines().map(|line| format!("    {}", visible(line)).trim_end().to_owned() + "\n");
    format!("\n{}", lines.collect::<String>())
}
