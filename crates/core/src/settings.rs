//! What a workspace and its user may set.
//!
//! Two files speak: `backtrail.toml` in the workspace, which can only describe, and the user's own. Where both name a
//! key, the workspace's wins. Nothing here looks for files: the caller says which.

use std::{
    io::Read,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;

use crate::{
    disk::{Dir, FileType},
    error::{Error, Result, While},
    model::WorkspacePath,
};

/// The name of the workspace's own settings file.
pub const WORKSPACE_FILE: &str = "backtrail.toml";

/// Everything that can be set, with nothing left open.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// `[checkpoints]`.
    pub checkpoints: CheckpointSettings,
    /// `[retention]`.
    pub retention: RetentionSettings,
    /// `[scan]`.
    pub scan: ScanSettings,
    /// `[state]`.
    pub state: StateSettings,
    /// `[stores]`, from the user's own file alone.
    pub stores: StoreSettings,
    /// `[pipelines]`, from the user's own file alone.
    pub pipelines: PipelineSettings,
}

/// When checkpoints are taken by themselves.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointSettings {
    /// Do hooks and watchers take checkpoints by themselves?
    pub auto: bool,
    /// One checkpoint for so many steps of an agent.
    pub every_n_steps: u64,
    /// The most step, automatic, session and safety checkpoints together.
    pub max_checkpoints: u64,
    /// Is an agent told, with its next prompt, that files were restored?
    pub tell_agent: bool,
}

/// What retention keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct RetentionSettings {
    /// The last so many automatic ones.
    pub automatic: u64,
    /// The last so many session ones.
    pub session: u64,
    /// The last so many turn ones.
    pub turn: u64,
    /// The last so many step ones.
    pub step: u64,
    /// The last so many safety ones.
    pub safety: u64,
    /// Older ones go.
    pub max_age: Option<Duration>,
    /// The oldest go while the store is larger.
    pub max_bytes: Option<u64>,
}

/// What is captured.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ScanSettings {
    /// Ignore patterns on top of git's own.
    pub exclude: Vec<String>,
    /// Captured although ignored, also in ignored directories.
    pub include: Vec<String>,
    /// Captured although ignored, outside ignored directories.
    pub precious: Vec<String>,
    /// Are directories that can be rebuilt captured?
    pub capture_rebuildable: bool,
    /// Larger files are left out.
    pub max_file_bytes: u64,
}

impl Default for ScanSettings {
    fn default() -> Self {
        Self {
            exclude: Vec::new(),
            include: Vec::new(),
            precious: [".env", ".env.*", ".envrc"].map(String::from).to_vec(),
            capture_rebuildable: false,
            max_file_bytes: 100 << 20,
        }
    }
}

/// The agent's own files: captured with every checkpoint, restored with it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StateSettings {
    /// The feature list.
    pub features: Option<WorkspacePath>,
    /// The progress file.
    pub progress: Option<WorkspacePath>,
}

impl StateSettings {
    /// The files that are set.
    pub fn paths(&self) -> Vec<WorkspacePath> {
        self.features.iter().chain(&self.progress).cloned().collect()
    }
}

/// How pipelines are run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineSettings {
    /// The command that a prompt goes to, with `{prompt}` in it.
    pub agent: Option<String>,
}

/// Where stores lie.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreSettings {
    /// The directory that holds them.
    pub dir: Option<PathBuf>,
    /// Open stores that a process keeps.
    pub cache_size: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            checkpoints: CheckpointSettings { auto: true, every_n_steps: 1, max_checkpoints: 200, tell_agent: true },
            retention: RetentionSettings {
                automatic: 5,
                session: 3,
                turn: 200,
                step: 100,
                safety: 20,
                max_age: None,
                max_bytes: None,
            },
            scan: ScanSettings::default(),
            state: StateSettings::default(),
            stores: StoreSettings { dir: None, cache_size: 10 },
            pipelines: PipelineSettings::default(),
        }
    }
}

impl Settings {
    /// The defaults with the user's own file over them.
    pub fn of_user(user_file: Option<&Path>) -> Result<Self> {
        let mut settings = Self::default();
        if let Some(path) = user_file
            && let Some(bytes) = crate::disk::read_following(path).or_fail("read the settings file", path)?
        {
            parse(path, &bytes)?.apply(&mut settings);
        }
        Ok(settings)
    }

    /// These with values over them that a caller gives, table by table and key by key as in a settings file.
    pub fn with_values(mut self, values: serde_json::Value) -> Result<Self> {
        let values: SettingsFile =
            serde_json::from_value(values).map_err(|error| Error::Usage(format!("settings: {error}")))?;
        values.apply(&mut self);
        Ok(self)
    }

    /// These with the workspace's own file over them.
    pub fn with_workspace(mut self, root: &Path) -> Result<Self> {
        let path = root.join(WORKSPACE_FILE);
        let Some(bytes) = read_in_workspace(root)? else { return Ok(self) };
        let file = parse(&path, &bytes)?;
        // A workspace may come from a stranger: it names no place outside of it and no program.
        let of_user = [("stores", file.stores.is_some()), ("pipelines", file.pipelines.is_some())];
        if let Some((section, _)) = of_user.into_iter().find(|(_, is_there)| *is_there) {
            let problem = format!("[{section}] belongs in the user's own settings file, not in a workspace");
            return Err(Error::Settings { file: path, problem });
        }
        file.apply(&mut self);
        Ok(self)
    }
}

fn read_in_workspace(root: &Path) -> Result<Option<Vec<u8>>> {
    let file = root.join(WORKSPACE_FILE);
    let name = WORKSPACE_FILE.as_bytes();
    let directory = Dir::open(root).or_fail("read the settings file", &file)?;
    let stamp = directory.try_stamp_at(name).or_fail("read the settings file", &file)?;
    let problem = match stamp.as_ref().map(FileType::of) {
        Some(FileType::File) => {
            let mut bytes = Vec::new();
            let read = directory.open_file(name).and_then(|mut file| file.read_to_end(&mut bytes));
            return read.or_fail("read the settings file", file).map(|_| Some(bytes));
        }
        // A link would let the workspace name a file outside of it.
        Some(FileType::Symlink) | None => return Ok(None),
        Some(FileType::Directory) => "it is a directory",
        Some(FileType::Special) => "it is no regular file",
    };
    Err(Error::Settings { file, problem: problem.into() })
}

/// The defaults with the values of this text over them.
#[cfg(feature = "fuzzing")]
pub(crate) fn parse_text(path: &Path, bytes: &[u8]) -> Result<Settings> {
    let mut settings = Settings::default();
    parse(path, bytes)?.apply(&mut settings);
    Ok(settings)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<SettingsFile> {
    let problem = |problem: String| Error::Settings { file: path.to_owned(), problem };
    let text = std::str::from_utf8(bytes).map_err(|error| problem(format!("not UTF-8: {error}")))?;
    toml::from_str(text).map_err(|error| {
        let message = error.message().trim().replace('\n', "; ");
        match error.span() {
            Some(span) => {
                let start = span.start.min(text.len());
                let number = text[..start].matches('\n').count() + 1;
                let line = text.lines().nth(number - 1).unwrap_or_default().trim();
                problem(format!("line {number}: {message} (in `{line}`)"))
            }
            None => problem(message),
        }
    })
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SettingsFile {
    checkpoints: Option<CheckpointsTable>,
    retention: Option<RetentionTable>,
    scan: Option<ScanTable>,
    state: Option<StateTable>,
    stores: Option<StoresTable>,
    pipelines: Option<PipelinesTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PipelinesTable {
    agent: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckpointsTable {
    auto: Option<bool>,
    every_n_steps: Option<EveryNSteps>,
    max_checkpoints: Option<u64>,
    tell_agent: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RetentionTable {
    automatic: Option<u64>,
    session: Option<u64>,
    turn: Option<u64>,
    step: Option<u64>,
    safety: Option<u64>,
    max_age: Option<Age>,
    max_bytes: Option<Bytes>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScanTable {
    exclude: Option<Vec<String>>,
    include: Option<Vec<String>>,
    precious: Option<Vec<String>>,
    rebuildable: Option<Rebuildable>,
    max_file_bytes: Option<Bytes>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StateTable {
    features: Option<WorkspacePath>,
    progress: Option<WorkspacePath>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoresTable {
    dir: Option<PathBuf>,
    cache_size: Option<u64>,
}

impl SettingsFile {
    fn apply(self, settings: &mut Settings) {
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
            set(&mut settings.state.features, table.features.map(Some));
            set(&mut settings.state.progress, table.progress.map(Some));
        }
        if let Some(table) = self.stores {
            set(&mut settings.stores.dir, table.dir.map(Some));
            set(&mut settings.stores.cache_size, table.cache_size);
        }
        if let Some(table) = self.pipelines {
            set(&mut settings.pipelines.agent, table.agent.map(Some));
        }
    }
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Rebuildable {
    Skip,
    Capture,
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
            Err(format!("every_n_steps is {number}, but goes from 1 to 50"))
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(try_from = "NumberOrText")]
struct Bytes(u64);

#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
struct Age(Duration);

#[derive(Debug, Deserialize)]
#[serde(untagged)]
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

impl TryFrom<String> for Age {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse_duration(&text).map(Self)
    }
}

/// Reads a size such as `100MiB`, `2GB` or `512`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let invalid = || format!("{text:?} is not a size; write it like \"100MiB\"");
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..split].parse().map_err(|_| invalid())?;
    let factor: u64 = match text[split..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "kib" => 1 << 10,
        "m" | "mb" => 1_000_000,
        "mib" => 1 << 20,
        "g" | "gb" => 1_000_000_000,
        "gib" => 1 << 30,
        "t" | "tb" => 1_000_000_000_000,
        "tib" => 1 << 40,
        _ => return Err(invalid()),
    };
    number.checked_mul(factor).ok_or_else(invalid)
}

/// Reads a duration such as `20m`, `7d` or `1h30m`.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let invalid = || format!("{text:?} is not a duration; write it like \"20m\", \"36h\" or \"7d\"");
    let mut rest = text.trim();
    let mut seconds: u64 = 0;
    if rest.is_empty() {
        return Err(invalid());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(invalid)?;
        let number: u64 = rest[..digits].parse().map_err(|_| invalid())?;
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |end| digits + end);
        let unit = match rest[digits..unit_end].trim() {
            "s" | "sec" | "second" | "seconds" => 1,
            "m" | "min" | "minute" | "minutes" => 60,
            "h" | "hour" | "hours" => 3_600,
            "d" | "day" | "days" => 86_400,
            "w" | "week" | "weeks" => 604_800,
            _ => return Err(invalid()),
        };
        let part = number.checked_mul(unit).ok_or_else(invalid)?;
        seconds = seconds.checked_add(part).ok_or_else(invalid)?;
        rest = &rest[unit_end..];
    }
    // What the clock can't reach back to is no duration that anybody means.
    if seconds > 100 * 366 * 86_400 { Err(invalid()) } else { Ok(Duration::from_secs(seconds)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        match parse(Path::new("backtrail.toml"), text.as_bytes()) {
            Err(Error::Settings { problem, .. }) => problem,
            other => panic!("{text:?} gave {other:?}"),
        }
    }

    #[test]
    fn a_mistake_names_line_and_key() {
        assert!(problem("[scan\n").starts_with("line 1:"));
        let wrong_type = problem("[retention]\nautomatic = \"five\"\n");
        assert!(wrong_type.starts_with("line 2:") && wrong_type.contains("automatic"), "{wrong_type}");
        let typo = problem("[scan]\nexlude = []\n");
        assert!(typo.contains("exlude"), "{typo}");
        assert!(problem("[scan]\nmax_file_bytes = \"lots\"\n").contains("max_file_bytes"));
        assert!(problem("[scan]\nrebuildable = \"maybe\"\n").contains("rebuildable"));
        assert!(problem("[checkpoints]\nevery_n_steps = 51\n").contains("every_n_steps"));
        assert!(problem("[state]\nprogress = \"../x\"\n").contains("progress"));
    }

    #[test]
    fn values_of_a_caller_are_read_like_a_file() {
        let with = |values: serde_json::Value| Settings::default().with_values(values);
        let settings = with(serde_json::json!({
            "retention": { "step": 7, "max_age": "2d" },
            "scan": { "exclude": ["*.log"], "max_file_bytes": "2MiB", "rebuildable": "capture" },
        }));
        let settings = settings.unwrap();
        assert_eq!((settings.retention.step, settings.retention.automatic), (7, 5));
        assert_eq!(settings.scan.max_file_bytes, 2 << 20);
        assert!(settings.scan.capture_rebuildable);
        for (values, culprit) in [
            (serde_json::json!({ "scan": { "exlude": [] } }), "exlude"),
            (serde_json::json!({ "checkpoints": { "every_n_steps": 51 } }), "every_n_steps"),
            (serde_json::json!({ "retention": { "max_age": "soon" } }), "soon"),
        ] {
            let error = with(values).unwrap_err().to_string();
            assert!(error.contains(culprit), "{error}");
        }
    }

    #[test]
    fn sizes_and_durations() {
        assert_eq!(parse_bytes("100MiB"), Ok(100 << 20));
        assert_eq!(parse_bytes("2GB"), Ok(2_000_000_000));
        assert_eq!(parse_bytes("17"), Ok(17));
        assert!(parse_bytes("lots").is_err() && parse_bytes("").is_err() && parse_bytes("5 apples").is_err());
        assert_eq!(parse_duration("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse_duration("7d"), Ok(Duration::from_secs(604_800)));
        assert_eq!(parse_duration("0s"), Ok(Duration::ZERO));
        assert!(parse_duration("soon").is_err() && parse_duration("").is_err() && parse_duration("7").is_err());
        assert!(parse_duration("99999999999999d").is_err());
    }
}
