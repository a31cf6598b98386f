//! Output of `save` and `step` for the user.

use std::{os::unix::ffi::OsStrExt, path::PathBuf};

use backtrail::{Reason, Saved, Skipped, Stepped, StillCaptured, WorkspacePath};

use super::{
    Paint,
    visible::visible,
    wording::{bytes, ignore_pattern, lines, plural, set_bytes, shell_words, title},
};

/// If the first checkpoint is larger than this, its largest directories are named.
const MUCH_BYTES: u64 = 200_000_000;

/// The maximum number of paths that are named one by one.
const MAX_NAMED: usize = 5;

/// The maximum number of dropped paths that are named one by one.
const MAX_DROPPED: usize = 3;

/// Returns a sentence about the result of a save.
pub(crate) fn saved_sentence(saved: &Saved, paint: Paint) -> String {
    let checkpoint = &saved.checkpoint;
    let named = title(checkpoint).replacen(&checkpoint.id.short(), &paint.id(checkpoint.id.short()), 1);
    if !saved.created {
        return format!("nothing changed since {named}: no new checkpoint");
    }
    let counts = match checkpoint.files_changed.len() {
        0 if saved.is_first => Some("no files".to_owned()),
        0 if saved.dropped.is_empty() => Some("nothing changed".to_owned()),
        0 => None,
        files => Some(format!("{}, {}", plural(files, "file"), lines(checkpoint.insertions, checkpoint.deletions))),
    };
    let dropped = (!saved.dropped.is_empty()).then(|| format!("{} not protected any more", saved.dropped.len()));
    let counts = counts.map(|counts| counts.trim_end_matches([',', ' ']).to_owned());
    let facts: Vec<String> = counts.into_iter().chain(dropped).collect();
    format!("saved {named} ({})", facts.join(", "))
}

/// Returns a sentence about the result of a step.
pub(crate) fn stepped_sentence(stepped: &Stepped, paint: Paint) -> String {
    match &stepped.saved {
        Some(saved) => format!("step {}: {}", stepped.step, saved_sentence(saved, paint)),
        None => format!("step {}: no checkpoint", stepped.step),
    }
}

/// Returns the warnings about a save.
pub(crate) fn saved_warnings(saved: &Saved) -> Vec<String> {
    let mut warnings = dropped_warnings(saved);
    warnings.extend(left_out(saved));
    warnings.extend(unapplied_rules(saved));
    warnings.extend(still_captured(saved));
    if !saved.checkpoint.complete {
        let id = saved.checkpoint.id.short();
        warnings.push(format!("{id} is incomplete: some files could not be read"));
    }
    if saved.created && saved.is_first && saved.bytes > MUCH_BYTES {
        warnings.push(format!(
            "this first checkpoint holds {}; you can exclude directories that need no protection",
            bytes(saved.bytes)
        ));
    }
    warnings.extend(saved.not_applied.iter().map(ToString::to_string));
    warnings
}

/// Returns warnings about the paths that earlier checkpoints captured, that are still on disk, and that this one could
/// not capture.
pub(crate) fn dropped_warnings(saved: &Saved) -> Vec<String> {
    let line = |skipped: &Skipped| {
        let path = visible(skipped.path.as_bytes());
        let size = size_of(saved, skipped).map(|size| format!(", {size}")).unwrap_or_default();
        format!("not protected any more: {path} ({}{size})", skipped.reason.as_str())
    };
    let named = saved.dropped.iter().take(MAX_DROPPED).map(line);
    let more = saved.dropped.len().saturating_sub(MAX_DROPPED);
    named
        .chain((more > 0).then(|| format!("and {more} more are not protected any more (list all with --json)")))
        .collect()
}

/// Returns the size of a file that is too large. Returns `None` for other paths.
fn size_of(saved: &Saved, skipped: &Skipped) -> Option<String> {
    let (_, size) = saved.oversized.iter().find(|(path, _)| *path == skipped.path)?;
    Some(bytes(*size))
}

/// Returns warnings about the paths that the compared checkpoint holds and that a new one would leave out.
pub(crate) fn uncaptured_warnings(uncaptured: &[Skipped]) -> Vec<String> {
    let line = |skipped: &Skipped| {
        let path = visible(skipped.path.as_bytes());
        format!("{path} was saved before, but would be skipped now: {}", skipped.reason.as_str())
    };
    uncaptured.iter().map(line).collect()
}

/// Returns the commands that leave out the largest directories. Empty unless this is a large first checkpoint.
pub(crate) fn exclude_commands(saved: &Saved) -> Vec<String> {
    if !saved.is_first || saved.bytes <= MUCH_BYTES {
        return Vec::new();
    }
    let command =
        |(path, size): &(WorkspacePath, u64)| format!("{:>8}: backtrail {}", bytes(*size), exclude_command(path));
    saved.largest.iter().map(command).collect()
}

/// Returns warnings about rule files that are too large to be applied.
fn unapplied_rules(saved: &Saved) -> Vec<String> {
    let line = |path: &PathBuf| {
        let path = visible(path.as_os_str().as_bytes());
        format!("{path} is larger than 1 MiB and is not applied: the paths that it names are captured")
    };
    saved.unapplied_rules.iter().map(line).collect()
}

/// Returns a warning about paths that are still captured although a rule ignores them now, with the command that
/// leaves them out.
fn still_captured(saved: &Saved) -> Option<String> {
    let group = |group: &StillCaptured| {
        let path = visible(group.path.as_bytes());
        if group.is_directory { format!("{} in {path}", plural(group.files, "file")) } else { path }
    };
    let named: Vec<String> = saved.still_captured.iter().take(MAX_NAMED).map(group).collect();
    let patterns = saved.still_captured.iter().take(MAX_NAMED).map(|group| plain_pattern(&group.path));
    let command = shell_words([b"exclude".to_vec()].into_iter().chain(patterns));
    let more = saved.still_captured.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!named.is_empty()).then(|| {
        let named = named.join(", ");
        format!("still captured although ignored now: {named}{more} (exclude them with: backtrail {command})")
    })
}

/// Returns the pattern for a path as a user would type it.
fn plain_pattern(path: &WorkspacePath) -> Vec<u8> {
    let pattern = ignore_pattern(path.as_bytes());
    // At the start of a pattern, these characters have a special meaning.
    if path.as_bytes().starts_with(b"#") || path.as_bytes().starts_with(b"!") {
        return pattern.strip_suffix(b"/").unwrap_or(&pattern).to_vec();
    }
    pattern.strip_prefix(b"/").and_then(|pattern| pattern.strip_suffix(b"/")).unwrap_or(&pattern).to_vec()
}

fn exclude_command(path: &WorkspacePath) -> String {
    shell_words([&b"exclude"[..], &ignore_pattern(path.as_bytes())])
}

/// Returns how to capture files that were left out because of their size. Returns `None` if there are none.
pub(crate) fn capture_larger(saved: &Saved, max_file_bytes: u64) -> Option<String> {
    (!saved.oversized.is_empty()).then(|| {
        let limit = set_bytes(max_file_bytes);
        format!("to capture larger files, raise max_file_bytes, now {limit}, under [scan] in backtrail.toml")
    })
}

fn left_out(saved: &Saved) -> Vec<String> {
    // Rebuildable directories are left out of every checkpoint. The user is told only once.
    let is_told = |skipped: &&Skipped| {
        (skipped.reason != Reason::Rebuildable || saved.is_first) && !saved.dropped.contains(skipped)
    };
    let lines: Vec<String> = saved
        .skipped
        .iter()
        .filter(is_told)
        .map(|skipped| {
            let path = visible(skipped.path.as_bytes());
            let size = size_of(saved, skipped).map(|size| format!(" ({size})")).unwrap_or_default();
            format!("skipped {path}: {}{size}", skipped.reason.as_str())
        })
        .collect();
    let more = lines.len().saturating_sub(MAX_NAMED);
    let rest = (more > 0).then(|| format!("and {more} more were skipped"));
    lines.into_iter().take(MAX_NAMED).chain(rest).collect()
}
