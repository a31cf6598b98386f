//! Limits that a workspace's own settings file can only raise.
//!
//! Any program that writes into a workspace can write that file. It may ask to keep more checkpoints than the user's
//! settings do, but never fewer.

use std::time::Duration;

use super::{
    Settings,
    file::{CheckpointsTable, RetentionTable, SettingsFile},
};

/// A key in a workspace's own file that has no effect, because it would keep less than the user's settings do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithoutEffect {
    /// The key, as in `[retention] automatic`.
    pub key: &'static str,
    /// The value that the file has.
    pub value: String,
    /// The value that is used instead.
    pub in_force: String,
}

/// Removes the keys that would keep less than these settings do, and returns them.
pub(super) fn remove_lower(file: &mut SettingsFile, settings: &Settings) -> Vec<WithoutEffect> {
    let mut removed = Vec::new();
    if let Some(table) = &mut file.checkpoints {
        removed.extend(lower_checkpoints(table, settings));
    }
    if let Some(table) = &mut file.retention {
        removed.extend(lower_counts(table, settings));
        removed.extend(lower_times_and_sizes(table, settings));
    }
    removed
}

fn lower_checkpoints(table: &mut CheckpointsTable, settings: &Settings) -> Option<WithoutEffect> {
    lower_number("[checkpoints] max_checkpoints", &mut table.max_checkpoints, settings.checkpoints.max_checkpoints)
}

fn lower_counts(table: &mut RetentionTable, settings: &Settings) -> Vec<WithoutEffect> {
    let limits = &settings.retention;
    let keys = [
        ("[retention] automatic", &mut table.automatic, limits.automatic),
        ("[retention] session", &mut table.session, limits.session),
        ("[retention] turn", &mut table.turn, limits.turn),
        ("[retention] step", &mut table.step, limits.step),
        ("[retention] safety", &mut table.safety, limits.safety),
    ];
    keys.into_iter().filter_map(|(key, value, in_force)| lower_number(key, value, in_force)).collect()
}

fn lower_number(key: &'static str, value: &mut Option<u64>, in_force: u64) -> Option<WithoutEffect> {
    let lower = value.take_if(|value| *value < in_force)?;
    Some(WithoutEffect { key, value: lower.to_string(), in_force: in_force.to_string() })
}

fn lower_times_and_sizes(table: &mut RetentionTable, settings: &Settings) -> Vec<WithoutEffect> {
    let limits = &settings.retention;
    let unsaved = table.unsaved.take_if(|unsaved| unsaved.0 < limits.unsaved).map(|unsaved| WithoutEffect {
        key: "[retention] unsaved",
        value: duration_text(unsaved.0),
        in_force: duration_text(limits.unsaved),
    });
    // The user decides how long deleted contents stay readable.
    let deleted = table.deleted.take().map(|deleted| WithoutEffect {
        key: "[retention] deleted",
        value: duration_text(deleted.0),
        in_force: duration_text(limits.deleted),
    });
    // These settings only ever remove checkpoints, so a workspace can't set them.
    let thread = table.thread.take().map(|thread| WithoutEffect {
        key: "[retention] thread",
        value: thread.to_string(),
        in_force: limits.thread.map_or_else(|| "none".to_owned(), |thread| thread.to_string()),
    });
    let max_age = table.max_age.take().map(|age| WithoutEffect {
        key: "[retention] max_age",
        value: duration_text(age.0),
        in_force: limits.max_age.map_or_else(|| "none".to_owned(), duration_text),
    });
    let max_bytes = table.max_bytes.take().map(|bytes| WithoutEffect {
        key: "[retention] max_bytes",
        value: bytes.0.to_string(),
        in_force: limits.max_bytes.map_or_else(|| "none".to_owned(), |bytes| bytes.to_string()),
    });
    unsaved.into_iter().chain(deleted).chain(thread).chain(max_age).chain(max_bytes).collect()
}

/// Formats a duration as settings files do, in the largest unit that leaves no remainder.
pub fn duration_text(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "m")];
    let fitting = units.into_iter().find(|(length, _)| seconds > 0 && seconds.is_multiple_of(*length));
    fitting.map_or_else(|| format!("{seconds}s"), |(length, unit)| format!("{}{unit}", seconds / length))
}
