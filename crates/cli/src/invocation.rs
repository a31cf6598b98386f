//! One run of the program: how it was called, and the workspace that this means.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use backtrail::{
    BootClock, CheckpointId, Error, ErrorCode, Event, Location, OpenStores, Options, OptionsOf, RULE_OF_SINCE, Scope,
    Settings, Start, Workspace, WorkspacePath, locate, parse_since, problem_of_since, settings::parse_duration,
};
use backtrail_server::{Opener, Purpose};
use jiff::Timestamp;

use crate::{
    cli::{Command, GlobalOptions},
    clock::Now,
    commands,
    failure::{self, Failure},
    output::{Output, conflict_warnings, shell_path},
    settings::Environment,
};

/// May a command take a directory that holds so much that nobody means it?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protection {
    /// No: it is refused.
    Kept,
    /// No, as long as the user does not insist.
    KeptUnlessForced,
    /// Yes: the user insists.
    Waived,
}

impl Protection {
    /// What `--force` says.
    pub(crate) fn unless(force: bool) -> Self {
        if force { Self::Waived } else { Self::KeptUnlessForced }
    }
}

/// What becomes of mistakes in the workspace's own settings file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistakes {
    /// The command ends there.
    Refused,
    /// They are told, and the file counts for nothing.
    Told,
}

/// What to do about a protected directory, for a command that can be made to take it.
const INSIST: &str = "name a directory below it with -w DIR, or insist with --force";

/// One run of the program.
#[derive(Clone)]
pub(crate) struct Invocation {
    options: GlobalOptions,
    environment: Environment,
    /// Where everything is printed.
    pub(crate) output: Output,
    /// What now and here are.
    pub(crate) now: Now,
}

/// A workspace, and what its settings are made of.
pub(crate) struct Survey {
    pub(crate) workspace: Workspace,
    pub(crate) location: Location,
    pub(crate) defaults: Settings,
    /// The defaults with the user's own file over them.
    pub(crate) user: Settings,
    /// Settings that can't be read.
    pub(crate) problems: Vec<Failure>,
    /// Why it is refused as a workspace, if it is.
    pub(crate) protected: Option<Error>,
}

impl Invocation {
    pub(crate) fn new(options: GlobalOptions, environment: Environment) -> Self {
        let output = Output::new(&options, environment.pager());
        Self { options, environment, output, now: Now::new() }
    }

    /// A run within this one, in another environment, that looks the same.
    pub(crate) fn elsewhere(&self, options: GlobalOptions, environment: Environment) -> Self {
        Self::new(GlobalOptions { color: self.options.color, ..options }, environment)
    }

    /// Runs a command and tells how it ended.
    pub(crate) fn run(&self, command: Option<Command>) -> ExitCode {
        commands::run(command, self).unwrap_or_else(|failure| failure::end(&failure, &self.output))
    }

    /// The workspace, for looking at.
    pub(crate) fn workspace(&self) -> Result<Workspace, Failure> {
        let (location, settings) = self.locate()?;
        self.tell_of_former(&location);
        let workspace = self.open(location, settings, Mistakes::Told)?;
        workspace.refuse_foreign_directory()?;
        if workspace.has_interrupted_restore()? {
            let finish = "finish it with: backtrail recover, or take it back with: backtrail recover --abort";
            self.output.warn(&format!("a restore was interrupted; {finish}"));
        }
        Ok(workspace)
    }

    /// The workspace, for looking at all of its files. A protected place that nobody took a checkpoint of is no workspace
    /// that anybody means, and reading all of it takes long.
    pub(crate) fn workspace_to_scan(&self) -> Result<Workspace, Failure> {
        let workspace = self.workspace()?;
        if !workspace.has_store()? {
            workspace.refuse_protected(&self.environment.protected_places()).map_err(|error| {
                let hint = "go to the directory of a project, or name it with -w DIR".to_owned();
                Failure::Hinted { error, hint }
            })?;
        }
        Ok(workspace)
    }

    /// The workspace, for a command that writes: says which one it is where that is not plain.
    pub(crate) fn workspace_to_write(&self, protection: Protection) -> Result<Workspace, Failure> {
        let workspace = self.workspace_for_writing(protection, Mistakes::Refused)?;
        if let Err(Error::FolderOfProjects { path }) = workspace.refuse_folder_of_projects() {
            let path = path.display();
            let apart = "to keep them apart, save in each of them";
            self.output.warn(&format!("{path} holds several projects, and all of them become one workspace; {apart}"));
        }
        Ok(workspace)
    }

    /// The workspace, for making its store: a folder of projects, too, where its owner says so.
    pub(crate) fn workspace_to_make(&self, protection: Protection) -> Result<Workspace, Failure> {
        self.workspace_for_writing(protection, Mistakes::Refused)
    }

    /// The workspace, for bringing files back: a settings file that something spoilt must not stand in the way.
    pub(crate) fn workspace_to_restore(&self) -> Result<Workspace, Failure> {
        self.workspace_for_writing(Protection::Waived, Mistakes::Told)
    }

    /// The workspace, for a checkpoint that nobody asks for: who spoils its settings file must not end the protection that
    /// it has. One that has none yet waits until the file is mended.
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

    /// Opens the workspace again and again, for a command that stays: the same one, with its settings as they are then.
    pub(crate) fn opener(&self) -> Result<Opener, Failure> {
        let (location, settings) = self.locate()?;
        self.tell_of_former(&location);
        let this = self.clone();
        Ok(Arc::new(move |purpose| {
            let mistakes = if purpose == Purpose::Save { Mistakes::Refused } else { Mistakes::Told };
            let workspace = this.open(location.clone(), settings.clone(), mistakes)?;
            // Reading all of a protected place takes long, and nobody means it before it has a checkpoint.
            let is_protected = match purpose {
                Purpose::Save => true,
                Purpose::Scan => !workspace.has_store()?,
                Purpose::Look | Purpose::Restore => false,
            };
            if is_protected {
                workspace.refuse_protected(&this.environment.protected_places())?;
            }
            Ok(workspace)
        }))
    }

    fn open(&self, location: Location, settings: Settings, mistakes: Mistakes) -> Result<Workspace, Error> {
        let own = match settings.clone().with_workspace(&location.root) {
            Err(error @ Error::Settings { .. }) if mistakes == Mistakes::Told => {
                self.output.warn(&format!("{error}; the file counts for nothing until that is mended"));
                settings.clone()
            }
            own => own?,
        };
        Ok(Workspace::new(location, self.workspace_options(&settings, own)))
    }

    fn workspace_options(&self, user: &Settings, settings: Settings) -> Options {
        Options {
            own_directories: self.environment.own_directories(user),
            settings,
            git: self.environment.git().clone(),
            patience: self.patience(),
            open_stores: Some(Arc::new(OpenStores::new(user.stores.cache_size))),
            boot_clock: BootClock::of_system(),
        }
    }

    fn locate(&self) -> Result<(Location, Settings), Failure> {
        let settings = self.environment.user_settings()?;
        Ok((self.locate_with(&settings)?, settings))
    }

    fn locate_with(&self, settings: &Settings) -> Result<Location, Failure> {
        let options = |root: &Path| {
            // Mistakes in it are told by whoever opens that workspace.
            let own = settings.clone().with_workspace(root).unwrap_or_else(|_| settings.clone());
            self.workspace_options(settings, own)
        };
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

    /// The workspace as far as it can be had, for a command that explains: settings that can't be read are replaced by
    /// those below them.
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

    /// The workspace and its store, whether they are usable or not.
    pub(crate) fn location(&self) -> Result<Location, Failure> {
        Ok(self.locate()?.0)
    }

    /// The directory that is named with `-w`, else the current one, as a workspace whatever lies around it.
    pub(crate) fn workspace_right_here(&self) -> Result<Workspace, Failure> {
        let named = self.options.workspace.clone().unwrap_or_else(|| PathBuf::from("."));
        let here = Self { options: GlobalOptions { workspace: Some(named), ..self.options.clone() }, ..self.clone() };
        let (location, settings) = here.locate()?;
        Ok(self.open(location, settings, Mistakes::Told)?)
    }

    /// The directory that holds the stores.
    pub(crate) fn stores(&self) -> Result<PathBuf, Failure> {
        self.environment.stores(&self.environment.user_settings()?)
    }

    /// How long to wait for another process.
    pub(crate) fn patience(&self) -> Duration {
        self.options.patience()
    }

    /// What the process found around it.
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The user's own settings.
    pub(crate) fn user_settings(&self) -> Result<Settings, Failure> {
        self.environment.user_settings()
    }

    /// Can a program of this name be run in this directory?
    pub(crate) fn has_program(&self, name: &str, directory: &Path) -> bool {
        self.environment.has_program(name, directory)
    }

    /// The token that clients of the MCP server must send, where the environment names one.
    pub(crate) fn mcp_token(&self) -> Option<&OsStr> {
        self.environment.mcp_token()
    }

    /// The user's own settings file, whether it exists or not.
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
                "{repository} has a .git of its own, but belongs to the workspace {root}; to keep it apart, use -w . there"
            ));
        }
    }

    /// Says where an older history is, while the workspace has none.
    fn tell_of_former(&self, location: &Location) {
        if let Some(former) = &location.former {
            self.output.warn(&former.notice(&location.root));
        }
    }

    /// The checkpoint that a word names.
    pub(crate) fn checkpoint(&self, workspace: &Workspace, word: &str) -> Result<CheckpointId, Failure> {
        workspace.resolve(word, &self.now.for_address(word)).map_err(|error| {
            let is_unknown = matches!(error, Error::UnknownCheckpoint { .. } | Error::MalformedAddress { .. });
            let hint = if is_unknown { self.meant(workspace, word) } else { None };
            let failure = Failure::from(error);
            match hint {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            }
        })
    }

    /// What to do about a word that names no checkpoint, where more is known than that.
    fn meant(&self, workspace: &Workspace, word: &str) -> Option<String> {
        // Only the hint depends on it: a store that can't be read is told of elsewhere.
        if workspace.current().ok()?.is_none() && !word.contains(':') {
            return Some(NOTHING_SAVED.to_owned());
        }
        if parse_duration(word).is_ok() {
            return Some(format!("that is a duration; perhaps: ago:{word}"));
        }
        let is_time = word.contains(':') || word.contains('-');
        (is_time && parse_since(word, &self.now).is_some()).then(|| format!("that is a time; perhaps: at:{word}"))
    }

    /// As [`Self::checkpoint`], for a word that may be a path by mistake: then `meant`, followed by that path and `more`, is
    /// the command to hint at.
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
                Err(failure.with_hint(format!("that is a path; perhaps: backtrail {meant} {paths}")))
            }
            found => found,
        }
    }

    /// Does it name something on disk, or in the checkpoint that the workspace stands on?
    fn is_path(&self, workspace: &Workspace, word: &str) -> bool {
        let Ok(path) = self.path(workspace, Path::new(word)) else { return false };
        let is_on_disk = self.file(Path::new(word)).is_ok_and(|file| file.symlink_metadata().is_ok());
        // Only the hint depends on it: what can't be read is not held.
        let is_held = || workspace.current().ok()?.map(|id| workspace.holds(&id, &path).unwrap_or(false));
        !path.is_root() && (is_on_disk || is_held() == Some(true))
    }

    /// A path that the user named, as one inside the workspace.
    pub(crate) fn path(&self, workspace: &Workspace, named: &Path) -> Result<WorkspacePath, Failure> {
        let start = if named.is_absolute() { Path::new("/") } else { self.environment.current_directory()? };
        Ok(workspace.path_from(start, named)?)
    }

    /// The part of the workspace that these paths name; all of it where there are none.
    pub(crate) fn scope(&self, workspace: &Workspace, named: &[PathBuf]) -> Result<Scope, Failure> {
        if named.is_empty() {
            return Ok(Scope::Whole);
        }
        let paths = named.iter().map(|path| self.path(workspace, path)).collect::<Result<_, _>>()?;
        Ok(Scope::of_paths(paths))
    }

    /// A failure that may be due to a pattern given for a path, or to a link on the way: says so.
    pub(crate) fn explain_path(&self, failure: Failure, named: &Path) -> Failure {
        let is_pattern = || named.as_os_str().as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte));
        if failure.code() == ErrorCode::UnknownPath && is_pattern() {
            let hint = "paths are taken by the letter, not as patterns: leave out the quotes, or name the directory";
            return failure.with_hint(hint);
        }
        let is_behind_link = || named.is_relative() && named.ancestors().skip(1).any(|above| self.is_link(above));
        if failure.code() == ErrorCode::UnknownPath && is_behind_link() {
            return failure.with_hint("links are not followed: name it by the path that it has without them");
        }
        failure
    }

    fn is_link(&self, named: &Path) -> bool {
        let metadata = self.environment.absolute(named).ok().and_then(|path| path.symlink_metadata().ok());
        metadata.is_some_and(|metadata| metadata.is_symlink())
    }

    /// A moment given as a duration up to now, or as a time.
    pub(crate) fn moment(&self, text: &str) -> Result<Timestamp, Failure> {
        parse_since(text, &self.now).ok_or_else(|| Failure::usage(problem_of_since(text), Some(RULE_OF_SINCE)))
    }

    /// A file that the user named, inside the workspace or not.
    pub(crate) fn file(&self, named: &Path) -> Result<PathBuf, Failure> {
        self.environment.absolute(named)
    }
}

/// Tells whether checkpoints of the workspace skip a directory in it; what can't be found out is not worth a warning.
pub(crate) fn is_skipped(workspace: &Workspace, directory: &Path) -> bool {
    let inside = workspace.path_from(Path::new("/"), directory);
    inside.and_then(|path| workspace.skips(&path)).unwrap_or(false)
}

/// What to do where there is no checkpoint yet.
pub(crate) const NOTHING_SAVED: &str = "nothing saved yet; take the first checkpoint with: backtrail save";
