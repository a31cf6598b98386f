//! One run of the program: its options, and the workspace that they select.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use backtrail::{
    BootClock, CheckpointId, Error, ErrorCode, Event, Location, OpenStores, Options, OptionsOf, RULE_OF_SINCE, Range,
    Scope, Settings, Start, Workspace, WorkspaceEntry, WorkspacePath, locate, parse_end, parse_since, problem_of_since,
    settings::parse_duration,
};
use backtrail_server::{Opener, OptionsAt, Purpose, Served};
use jiff::Timestamp;

use crate::{
    cli::{Command, GlobalOptions},
    clock::Now,
    commands,
    failure::{self, Failure},
    logging,
    output::{Output, conflict_warnings, shell_path, shell_words},
    process_pins::abandoned_bisect,
    settings::Environment,
};

/// Decides whether a command may use a protected directory, which contains too much to be a sensible workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protection {
    /// The directory is refused.
    Kept,
    /// The directory is refused, unless the user insists with `--force`.
    KeptUnlessForced,
    /// The directory is accepted: the user insists.
    Waived,
}

impl Protection {
    /// Returns the protection that `--force` implies.
    pub(crate) fn unless(force: bool) -> Self {
        if force { Self::Waived } else { Self::KeptUnlessForced }
    }
}

/// The treatment of errors in the workspace's own settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistakes {
    /// The command fails.
    Refused,
    /// The errors are reported, and the file is ignored.
    Told,
}

/// The hint for a protected directory, for commands that have `--force`.
const INSIST: &str = "choose a directory inside it with -w DIR, or use --force";

/// One run of the program.
#[derive(Clone)]
pub(crate) struct Invocation {
    options: GlobalOptions,
    environment: Environment,
    /// Prints everything.
    pub(crate) output: Output,
    /// The current time and time zone.
    pub(crate) now: Now,
    /// The stores that stay open, if the command opens a workspace repeatedly.
    open_stores: Option<Arc<OpenStores>>,
}

/// A workspace, and the sources of its settings.
pub(crate) struct Survey {
    pub(crate) workspace: Workspace,
    pub(crate) location: Location,
    pub(crate) defaults: Settings,
    /// The defaults, overridden by the user's own file.
    pub(crate) user: Settings,
    /// Settings that can't be read.
    pub(crate) problems: Vec<Failure>,
    /// The reason why it is refused as a workspace, if it is.
    pub(crate) protected: Option<Error>,
}

impl Invocation {
    pub(crate) fn new(options: GlobalOptions, environment: Environment) -> Self {
        let output = Output::new(&options, environment.pager());
        Self { options, environment, output, now: Now::new(), open_stores: None }
    }

    /// Returns a nested run in another environment, with the same colors.
    pub(crate) fn elsewhere(&self, options: GlobalOptions, environment: Environment) -> Self {
        Self::new(GlobalOptions { color: self.options.color, log: self.options.log, ..options }, environment)
    }

    /// Runs a command and reports its failure.
    pub(crate) fn run(&self, command: Option<Command>) -> ExitCode {
        commands::run(command, self).unwrap_or_else(|failure| {
            logging::command_failed(&failure);
            failure::end(&failure, &self.output)
        })
    }

    /// Returns the workspace for a command that only reads.
    pub(crate) fn workspace(&self) -> Result<Workspace, Failure> {
        let (location, settings) = self.locate()?;
        self.tell_of_former(&location);
        let workspace = self.open(location, settings, Mistakes::Told)?;
        workspace.refuse_foreign_directory()?;
        if workspace.has_interrupted_restore()? {
            let finish = "finish it with: backtrail recover, or take it back with: backtrail recover --abort";
            self.output.warn(&format!("a restore was interrupted; {finish}"));
        }
        if abandoned_bisect(&workspace, self).is_some() {
            let finish = "bring back the files from before it with: backtrail recover";
            self.output.warn(&format!("a bisect in the workspace was interrupted; {finish}"));
        }
        Ok(workspace)
    }

    /// Returns the workspace for a command that reads all of its files. Refuses a protected directory without
    /// checkpoints: the user does not mean it as a workspace, and reading all of it takes long.
    pub(crate) fn workspace_to_scan(&self) -> Result<Workspace, Failure> {
        let workspace = self.workspace()?;
        if !workspace.has_store()? {
            workspace.refuse_protected(&self.environment.protected_places()).map_err(|error| {
                let hint = "go to the directory of a project, or choose it with -w DIR".to_owned();
                Failure::Hinted { error, hint }
            })?;
        }
        Ok(workspace)
    }

    /// Returns the workspace for a command that writes. Tells the user which one it is if that is not obvious.
    pub(crate) fn workspace_to_write(&self, protection: Protection) -> Result<Workspace, Failure> {
        let workspace = self.workspace_for_writing(protection, Mistakes::Refused)?;
        if let Err(Error::FolderOfProjects { path }) = workspace.refuse_folder_of_projects() {
            let path = path.display();
            let apart = "to keep them separate, save in each of them";
            self.output
                .warn(&format!("{path} contains several projects, and all of them become one workspace; {apart}"));
        }
        Ok(workspace)
    }

    /// Returns the workspace for creating its store. Also accepts a directory that holds several projects, because the
    /// user asks for it.
    pub(crate) fn workspace_to_make(&self, protection: Protection) -> Result<Workspace, Failure> {
        self.workspace_for_writing(protection, Mistakes::Refused)
    }

    /// Returns the workspace for restoring files. A damaged settings file must not prevent that.
    pub(crate) fn workspace_to_restore(&self) -> Result<Workspace, Failure> {
        let mut workspace = self.workspace_for_writing(Protection::Waived, Mistakes::Told)?;
        workspace.scan_fully();
        Ok(workspace)
    }

    /// Returns the workspace for an automatic checkpoint. A damaged settings file must not end the protection of a
    /// workspace that has a store. A workspace without a store is refused until the file is fixed.
    pub(crate) fn workspace_to_protect(&self) -> Result<Workspace, Failure> {
        let workspace = self.workspace_for_writing(Protection::Kept, Mistakes::Told)?;
        workspace.refuse_folder_of_projects()?;
        if workspace.has_store()? {
            return Ok(workspace);
        }
        self.workspace_for_writing(Protection::Kept, Mistakes::Refused)
    }

    fn workspace_for_writing(&self, protection: Protection, mistakes: Mistakes) -> Result<Workspace, Failure> {
        let (location, settings) = self.locate()?;
        let mut workspace = self.open(location.clone(), settings, mistakes)?;
        if protection == Protection::Waived && workspace.make_root_again()? {
            self.output.note(&format!("{} was deleted, and is created again", location.root.display()));
        }
        if protection != Protection::Waived {
            workspace.refuse_protected(&self.environment.protected_places()).map_err(|error| match protection {
                Protection::KeptUnlessForced => Failure::from(error).with_hint(INSIST),
                _ => error.into(),
            })?;
        }
        self.tell_where(&location, &workspace);
        let output = self.output.clone();
        workspace.observe(move |event| {
            if let Event::Recovered { outcome, conflicts } = &event.event {
                output.note(&format!("an interrupted restore was {}", outcome.replace('_', " ")));
                conflict_warnings(conflicts).iter().for_each(|warning| output.warn(warning));
            }
        });
        Ok(workspace)
    }

    /// Returns the workspace for a command that keeps running. It is opened repeatedly: always the same one, with the
    /// settings of that moment.
    pub(crate) fn served(&self) -> Result<Served, Failure> {
        let (location, settings) = self.locate()?;
        self.tell_of_former(&location);
        Ok(self.served_at(location, settings))
    }

    /// Returns a function that does the same for any workspace with a store.
    pub(crate) fn opener_of_any(
        &self,
    ) -> Result<impl Fn(&WorkspaceEntry) -> backtrail::Result<Served> + use<>, Failure> {
        let settings = self.environment.user_settings()?;
        let this = self.clone();
        Ok(move |entry: &WorkspaceEntry| {
            let path = entry.moved_to.as_ref().unwrap_or(&entry.path);
            let location = locate(&Start::At(path.clone()), Path::new(""), Some(&entry.store))?;
            Ok(this.served_at(location, settings.clone()))
        })
    }

    fn served_at(&self, location: Location, settings: Settings) -> Served {
        let (this, user) = (self.clone(), settings.clone());
        let options_at: OptionsAt = Arc::new(move |root| this.options_at(&user, root));
        let stores = self.environment.stores(&settings).ok();
        // Kept open between two requests.
        let open_stores = Arc::new(OpenStores::new(settings.stores.cache_size));
        let this = Self { open_stores: Some(open_stores), ..self.clone() };
        let open: Opener = Arc::new(move |purpose| {
            let mistakes = if purpose == Purpose::Save { Mistakes::Refused } else { Mistakes::Told };
            let workspace = this.open(location.clone(), settings.clone(), mistakes)?;
            // Reading all of a protected directory takes long, and the user does not mean it as a workspace before it
            // has a checkpoint.
            let is_protected = match purpose {
                Purpose::Save => true,
                Purpose::Scan => !workspace.has_store()?,
                Purpose::Look | Purpose::Restore => false,
            };
            if is_protected {
                workspace.refuse_protected(&this.environment.protected_places())?;
            }
            Ok(workspace)
        });
        Served { open, options_at, stores }
    }

    fn open(&self, location: Location, settings: Settings, mistakes: Mistakes) -> Result<Workspace, Error> {
        let own = match settings.clone().with_workspace(&location.root) {
            Err(error @ Error::Settings { .. }) if mistakes == Mistakes::Told => {
                self.output.warn(&format!("{error}; the file is ignored until that is corrected"));
                settings.clone()
            }
            own => own?,
        };
        Ok(Workspace::new(location, self.workspace_options(&settings, own)))
    }

    fn workspace_options(&self, user: &Settings, settings: Settings) -> Options {
        let new_stores = || Arc::new(OpenStores::new(user.stores.cache_size));
        Options {
            own_directories: self.environment.own_directories(user),
            settings,
            git: self.environment.git().clone(),
            patience: self.patience(),
            open_stores: Some(self.open_stores.clone().unwrap_or_else(new_stores)),
            boot_clock: BootClock::of_system(),
            watcher: self.environment.watcher_use(),
            change_source: None,
        }
    }

    /// Returns the options of the workspace at this root. Errors in its own settings file are reported when that
    /// workspace is opened.
    pub(crate) fn options_at(&self, user: &Settings, root: &Path) -> Options {
        let own = user.clone().with_workspace(root).unwrap_or_else(|_| user.clone());
        self.workspace_options(user, own)
    }

    fn locate(&self) -> Result<(Location, Settings), Failure> {
        let settings = self.environment.user_settings()?;
        Ok((self.locate_with(&settings)?, settings))
    }

    fn locate_with(&self, settings: &Settings) -> Result<Location, Failure> {
        let options = |root: &Path| self.options_at(settings, root);
        let start = match &self.options.workspace {
            Some(named) => Start::At(self.environment.absolute(named)?),
            None => Start::Around(self.environment.current_directory()?.to_owned(), OptionsOf(&options)),
        };
        let store = self.options.store.as_ref().map(|store| self.environment.absolute(store)).transpose()?;
        let stores = match &store {
            Some(_) => PathBuf::new(),
            None => self.environment.stores(settings)?,
        };
        Ok(locate(&start, &stores, store.as_deref())?)
    }

    /// Returns the workspace for a command that explains the settings. Unreadable settings are reported in the result,
    /// and the settings of the level below are used instead.
    pub(crate) fn survey(&self) -> Result<Survey, Failure> {
        let mut problems = Vec::new();
        let defaults = Settings::default();
        let user = self.environment.user_settings().unwrap_or_else(|problem| {
            problems.push(problem);
            defaults.clone()
        });
        let location = self.locate_with(&user)?;
        let settings = user.clone().with_workspace(&location.root).unwrap_or_else(|problem| {
            problems.push(problem.into());
            user.clone()
        });
        let workspace = Workspace::new(location.clone(), self.workspace_options(&user, settings));
        let protected = workspace.refuse_protected(&self.environment.protected_places()).err();
        Ok(Survey { workspace, location, defaults, user, problems, protected })
    }

    /// Returns the location of the workspace and its store, whether they are usable or not.
    pub(crate) fn location(&self) -> Result<Location, Failure> {
        Ok(self.locate()?.0)
    }

    /// Returns the directory from `-w`, or else the current one, as a workspace. Ignores workspaces around it.
    pub(crate) fn workspace_right_here(&self) -> Result<Workspace, Failure> {
        let named = self.options.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
        let here = Self { options: GlobalOptions { workspace: Some(named), ..self.options.clone() }, ..self.clone() };
        let (location, settings) = here.locate()?;
        Ok(self.open(location, settings, Mistakes::Told)?)
    }

    /// Returns the directory that contains the stores.
    pub(crate) fn stores(&self) -> Result<PathBuf, Failure> {
        self.environment.stores(&self.environment.user_settings()?)
    }

    /// Returns the maximum time to wait for another process.
    pub(crate) fn patience(&self) -> Duration {
        self.options.patience()
    }

    /// Returns the environment of the process.
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Returns the user's own settings.
    pub(crate) fn user_settings(&self) -> Result<Settings, Failure> {
        self.environment.user_settings()
    }

    /// Returns whether a program of this name can be run in this directory.
    pub(crate) fn has_program(&self, name: &str, directory: &Path) -> bool {
        self.environment.has_program(name, directory)
    }

    /// Returns the token that clients of the MCP server must send. Returns `None` if the environment has none.
    pub(crate) fn mcp_token(&self) -> Option<&OsStr> {
        self.environment.mcp_token()
    }

    /// Returns the path of the user's own settings file, whether it exists or not.
    pub(crate) fn user_settings_file(&self) -> Option<&Path> {
        self.environment.settings_file()
    }

    fn tell_where(&self, location: &Location, workspace: &Workspace) {
        self.tell_of_former(location);
        let Ok(here) = self.environment.current_directory() else { return };
        if here != location.root {
            self.output.note(&format!("in {}", location.root.display()));
        }
        let root = location.root.display();
        if self.options.workspace.is_none() && is_skipped(workspace, here) {
            self.output
                .warn(&format!("{} is skipped by the workspace {root}: no checkpoint captures it", here.display()));
        } else if let Some(repository) = &location.nearer_repository {
            let repository = repository.display();
            self.output.warn(&format!(
                "{repository} has its own .git, but belongs to the workspace {root}; to separate it, use -w . there"
            ));
        }
    }

    /// Tells the user about an older history if the workspace has none of its own.
    fn tell_of_former(&self, location: &Location) {
        if let Some(former) = &location.former {
            self.output.warn(&former.notice(&location.root));
        }
    }

    /// Resolves a word that names a checkpoint.
    pub(crate) fn checkpoint(&self, workspace: &Workspace, word: &str) -> Result<CheckpointId, Failure> {
        let resolved = workspace.resolve(word, &self.now.for_address(word));
        resolved.map_err(|error| self.explain_word(workspace, word, error))
    }

    /// Resolves `FROM..TO`. Returns `None` if the word is not a range. `session` selects the session of `turn:N`.
    pub(crate) fn range(
        &self,
        workspace: &Workspace,
        word: &str,
        session: Option<&str>,
    ) -> Result<Option<Range>, Failure> {
        let resolved = workspace.resolve_range(word, session, &self.now.for_address(word));
        resolved.map_err(|error| self.explain_word(workspace, word, error))
    }

    /// Converts the error for a word that names no checkpoint. Adds a hint if there is a specific one.
    fn explain_word(&self, workspace: &Workspace, word: &str, error: Error) -> Failure {
        let is_unknown = matches!(error, Error::UnknownCheckpoint { .. } | Error::MalformedAddress { .. });
        let hint = if is_unknown { self.meant(workspace, word) } else { None };
        let failure = Failure::from(error);
        match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }

    /// Returns a specific hint for a word that names no checkpoint. Returns `None` if there is none.
    fn meant(&self, workspace: &Workspace, word: &str) -> Option<String> {
        // Only the hint depends on this: an unreadable store is reported elsewhere.
        if workspace.current().ok()?.is_none() && !word.contains(':') {
            return Some(NOTHING_SAVED.to_owned());
        }
        if word.starts_with("turn:") {
            return Some("see the prompts with their numbers: backtrail list --turns".to_owned());
        }
        if parse_duration(word).is_ok() {
            return Some(format!("for a duration, write: ago:{word}"));
        }
        let is_time = word.contains([':', '-', ' ']);
        let quoted = shell_words([format!("at:{word}")]);
        (is_time && parse_since(word, &self.now).is_some()).then(|| format!("for a time, write: {quoted}"))
    }

    /// Like [`Self::checkpoint`], for a word that may be a path by mistake. Then the hint suggests the command `meant`,
    /// followed by that path and `more`.
    pub(crate) fn checkpoint_not_path(
        &self,
        workspace: &Workspace,
        word: &str,
        meant: &str,
        more: &[PathBuf],
    ) -> Result<CheckpointId, Failure> {
        match self.checkpoint(workspace, word) {
            Err(failure) if failure.code() == ErrorCode::UnknownCheckpoint && self.is_path(workspace, word) => {
                let paths = std::iter::once(Path::new(word)).chain(more.iter().map(PathBuf::as_path));
                let paths = paths.map(shell_path).collect::<Vec<_>>().join(" ");
                Err(failure.with_hint(format!("for a path, run: backtrail {meant} {paths}")))
            }
            found => found,
        }
    }

    /// Returns whether the word names a file on disk, or in the checkpoint that the workspace stands on.
    fn is_path(&self, workspace: &Workspace, word: &str) -> bool {
        let Ok(path) = self.path(workspace, Path::new(word)) else { return false };
        let is_on_disk = self.file(Path::new(word)).is_ok_and(|file| file.symlink_metadata().is_ok());
        // Only the hint depends on this: an unreadable path counts as not captured.
        let is_held = || workspace.current().ok()?.map(|id| workspace.holds(&id, &path).unwrap_or(false));
        !path.is_root() && (is_on_disk || is_held() == Some(true))
    }

    /// Converts a path from the user to a path inside the workspace.
    pub(crate) fn path(&self, workspace: &Workspace, named: &Path) -> Result<WorkspacePath, Failure> {
        let start = if named.is_absolute() { Path::new("/") } else { self.environment.current_directory()? };
        Ok(workspace.path_from(start, named)?)
    }

    /// Returns the scope of these paths, or the whole workspace if there are none.
    pub(crate) fn scope(&self, workspace: &Workspace, named: &[PathBuf]) -> Result<Scope, Failure> {
        if named.is_empty() {
            return Ok(Scope::Whole);
        }
        let paths = named.iter().map(|path| self.path(workspace, path)).collect::<Result<_, _>>()?;
        Ok(Scope::of_paths(paths))
    }

    /// Like [`Self::path`], but refuses a path that exists neither on disk nor in any checkpoint.
    pub(crate) fn known_path(&self, workspace: &Workspace, named: &Path) -> Result<WorkspacePath, Failure> {
        let path = self.path(workspace, named)?;
        let is_on_disk = self.file(named).is_ok_and(|file| file.symlink_metadata().is_ok());
        if !is_on_disk {
            let known = workspace.refuse_unknown_path(&path);
            known.map_err(|error| self.explain_path(workspace, error.into(), named))?;
        }
        Ok(path)
    }

    /// Like [`Self::scope`], but refuses a path that exists neither on disk nor in any checkpoint.
    pub(crate) fn known_scope(&self, workspace: &Workspace, named: &[PathBuf]) -> Result<Scope, Failure> {
        named.iter().try_for_each(|named| self.known_path(workspace, named).map(drop))?;
        self.scope(workspace, named)
    }

    /// Adds a hint to a failure whose cause may be a pattern instead of a path, a symlink in the path, or a mistake in
    /// its spelling.
    pub(crate) fn explain_path(&self, workspace: &Workspace, failure: Failure, named: &Path) -> Failure {
        let unknown = failure.unknown_path().cloned();
        let Some(unknown) = unknown.filter(|path| self.path(workspace, named).is_ok_and(|named| named == *path)) else {
            return failure;
        };
        if named.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte)) {
            let pattern = shell_path(named);
            let way =
                format!("to select by a pattern: backtrail list --glob {pattern}, or backtrail diff --glob {pattern}");
            return failure.with_hint(format!("paths are taken literally, not as patterns; {way}"));
        }
        if named.is_relative() && named.ancestors().skip(1).any(|above| self.is_link(above)) {
            return failure.with_hint("symbolic links are not followed: give the path without them");
        }
        // Only the hint depends on this: without a suggestion, the usual hint is given.
        let nearest = workspace.nearest_path(&unknown).ok().flatten();
        match nearest.and_then(|nearest| self.as_named(workspace, &nearest)) {
            Some(nearest) => failure.with_hint(format!("did you mean {}?", shell_path(&nearest))),
            None => failure,
        }
    }

    /// Returns a path inside the workspace as the user would write it from the current directory. Returns `None` if it
    /// is not below that.
    fn as_named(&self, workspace: &Workspace, path: &WorkspacePath) -> Option<PathBuf> {
        let absolute = workspace.root().join(OsStr::from_bytes(path.as_bytes()));
        let here = self.environment.current_directory().ok()?;
        Some(absolute.strip_prefix(here).map_or_else(|_| absolute.clone(), Path::to_owned))
    }

    fn is_link(&self, named: &Path) -> bool {
        let metadata = self.environment.absolute(named).ok().and_then(|path| path.symlink_metadata().ok());
        metadata.is_some_and(|metadata| metadata.is_symlink())
    }

    /// Parses a duration before now, or a time.
    pub(crate) fn moment(&self, text: &str) -> Result<Timestamp, Failure> {
        parse_since(text, &self.now).ok_or_else(|| Failure::usage(problem_of_since(text), Some(RULE_OF_SINCE)))
    }

    /// Parses a duration before now, or the last moment that a time covers.
    pub(crate) fn moment_at_end(&self, text: &str) -> Result<Timestamp, Failure> {
        parse_end(text, &self.now).ok_or_else(|| Failure::usage(problem_of_since(text), Some(RULE_OF_SINCE)))
    }

    /// Returns the absolute path of a file that the user named, inside the workspace or not.
    pub(crate) fn file(&self, named: &Path) -> Result<PathBuf, Failure> {
        self.environment.absolute(named)
    }
}

/// Returns whether checkpoints of the workspace skip a directory in it. Returns `false` on errors, because this is only
/// for a warning.
pub(crate) fn is_skipped(workspace: &Workspace, directory: &Path) -> bool {
    let inside = workspace.path_from(Path::new("/"), directory);
    inside.and_then(|path| workspace.skips(&path)).unwrap_or(false)
}

/// The hint for a workspace without checkpoints.
pub(crate) const NOTHING_SAVED: &str = "nothing saved yet; take the first checkpoint with: backtrail save";
