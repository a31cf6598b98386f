//! The tables of a settings file, and the error messages for invalid ones.

use std::{path::PathBuf, time::Duration};

use serde::Deserialize;
use serde_path_to_error::{Path as KeyPath, Segment};

use super::{
    Settings,
    quantities::{parse_bytes, parse_duration},
    raise,
};
use crate::model::{InvalidPath, WorkspacePath};

/// Whether an error message may quote the line with the mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quotes {
    /// The message quotes the line.
    Allowed,
    /// The message does not quote the line: the workspace may have no right to the contents of the file.
    Withheld,
}

/// Parses a file. An error message names the line and the key.
pub(super) fn parse(bytes: &[u8], quotes: Quotes) -> Result<SettingsFile, String> {
    let text = text(bytes)?;
    let describe = |place: Option<String>, error: toml::de::Error| {
        let message = in_plain_words(&with_place(place, error.message()));
        let Some(span) = error.span() else { return message };
        let (number, line) = line_at(text, span.start);
        match quotes {
            Quotes::Allowed => format!("line {number}: {message} (in `{line}`)"),
            Quotes::Withheld => format!("line {number}: {message}"),
        }
    };
    let tables = toml::Deserializer::parse(text).map_err(|error| describe(None, error))?;
    serde_path_to_error::deserialize(tables).map_err(|error| {
        let place = position_of(error.path());
        describe(place, error.into_inner())
    })
}

/// Parses a workspace's own file, which may not set everything.
pub(super) fn parse_in_workspace(bytes: &[u8], quotes: Quotes) -> Result<SettingsFile, String> {
    let file = parse(bytes, quotes)?;
    // A workspace may come from a stranger, so it can't name a place outside of it or a program.
    let of_user = [("stores", file.stores.is_some()), ("pipelines", file.pipelines.is_some())];
    let Some((section, _)) = of_user.into_iter().find(|(_, is_there)| *is_there) else { return Ok(file) };
    let text = text(bytes)?;
    let key = toml::de::DeTable::parse(text)
        .ok()
        .and_then(|table| table.get_ref().keys().find(|key| key.get_ref() == section).map(toml::Spanned::span));
    let line = key.map(|span| format!("line {}: ", line_at(text, span.start).0)).unwrap_or_default();
    Err(format!("{line}[{section}] is allowed only in the user's own settings file, not in a workspace"))
}

/// Parses values from a caller that have the shape of a file.
pub(super) fn from_values(values: serde_json::Value) -> Result<SettingsFile, String> {
    serde_path_to_error::deserialize(values).map_err(|error| {
        let place = position_of(error.path());
        in_plain_words(&with_place(place, &error.into_inner().to_string()))
    })
}

fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| {
        let line = bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line}: not UTF-8")
    })
}

/// Returns the number and the text of the line that contains a byte.
fn line_at(text: &str, byte: usize) -> (usize, &str) {
    let before = &text.as_bytes()[..byte.min(text.len())];
    let number = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    (number, text.lines().nth(number - 1).unwrap_or_default().trim())
}

/// Returns a key in the form `[scan] exclude`.
fn position_of(path: &KeyPath) -> Option<String> {
    let mut keys = path.iter().filter_map(|segment| match segment {
        Segment::Map { key } => Some(key.as_str()),
        _ => None,
    });
    let table = keys.next()?;
    Some(keys.fold(format!("[{table}]"), |place, key| format!("{place} {key}")))
}

fn with_place(place: Option<String>, message: &str) -> String {
    let message = message.trim().replace('\n', "; ");
    match place {
        // This message contains the name of the key already. The parsers tell it by its text alone.
        Some(place) if !message.starts_with("unknown field") => format!("{place}: {message}"),
        _ => message,
    }
}

/// Replaces the type names in messages of the parsing libraries with words for what the user should write.
fn in_plain_words(message: &str) -> String {
    let said = [
        ("invalid type: sequence", "invalid type: list"),
        ("invalid type: map", "invalid type: table"),
        ("invalid type: boolean", "invalid type:"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected a boolean", "expected true or false"),
        ("expected a sequence", "expected a list"),
        ("expected a string", "expected text in quotes"),
        ("expected path string", "expected text in quotes"),
    ];
    said.into_iter().fold(message.to_owned(), |message, (theirs, ours)| message.replacen(theirs, ours, 1))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SettingsFile {
    pub(super) checkpoints: Option<CheckpointsTable>,
    pub(super) retention: Option<RetentionTable>,
    scan: Option<ScanTable>,
    state: Option<StateTable>,
    stores: Option<StoresTable>,
    pipelines: Option<PipelinesTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct PipelinesTable {
    agent: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct CheckpointsTable {
    auto: Option<bool>,
    every_n_steps: Option<EveryNSteps>,
    pub(super) max_checkpoints: Option<u64>,
    tell_agent: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct RetentionTable {
    pub(super) automatic: Option<u64>,
    pub(super) session: Option<u64>,
    pub(super) turn: Option<u64>,
    pub(super) step: Option<u64>,
    pub(super) safety: Option<u64>,
    pub(super) deleted: Option<Age>,
    pub(super) thread: Option<u64>,
    pub(super) unsaved: Option<Age>,
    pub(super) max_age: Option<Age>,
    pub(super) max_bytes: Option<Bytes>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct ScanTable {
    exclude: Option<Vec<String>>,
    include: Option<Vec<String>>,
    precious: Option<Vec<String>>,
    rebuildable: Option<Rebuildable>,
    max_file_bytes: Option<Bytes>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct StateTable {
    features: Option<StateFile>,
    progress: Option<StateFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
struct StoresTable {
    dir: Option<StoresDir>,
    cache_size: Option<u64>,
}

impl SettingsFile {
    /// Overrides these settings with a workspace's own file, except for keys that would keep fewer checkpoints.
    pub(super) fn apply_in_workspace(mut self, settings: &mut Settings) {
        settings.without_effect = raise::remove_lower(&mut self, settings);
        self.apply(settings);
    }

    /// Overrides these settings with the values in the file.
    pub(super) fn apply(self, settings: &mut Settings) {
        fn set<T>(place: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *place = value;
            }
        }
        if let Some(table) = self.checkpoints {
            set(&mut settings.checkpoints.auto, table.auto);
            set(&mut settings.checkpoints.every_n_steps, table.every_n_steps.map(|every| every.0));
            set(&mut settings.checkpoints.max_checkpoints, table.max_checkpoints);
            set(&mut settings.checkpoints.tell_agent, table.tell_agent);
        }
        if let Some(table) = self.retention {
            let retention = &mut settings.retention;
            set(&mut retention.automatic, table.automatic);
            set(&mut retention.session, table.session);
            set(&mut retention.turn, table.turn);
            set(&mut retention.step, table.step);
            set(&mut retention.safety, table.safety);
            set(&mut retention.deleted, table.deleted.map(|deleted| deleted.0));
            set(&mut retention.thread, table.thread.map(Some));
            set(&mut retention.unsaved, table.unsaved.map(|unsaved| unsaved.0));
            set(&mut retention.max_age, table.max_age.map(|age| Some(age.0)));
            set(&mut retention.max_bytes, table.max_bytes.map(|bytes| Some(bytes.0)));
        }
        if let Some(table) = self.scan {
            let scan = &mut settings.scan;
            set(&mut scan.exclude, table.exclude);
            set(&mut scan.include, table.include);
            set(&mut scan.precious, table.precious);
            set(&mut scan.capture_rebuildable, table.rebuildable.map(|word| word == Rebuildable::Capture));
            set(&mut scan.max_file_bytes, table.max_file_bytes.map(|bytes| bytes.0));
        }
        if let Some(table) = self.state {
            set(&mut settings.state.features, table.features.map(|file| Some(file.0)));
            set(&mut settings.state.progress, table.progress.map(|file| Some(file.0)));
        }
        if let Some(table) = self.stores {
            set(&mut settings.stores.dir, table.dir.map(|dir| Some(dir.0)));
            set(&mut settings.stores.cache_size, table.cache_size);
        }
        if let Some(table) = self.pipelines {
            set(&mut settings.pipelines.agent, table.agent.map(Some));
        }
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(try_from = "RebuildableWord")]
enum Rebuildable {
    Skip,
    Capture,
}

/// Untagged only for the sake of its error message.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "write \"skip\" or \"capture\"")]
enum RebuildableWord {
    Text(String),
}

impl TryFrom<RebuildableWord> for Rebuildable {
    type Error = String;

    fn try_from(RebuildableWord::Text(word): RebuildableWord) -> Result<Self, String> {
        match word.as_str() {
            "skip" => Ok(Self::Skip),
            "capture" => Ok(Self::Capture),
            _ => Err(format!("{word:?} is not valid; write \"skip\" or \"capture\"")),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "WorkspacePath")]
struct StateFile(WorkspacePath);

impl TryFrom<WorkspacePath> for StateFile {
    type Error = InvalidPath;

    fn try_from(path: WorkspacePath) -> Result<Self, InvalidPath> {
        // If the whole workspace were a state file, all ignored files would be captured.
        if path.is_root() { Err(InvalidPath(path.as_bytes().into())) } else { Ok(Self(path)) }
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "u64")]
struct EveryNSteps(u64);

impl TryFrom<u64> for EveryNSteps {
    type Error = String;

    fn try_from(number: u64) -> Result<Self, String> {
        if (1..=50).contains(&number) {
            Ok(Self(number))
        } else {
            Err(format!("{number} is out of range; write a number from 1 to 50"))
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "NumberOrText")]
pub(super) struct Bytes(pub(super) u64);

#[derive(Debug, Deserialize)]
#[serde(try_from = "DurationText")]
pub(super) struct Age(pub(super) Duration);

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a size is a number of bytes, 0 or more, or text like \"100MiB\"")]
enum NumberOrText {
    Number(u64),
    Text(String),
}

impl TryFrom<NumberOrText> for Bytes {
    type Error = String;

    fn try_from(value: NumberOrText) -> Result<Self, String> {
        match value {
            NumberOrText::Number(number) => Ok(Self(number)),
            NumberOrText::Text(text) => parse_bytes(&text).map(Self),
        }
    }
}

/// Untagged only for the sake of its error message.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "a duration is text like \"20m\", \"36h\" or \"7d\"")]
enum DurationText {
    Text(String),
}

impl TryFrom<DurationText> for Age {
    type Error = String;

    fn try_from(DurationText::Text(text): DurationText) -> Result<Self, String> {
        parse_duration(&text).map(Self)
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "PathBuf")]
struct StoresDir(PathBuf);

impl TryFrom<PathBuf> for StoresDir {
    type Error = String;

    fn try_from(named: PathBuf) -> Result<Self, String> {
        if named.is_absolute() || named.starts_with("~") {
            Ok(Self(named))
        } else {
            Err(format!("{:?} must be absolute or start with ~/", named.display().to_string()))
        }
    }
}
