//! Reads the environment: the directories and files that this process uses.
//!
//! Nothing else in this crate reads environment variables. The meaning of their values for an operation is decided
//! elsewhere.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use backtrail::{Error, GitEnvironment, Settings, WatcherUse};

use crate::{failure::Failure, install::Places, logging::LogLevel};

/// The variables that change what this program does.
const VARIABLES: &[&str] = &[
    "BACKTRAIL_HOME",
    "BACKTRAIL_HOOK_MILLISECONDS",
    "BACKTRAIL_LOG",
    "BACKTRAIL_MCP_TOKEN",
    "BACKTRAIL_PAGER",
    "BACKTRAIL_WATCH",
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "COPILOT_HOME",
    "KIMI_CODE_HOME",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_SYSTEM",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// The environment of a process.
#[derive(Debug, Clone)]
pub struct Environment {
    current_directory: Option<PathBuf>,
    home: Option<PathBuf>,
    backtrail_home: Option<PathBuf>,
    settings_file: Option<PathBuf>,
    git: GitEnvironment,
    pager: Option<OsString>,
    programs: Option<OsString>,
    hook_patience: Option<std::time::Duration>,
    config_home: Option<PathBuf>,
    agents: AgentDirectories,
    mcp_token: Option<OsString>,
    log: Option<OsString>,
    watch: Option<OsString>,
    set_variables: Vec<&'static str>,
}

/// Directories that agents are configured to use instead of their defaults.
#[derive(Debug, Clone, Default)]
struct AgentDirectories {
    claude: Option<PathBuf>,
    codex: Option<PathBuf>,
    copilot: Option<PathBuf>,
    kimi: Option<PathBuf>,
}

impl Environment {
    /// Returns the environment of this process.
    pub fn of_process() -> Self {
        Self::read(std::env::current_dir().ok(), &|name| std::env::var_os(name))
    }

    /// Returns a separate environment below a directory, without the user's own settings.
    pub(crate) fn scratch(directory: &Path, current_directory: PathBuf) -> Self {
        Self {
            current_directory: Some(current_directory),
            home: Some(directory.to_owned()),
            backtrail_home: Some(directory.join("backtrail")),
            settings_file: None,
            git: GitEnvironment::default(),
            pager: None,
            programs: None,
            hook_patience: None,
            config_home: None,
            agents: AgentDirectories::default(),
            mcp_token: None,
            log: None,
            watch: None,
            set_variables: Vec::new(),
        }
    }

    /// Gives another process of this program the same environment.
    pub(crate) fn hand_over(&self, command: &mut std::process::Command) {
        let named = [("HOME", &self.home), ("BACKTRAIL_HOME", &self.backtrail_home)];
        command.env_clear();
        command.envs(named.into_iter().filter_map(|(name, path)| path.as_ref().map(|path| (name, path))));
    }

    fn read(current_directory: Option<PathBuf>, variable: &dyn Fn(&str) -> Option<OsString>) -> Self {
        let filled = |name: &str| variable(name).filter(|value| !value.is_empty());
        // The XDG specification requires relative paths to be ignored. A relative home would be a different one in each
        // directory.
        let absolute = |name: &str| filled(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = absolute("HOME");
        let below_home = |path: &str| home.as_ref().map(|home| home.join(path));

        let data_home = absolute("XDG_DATA_HOME").or_else(|| below_home(".local/share"));
        let config_home = absolute("XDG_CONFIG_HOME").or_else(|| below_home(".config"));
        let named_home = filled("BACKTRAIL_HOME").map(|named| match &current_directory {
            Some(current) => current.join(named),
            None => named.into(),
        });
        Self {
            backtrail_home: named_home.or_else(|| data_home.map(|data| data.join("backtrail"))),
            settings_file: config_home.as_ref().map(|config| config.join("backtrail/config.toml")),
            git: git_environment(variable, home.clone(), config_home.clone()),
            pager: variable("BACKTRAIL_PAGER").or_else(|| variable("PAGER")).or_else(|| Some("less -FRX".into())),
            programs: filled("PATH"),
            hook_patience: filled("BACKTRAIL_HOOK_MILLISECONDS")
                .and_then(|text| text.to_str()?.parse().ok())
                .map(std::time::Duration::from_millis),
            config_home,
            agents: AgentDirectories {
                claude: absolute("CLAUDE_CONFIG_DIR"),
                codex: absolute("CODEX_HOME"),
                copilot: absolute("COPILOT_HOME"),
                kimi: absolute("KIMI_CODE_HOME"),
            },
            mcp_token: filled("BACKTRAIL_MCP_TOKEN"),
            log: filled("BACKTRAIL_LOG"),
            watch: filled("BACKTRAIL_WATCH"),
            set_variables: VARIABLES.iter().copied().filter(|name| filled(name).is_some()).collect(),
            current_directory,
            home,
        }
    }

    /// Changes the current directory.
    pub(crate) fn standing_in(self, directory: PathBuf) -> Self {
        Self { current_directory: Some(directory), ..self }
    }

    /// Returns the time that a hook makes an agent wait. Returns `None` if the environment does not set it.
    pub(crate) fn hook_patience(&self) -> Option<std::time::Duration> {
        self.hook_patience
    }

    /// Returns the directories that contain the agents' files, for a project.
    pub(crate) fn agent_places(&self, root: &Path) -> Result<Places, Failure> {
        let no_home = || Failure::usage("can't find the files of agents: HOME is not set", Some("set HOME"));
        let home = self.home.clone().ok_or_else(no_home)?;
        Ok(Places {
            config_home: self.config_home.clone().unwrap_or_else(|| home.join(".config")),
            home,
            claude: self.agents.claude.clone(),
            codex: self.agents.codex.clone(),
            copilot: self.agents.copilot.clone(),
            kimi: self.agents.kimi.clone(),
            root: root.to_owned(),
        })
    }

    /// Returns the path under which a shell finds this program. Returns `None` if it finds none, or another program.
    pub(crate) fn path_in_shell(&self, program: &Path) -> Option<PathBuf> {
        let (name, real) = (program.file_name()?, program.canonicalize().ok()?);
        let found = std::env::split_paths(self.programs.as_ref()?).filter(|directory| directory.is_absolute());
        let first = found.map(|directory| directory.join(name)).find(|path| path.is_file())?;
        (first.canonicalize().ok()? == real).then_some(first)
    }

    /// Returns the value of `PATH`.
    pub(crate) fn programs(&self) -> Option<&OsString> {
        self.programs.as_ref()
    }

    /// Returns whether a program of this name can be run in this directory. A name with a slash is a path; other names
    /// are searched in `PATH`.
    pub(crate) fn has_program(&self, name: &str, directory: &Path) -> bool {
        let is_program = |path: &Path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && !path.is_dir();
        if name.contains('/') {
            return is_program(&directory.join(name));
        }
        let mut places = self.programs.iter().flat_map(std::env::split_paths);
        !name.is_empty() && places.any(|place| is_program(&directory.join(place).join(name)))
    }

    /// Returns the path of a file or directory of this program, beside the stores.
    pub(crate) fn own_file(&self, name: &str) -> Result<PathBuf, Failure> {
        let no_home = || {
            let hint = "set HOME or BACKTRAIL_HOME";
            Failure::usage("can't find the data directory: neither HOME nor BACKTRAIL_HOME is set", Some(hint))
        };
        Ok(self.backtrail_home.as_ref().ok_or_else(no_home)?.join(name))
    }

    /// Returns the directory that relative paths start from.
    pub fn current_directory(&self) -> Result<&Path, Failure> {
        self.current_directory.as_deref().ok_or_else(|| {
            Failure::usage(
                "the current directory no longer exists",
                Some("go to a directory that exists, or choose one with -w DIR"),
            )
        })
    }

    /// Makes a path from the user absolute.
    pub fn absolute(&self, path: &Path) -> Result<PathBuf, Failure> {
        if path.is_absolute() { Ok(path.to_owned()) } else { Ok(self.current_directory()?.join(path)) }
    }

    /// Returns the user's own settings.
    pub fn user_settings(&self) -> Result<Settings, Failure> {
        Ok(Settings::of_user(self.settings_file.as_deref())?)
    }

    /// Returns the path of the user's own settings file, whether it exists or not.
    pub fn settings_file(&self) -> Option<&Path> {
        self.settings_file.as_deref()
    }

    /// Returns the directory that contains the stores.
    pub fn stores(&self, settings: &Settings) -> Result<PathBuf, Failure> {
        if let Some(named) = &settings.stores.dir {
            return self.stores_by_settings(named);
        }
        let home = self.backtrail_home.as_ref().ok_or_else(|| {
            let hint = "set BACKTRAIL_HOME, or choose a store with --store DIR";
            Failure::usage("can't find the stores: neither HOME nor BACKTRAIL_HOME is set", Some(hint))
        })?;
        Ok(home.join("stores"))
    }

    fn stores_by_settings(&self, named: &Path) -> Result<PathBuf, Failure> {
        let expanded = match (named.strip_prefix("~"), &self.home) {
            (Ok(below), Some(home)) => home.join(below),
            _ => named.to_owned(),
        };
        if expanded.is_absolute() {
            return Ok(expanded);
        }
        let problem =
            format!("[stores] dir is {:?}, but it must be absolute or start with ~/", named.display().to_string());
        Err(Error::Settings { file: self.settings_file.clone().unwrap_or_default(), problem }.into())
    }

    /// Returns the user's git configuration.
    pub fn git(&self) -> &GitEnvironment {
        &self.git
    }

    /// Returns the directories of this program itself. Without a known store directory, there is none to skip.
    pub fn own_directories(&self, settings: &Settings) -> Vec<PathBuf> {
        self.backtrail_home.iter().cloned().chain(self.stores(settings).ok()).collect()
    }

    /// Returns the protected directories, which contain too much to be a sensible workspace.
    pub fn protected_places(&self) -> Vec<PathBuf> {
        let system = ["/", "/tmp", "/var", "/etc"].map(PathBuf::from);
        let of_home = ["", "Desktop", "Documents", "Downloads"];
        let home = self.home.iter().flat_map(|home| of_home.map(|name| home.join(name)));
        system.into_iter().chain(home).collect()
    }

    /// Returns the part that a watcher plays in operations. `off` is the only value with a meaning.
    pub fn watcher_use(&self) -> WatcherUse {
        match &self.watch {
            Some(word) if word == "off" => WatcherUse::Off,
            _ => WatcherUse::Trusted,
        }
    }

    /// Returns the token that clients of the MCP server must send.
    pub(crate) fn mcp_token(&self) -> Option<&OsStr> {
        self.mcp_token.as_deref()
    }

    /// Returns the names of the variables that are set and that change what this program does.
    pub(crate) fn set_variables(&self) -> &[&'static str] {
        &self.set_variables
    }

    /// Replaces the home directory in a text with `~`.
    pub(crate) fn without_home(&self, text: &str) -> String {
        match self.home.as_deref().and_then(Path::to_str) {
            Some(home) if home.trim_end_matches('/').len() > 1 => text.replace(home.trim_end_matches('/'), "~"),
            _ => text.to_owned(),
        }
    }

    /// Returns the level of detail on stderr. Returns `None` if the environment does not set it.
    pub(crate) fn log_level(&self) -> Result<Option<LogLevel>, Failure> {
        let Some(named) = &self.log else { return Ok(None) };
        let level = named.to_str().and_then(LogLevel::named);
        level.map(Some).ok_or_else(|| {
            let problem = format!("BACKTRAIL_LOG is {named:?}, but must be error, warn, info, debug or trace");
            Failure::usage(problem, Some("set it to one of these, or unset it"))
        })
    }

    /// Returns the program that pages long output. Returns `None` if the user wants no pager.
    pub(crate) fn pager(&self) -> Option<&OsString> {
        self.pager.as_ref().filter(|pager| !pager.is_empty() && *pager != "cat")
    }
}

/// Returns the shell that asks for completions. Returns `None` in an ordinary run.
pub(crate) fn completing_shell() -> Option<OsString> {
    std::env::var_os(crate::completion::VARIABLE).filter(|shell| !shell.is_empty() && shell != "0")
}

/// Removes the git variables of this process from another program's environment.
pub(crate) fn hide_git_variables(command: &mut std::process::Command) {
    use std::os::unix::ffi::OsStrExt;
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.as_bytes().starts_with(b"GIT_")) {
        command.env_remove(name);
    }
}

/// Returns the configuration files that git would read, in the order of increasing precedence.
fn git_environment(
    variable: &dyn Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
    config_home: Option<PathBuf>,
) -> GitEnvironment {
    let is_set = |value: OsString| !["", "0", "false", "no", "off"].iter().any(|word| value.eq_ignore_ascii_case(word));
    let without_system = variable("GIT_CONFIG_NOSYSTEM").is_some_and(is_set);
    let system = match variable("GIT_CONFIG_SYSTEM") {
        _ if without_system => None,
        Some(named) => Some(PathBuf::from(named)),
        None => Some(PathBuf::from("/etc/gitconfig")),
    };
    let global = match variable("GIT_CONFIG_GLOBAL") {
        Some(named) => vec![PathBuf::from(named)],
        None => {
            let of_config_home = config_home.as_ref().map(|config| config.join("git/config"));
            of_config_home.into_iter().chain(home.as_ref().map(|home| home.join(".gitconfig"))).collect()
        }
    };
    let config_files = system.into_iter().chain(global).filter(|file| !file.as_os_str().is_empty()).collect();
    GitEnvironment { home, config_files, default_excludes: config_home.map(|config| config.join("git/ignore")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let find = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        Environment::read(Some("/here".into()), &find)
    }

    fn stores(variables: &[(&str, &str)]) -> Option<PathBuf> {
        environment(variables).stores(&Settings::default()).ok()
    }

    #[test]
    fn the_most_specific_variable_sets_the_directory_of_the_stores() {
        let home = ("HOME", "/h");
        assert_eq!(stores(&[home]), Some("/h/.local/share/backtrail/stores".into()));
        assert_eq!(stores(&[home, ("XDG_DATA_HOME", "/d")]), Some("/d/backtrail/stores".into()));
        assert_eq!(stores(&[home, ("XDG_DATA_HOME", "d")]), Some("/h/.local/share/backtrail/stores".into()));
        assert_eq!(stores(&[home, ("BACKTRAIL_HOME", "/b")]), Some("/b/stores".into()));
        assert_eq!(stores(&[home, ("BACKTRAIL_HOME", "b")]), Some("/here/b/stores".into()));
        assert_eq!(stores(&[("BACKTRAIL_HOME", "/b")]), Some("/b/stores".into()));
        assert_eq!(stores(&[]), None);
    }

    #[test]
    fn the_settings_override_the_variables_for_the_stores() {
        let mut settings = Settings::default();
        let environment = environment(&[("HOME", "/h"), ("BACKTRAIL_HOME", "/b")]);
        settings.stores.dir = Some("~/s".into());
        assert_eq!(environment.stores(&settings).ok(), Some("/h/s".into()));
        settings.stores.dir = Some("/s".into());
        assert_eq!(environment.stores(&settings).ok(), Some("/s".into()));
        settings.stores.dir = Some("s".into());
        assert!(environment.stores(&settings).is_err());
    }

    #[test]
    fn the_same_git_configuration_files_as_in_git_are_read() {
        let files = |variables: &[(&str, &str)]| environment(variables).git.config_files;
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let home = ("HOME", "/h");
        assert_eq!(files(&[home]), paths(&["/etc/gitconfig", "/h/.config/git/config", "/h/.gitconfig"]));
        assert_eq!(files(&[home, ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/g")]), paths(&["/g"]));
        assert_eq!(
            files(&[("GIT_CONFIG_SYSTEM", "/s"), ("GIT_CONFIG_NOSYSTEM", "0"), ("GIT_CONFIG_GLOBAL", "")]),
            paths(&["/s"])
        );
        let excludes = environment(&[home, ("XDG_CONFIG_HOME", "/c")]).git.default_excludes;
        assert_eq!(excludes, Some("/c/git/ignore".into()));
    }

    #[test]
    fn an_empty_pager_or_cat_means_no_pager() {
        let pager = |variables: &[(&str, &str)]| environment(variables).pager().cloned();
        assert_eq!(pager(&[]), Some("less -FRX".into()));
        assert_eq!(pager(&[("PAGER", "more")]), Some("more".into()));
        assert_eq!(pager(&[("PAGER", "more"), ("BACKTRAIL_PAGER", "less")]), Some("less".into()));
        assert_eq!(pager(&[("PAGER", "more"), ("BACKTRAIL_PAGER", "")]), None);
        assert_eq!(pager(&[("PAGER", "cat")]), None);
    }
}
