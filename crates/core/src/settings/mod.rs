//! Settings of a workspace and of its user.
//!
//! They come from two files: `backtrail.toml` in the workspace, which can't name programs or places outside of it, and
//! the user's own file. If both set a key, the workspace's value wins, except for limits that it can only raise.
//! Nothing here searches for files: the caller provides their paths.

mod file;
mod quantities;
mod raise;
mod read;

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use self::file::{Quotes, SettingsFile};
pub(crate) use self::quantities::is_beyond_range;
pub use self::{
    quantities::{parse_bytes, parse_duration},
    raise::{WithoutEffect, duration_text},
};
use crate::{
    error::{Error, Result},
    model::{MAX_RULE_BYTES, WorkspacePath},
};

/// The name of the workspace's own settings file.
pub const WORKSPACE_FILE: &str = "backtrail.toml";

/// All settings, with a value for each of them.
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
    /// Settings files that are too large to be applied.
    pub unapplied: Vec<PathBuf>,
    /// Keys of the workspace's own file that have no effect.
    pub without_effect: Vec<WithoutEffect>,
}

/// The settings for automatic checkpoints.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointSettings {
    /// Set if hooks and watchers take checkpoints automatically.
    pub auto: bool,
    /// The number of an agent's steps for each checkpoint.
    pub every_n_steps: u64,
    /// The maximum number of step, automatic, session and safety checkpoints together.
    pub max_checkpoints: u64,
    /// Set if an agent is told, with its next prompt, that files were restored.
    pub tell_agent: bool,
}

/// The checkpoints that retention keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct RetentionSettings {
    /// The number of most recent automatic checkpoints to keep.
    pub automatic: u64,
    /// The number of most recent session checkpoints to keep.
    pub session: u64,
    /// The number of most recent turn checkpoints to keep.
    pub turn: u64,
    /// The number of most recent step checkpoints to keep.
    pub step: u64,
    /// The number of most recent safety checkpoints to keep.
    pub safety: u64,
    /// The time that checkpoints stay in the bin after they were deleted on request.
    pub deleted: Duration,
    /// The number of most recent thread checkpoints to keep. `None` keeps them until they are deleted.
    pub thread: Option<u64>,
    /// The minimum time to keep safety checkpoints with contents that no other checkpoint holds.
    pub unsaved: Duration,
    /// Checkpoints older than this are removed.
    pub max_age: Option<Duration>,
    /// While the store is larger than this, the oldest checkpoints are removed.
    pub max_bytes: Option<u64>,
}

/// The files that are captured.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ScanSettings {
    /// Ignore patterns in addition to git's own.
    pub exclude: Vec<String>,
    /// Patterns of ignored files that are captured, even in ignored directories.
    pub include: Vec<String>,
    /// Patterns of ignored files that are captured, except in ignored directories.
    pub precious: Vec<String>,
    /// Set if rebuildable directories are captured.
    pub capture_rebuildable: bool,
    /// Files larger than this are skipped.
    pub max_file_bytes: u64,
    /// Patterns of `exclude` that only the workspace's own file has. They do not end the capture of a path that `@`
    /// holds, since any program that writes into the workspace could have added them.
    #[serde(skip)]
    pub exclude_by_workspace: Vec<String>,
}

impl ScanSettings {
    /// Returns the patterns of `exclude` that the owner of the workspace chose.
    pub fn exclude_by_owner(&self) -> Vec<String> {
        let is_owners = |pattern: &&String| !self.exclude_by_workspace.contains(pattern);
        self.exclude.iter().filter(is_owners).cloned().collect()
    }

    /// Treats workspace patterns that the owner confirmed with `backtrail exclude` as the owner's.
    pub(crate) fn confirm(&mut self, confirmed: &[String]) {
        self.exclude_by_workspace.retain(|pattern| !confirmed.contains(pattern));
    }
}

impl Default for ScanSettings {
    fn default() -> Self {
        Self {
            exclude: Vec::new(),
            include: Vec::new(),
            precious: [".env", ".env.*", ".envrc"].map(String::from).to_vec(),
            capture_rebuildable: false,
            max_file_bytes: 100 << 20,
            exclude_by_workspace: Vec::new(),
        }
    }
}

/// The agent's own files. They are captured with every checkpoint and restored with it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StateSettings {
    /// The feature list.
    pub features: Option<WorkspacePath>,
    /// The progress file.
    pub progress: Option<WorkspacePath>,
}

impl StateSettings {
    /// Returns the paths that are set.
    pub fn paths(&self) -> Vec<WorkspacePath> {
        self.features.iter().chain(&self.progress).cloned().collect()
    }
}

/// The settings for running pipelines.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PipelineSettings {
    /// The command that receives a prompt, with `{prompt}` in it.
    pub agent: Option<String>,
}

/// The settings for the location of stores.
#[derive(Debug, Clone, PartialEq)]
pub struct StoreSettings {
    /// The directory that contains them.
    pub dir: Option<PathBuf>,
    /// The number of stores that a process keeps open.
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
                deleted: Duration::from_secs(86_400),
                thread: None,
                unsaved: Duration::from_secs(7 * 86_400),
                max_age: None,
                max_bytes: None,
            },
            scan: ScanSettings::default(),
            state: StateSettings::default(),
            stores: StoreSettings { dir: None, cache_size: 10 },
            pipelines: PipelineSettings::default(),
            unapplied: Vec::new(),
            without_effect: Vec::new(),
        }
    }
}

impl Settings {
    /// Returns the defaults, overridden by the user's own file.
    pub fn of_user(user_file: Option<&Path>) -> Result<Self> {
        let mut settings = Self::default();
        let Some(path) = user_file else { return Ok(settings) };
        match read::of_user(path)? {
            None => {}
            Some(bytes) if is_too_large(&bytes) => settings.unapplied.push(path.to_owned()),
            Some(bytes) => parse(path, &bytes)?.apply(&mut settings),
        }
        Ok(settings)
    }

    /// Overrides these settings with values from the caller, which have the tables and keys of a settings file.
    pub fn with_values(mut self, values: serde_json::Value) -> Result<Self> {
        let values = file::from_values(values).map_err(|problem| Error::Usage(format!("settings: {problem}")))?;
        values.apply(&mut self);
        Ok(self)
    }

    /// Overrides these settings with the workspace's own file. That file can only raise the limits of retention.
    pub fn with_workspace(mut self, root: &Path) -> Result<Self> {
        let path = root.join(WORKSPACE_FILE);
        let Some(found) = read::in_workspace(root)? else { return Ok(self) };
        if is_too_large(&found.bytes) {
            self.unapplied.push(path);
            return Ok(self);
        }
        let file = file::parse_in_workspace(&found.bytes, found.quotes);
        let by_owner = self.scan.exclude.clone();
        file.map_err(|problem| Error::Settings { file: path, problem })?.apply_in_workspace(&mut self);
        let is_new = |pattern: &&String| !by_owner.contains(pattern);
        self.scan.exclude_by_workspace = self.scan.exclude.iter().filter(is_new).cloned().collect();
        Ok(self)
    }
}

fn is_too_large(bytes: &[u8]) -> bool {
    bytes.len() as u64 > MAX_RULE_BYTES
}

/// Returns the defaults, overridden by the values in this text.
#[cfg(feature = "fuzzing")]
pub(crate) fn parse_text(path: &Path, bytes: &[u8]) -> Result<Settings> {
    let mut settings = Settings::default();
    parse(path, bytes)?.apply(&mut settings);
    Ok(settings)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<SettingsFile> {
    file::parse(bytes, Quotes::Allowed).map_err(|problem| Error::Settings { file: path.to_owned(), problem })
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
        for (text, names) in [
            ("[scan\n", "line 1: "),
            ("[retention]\nautomatic = \"five\"\n", "line 2: [retention] automatic: "),
            ("[scan]\nexlude = []\n", "line 2: unknown field `exlude`"),
            ("\n[skan]\nx = 1\n", "line 2: unknown field `skan`"),
            ("[scan]\nmax_file_bytes = \"lots\"\n", "line 2: [scan] max_file_bytes: \"lots\""),
            ("[scan]\nrebuildable = \"maybe\"\n", "line 2: [scan] rebuildable: "),
            ("[scan]\nexclude = [\n  \"a\",\n  5,\n]\n", "line 4: [scan] exclude: "),
            ("[checkpoints]\nevery_n_steps = 51\n", "line 2: [checkpoints] every_n_steps: 51 is out of range"),
            ("[state]\nprogress = \"../x\"\n", "line 2: [state] progress: "),
            ("[state]\nprogress = \"\"\n", "line 2: [state] progress: \"\" is not a path inside"),
            ("[state]\nfeatures = \"\"\n", "line 2: [state] features: \"\" is not a path inside"),
            ("[state.features]\nbase64 = \"\"\n", "line 1: [state] features: \"\" is not a path inside"),
            ("checkpoints = 1\n", "line 1: [checkpoints]: "),
            ("[stores]\ncache_size = 1\ndir = \"rel\"\n", "line 3: [stores] dir: \"rel\""),
        ] {
            let problem = problem(text);
            assert!(problem.starts_with(names), "{text:?} gave {problem}");
        }
        let cut_off = parse(Path::new("x"), b"[scan]\nexclude = [\"\xff\"]\n").unwrap_err().to_string();
        assert_eq!(cut_off, "x: line 2: not UTF-8");
    }

    #[test]
    fn a_mistake_is_told_in_plain_words() {
        let whole = "a whole number, 0 or more";
        for (text, says) in [
            ("[retention]\nautomatic = \"five\"\n", whole),
            ("[retention]\nstep = -1\n", whole),
            ("[checkpoints]\nevery_n_steps = -1\n", whole),
            ("[retention]\nmax_bytes = -5\n", "a size is"),
            ("[retention]\nmax_bytes = []\n", "a size is"),
            ("[retention]\nmax_age = 30\n", "a duration is"),
            ("[state]\nfeatures = 5\n", "a path is"),
            ("checkpoints = 1\n", "a table"),
            ("scan = []\n", "a table"),
            ("[checkpoints]\nauto = 1\n", "true or false"),
            ("[scan]\nexclude = \"a\"\n", "a list"),
            ("[scan]\nexclude = [1]\n", "text in quotes"),
            ("[scan]\nrebuildable = 1\n", "\"skip\" or \"capture\""),
            ("[stores]\ndir = 1\n", "text in quotes"),
            ("[pipelines]\nagent = []\n", "text in quotes"),
        ] {
            let problem = problem(text);
            assert!(problem.contains(says), "{text:?} gave {problem}");
            for internal in ["u64", "struct", "enum", "Table", "sequence", "variant", "boolean", "map"] {
                assert!(!problem.contains(internal), "{text:?} gave {problem}");
            }
        }
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
            (serde_json::json!({ "checkpoints": { "every_n_steps": 51 } }), "[checkpoints] every_n_steps"),
            (serde_json::json!({ "state": { "features": "" } }), "[state] features: \"\""),
            (serde_json::json!({ "state": { "progress": "" } }), "[state] progress: \"\""),
            (serde_json::json!({ "retention": { "max_age": "soon" } }), "[retention] max_age: \"soon\""),
        ] {
            let error = with(values).unwrap_err().to_string();
            assert!(error.contains(culprit), "{error}");
        }
    }

    /// Returns the keys that a settings file may have, each after its table.
    fn keys() -> Vec<(String, String)> {
        let expected = |text: &str| -> Vec<String> {
            let problem = problem(text);
            let list = problem.split("expected").nth(1).unwrap_or_else(|| panic!("{problem}")).to_owned();
            let list = list.split(" (in ").next().unwrap_or_default().to_owned();
            list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
        };
        let of_table = |table: String| {
            let keys = expected(&format!("[{table}]\nno_such_key = 1\n"));
            keys.into_iter().map(move |key| (table.clone(), key))
        };
        expected("[no_such_table]\n").into_iter().flat_map(of_table).collect()
    }

    /// Returns the cells of the rows of `docs/settings.md` that describe a key.
    fn rows() -> Vec<(String, String, String, String)> {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/settings.md");
        let page = std::fs::read_to_string(page).unwrap();
        let cells = |line: &str| -> Option<(String, String, String, String)> {
            let cells: Vec<&str> = line.strip_prefix("| `[")?.split(" | ").map(str::trim).collect();
            let (table, key) = cells[0].trim_end_matches('`').split_once("] ")?;
            let [default, says] = [cells[1], cells[3]].map(|cell| cell.trim_matches(['`', ' ', '|']).to_owned());
            Some((table.to_owned(), key.to_owned(), default, says))
        };
        page.lines().filter_map(cells).collect()
    }

    #[test]
    fn the_page_of_settings_has_every_key() {
        let mut named: Vec<_> = rows().into_iter().map(|(table, key, _, _)| (table, key)).collect();
        let mut known = keys();
        named.sort();
        known.sort();
        assert!(known.len() > 20, "{known:?}");
        assert_eq!(named, known);
    }

    #[test]
    fn the_page_of_settings_has_the_defaults_and_who_may_set_them() {
        let in_workspace = |text: &str| -> Result<Settings, String> {
            let mut settings = Settings::default();
            file::parse_in_workspace(text.as_bytes(), Quotes::Allowed)?.apply_in_workspace(&mut settings);
            Ok(settings)
        };
        for (table, key, default, says) in rows() {
            let of_user = |value: &str| {
                let mut settings = Settings::default();
                parse(Path::new("x"), format!("[{table}]\n{key} = {value}\n").as_bytes()).unwrap().apply(&mut settings);
                settings
            };
            let value = match (default.as_str(), key.as_str()) {
                ("none", "max_age") => "\"1d\"",
                ("none", "max_bytes" | "thread") => "1",
                ("none", "dir") => "\"/x\"",
                ("none", _) => "\"x\"",
                (default, _) => default,
            };
            assert_eq!(of_user(value) == Settings::default(), default != "none", "[{table}] {key}: {default}");
            let outcome = in_workspace(&format!("[{table}]\n{key} = {value}\n"));
            let [lower, higher] = if value.starts_with('"') { ["\"0s\"", "\"99d\""] } else { ["0", "999"] };
            let given = |value: &str| in_workspace(&format!("[{table}]\n{key} = {value}\n")).unwrap();
            let named = format!("[{table}] {key}");
            let is_named = |settings: &Settings| settings.without_effect.iter().any(|found| found.key == named);
            let limits = |settings: &Settings| (settings.checkpoints.clone(), settings.retention.clone());
            match says.as_str() {
                "sets" => assert!(!is_named(&outcome.unwrap()), "{named}"),
                "refused" => assert!(outcome.unwrap_err().contains("only in the user's own"), "{named}"),
                "no effect" => {
                    let outcome = outcome.unwrap();
                    assert!(is_named(&outcome) && limits(&outcome) == limits(&Settings::default()), "{named}");
                }
                "raises" => {
                    let (lower, higher) = (given(lower), given(higher));
                    assert!(is_named(&lower) && limits(&lower) == limits(&Settings::default()), "{named}");
                    assert!(!is_named(&higher) && limits(&higher) != limits(&Settings::default()), "{named}");
                }
                other => panic!("{named}: {other:?}"),
            }
        }
    }
}
