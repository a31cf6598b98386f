//! Adds to `[scan] exclude` in the workspace's own settings, and keeps the rest of the file as it is.

mod edit;
mod pattern;

use std::path::{Path, PathBuf};

use jiff::Timestamp;

pub(crate) use self::edit::with_patterns;
use crate::{
    disk::{
        Dir, FileType, Rename,
        lock::{FileLock, LockError},
    },
    error::{Error, Result, While},
    settings::{Settings, WORKSPACE_FILE},
    spans::{Outcome, operation, write_span},
    store::Writer,
    workspace::Workspace,
};

impl Workspace {
    /// Forgets patterns that the owner excluded and that `backtrail.toml` no longer has. A pattern that
    /// is written there later may be an agent's.
    pub(crate) fn retire_excludes(&self, writer: &Writer) -> Result<()> {
        if writer.store().confirmed_excludes()?.is_empty() {
            return Ok(());
        }
        let present = Settings::default().with_workspace(self.root()).map(|settings| settings.scan.exclude);
        writer.retain_excludes(&present.unwrap_or_default())
    }

    /// Adds ignore patterns. Returns the file that has them, and all patterns that it has now.
    ///
    /// A pattern that is a path, because it starts with `./` or with the workspace's own path, is taken from `current`.
    pub fn exclude(&self, current: &Path, patterns: &[String], now: Timestamp) -> Result<(PathBuf, Vec<String>)> {
        let span = write_span!(self.store_directory(), "exclude", patterns);
        let done = operation(&span, || self.exclude_now(current, patterns, now))?;
        Outcome::on(&span).count("patterns", done.1.len());
        Ok(done)
    }

    fn exclude_now(&self, current: &Path, patterns: &[String], now: Timestamp) -> Result<(PathBuf, Vec<String>)> {
        let meant = patterns.iter().map(|pattern| {
            let meant = pattern::meant(self, current, pattern);
            meant.map_err(|problem| Error::Usage(format!("{pattern:?} can't match anything: {problem}")))
        });
        let patterns = meant.collect::<Result<Vec<_>>>()?;
        let _alone = self.lock_settings()?;
        // A restore writes this file like any other: an interrupted restore is finished first.
        let writer = if self.has_store()? { Some(self.writer(now)?.0) } else { None };
        let path = self.root().join(WORKSPACE_FILE);
        let problem = |problem: String| Error::Settings { file: path.clone(), problem };
        let before = self.read_settings_text()?;
        let (after, all) = with_patterns(&before, &patterns).map_err(problem)?;
        if after != before {
            self.write_settings_text(&after)?;
        }
        // Last: a pattern that is only in the file does not end the capture of anything.
        if let Some(writer) = writer {
            writer.confirm_excludes(&patterns)?;
        }
        Ok((path, all))
    }

    /// Prevents other processes from adding patterns at the same time, even if there is no store whose lock could do
    /// that.
    fn lock_settings(&self) -> Result<Option<FileLock>> {
        let (path, patience) = (self.root().to_owned(), self.patience());
        match FileLock::acquire_directory(&path, patience) {
            Ok(lock) => Ok(Some(lock)),
            // On a file system without locks, the file is written without one: there, too, it is replaced in one step.
            Err(LockError::Unsupported) => Ok(None),
            Err(LockError::Busy) => Err(Error::Busy { path, seconds: patience.as_secs() }),
            Err(LockError::Io(source)) => Err(Error::Io { action: "lock", path, source }),
        }
    }

    fn read_settings_text(&self) -> Result<String> {
        let path = self.root().join(WORKSPACE_FILE);
        let directory = Dir::open_resolved(self.root()).or_fail("open", self.root())?;
        let name = WORKSPACE_FILE.as_bytes();
        match directory.try_stamp_at(name).or_fail("read", &path)? {
            None => return Ok(String::new()),
            Some(stamp) if FileType::of(&stamp) == FileType::File => {}
            Some(stamp) if FileType::of(&stamp) == FileType::Symlink => {
                let problem = "it is a symbolic link; add the pattern to the file that it points to".into();
                return Err(Error::Settings { file: path, problem });
            }
            Some(_) => return Err(Error::Settings { file: path, problem: "it is not a regular file".into() }),
        }
        let mut text = String::new();
        let read = directory.open_file(name).and_then(|mut file| std::io::Read::read_to_string(&mut file, &mut text));
        read.or_fail("read", path)?;
        Ok(text)
    }

    /// Replaces the file in one step: a reader sees the old or the new one.
    fn write_settings_text(&self, text: &str) -> Result<()> {
        let path = self.root().join(WORKSPACE_FILE);
        let directory = Dir::open_resolved(self.root()).or_fail("open", self.root())?;
        let (name, temporary) = (WORKSPACE_FILE.as_bytes(), b".backtrail.toml.new");
        let write = || -> std::io::Result<()> {
            if directory.try_stamp_at(temporary)?.is_some() {
                directory.remove_own_file(temporary)?;
            }
            let mut file = directory.create_own_file(temporary)?;
            directory.write_own(&mut file, text.as_bytes())?;
            let mode = match directory.try_stamp_at(name)? {
                Some(stamp) => crate::model::Mode::from_raw(stamp.mode),
                None => crate::model::Mode(0o644),
            };
            crate::disk::set_mode(&file, mode)?;
            directory.sync_own(&file)?;
            if directory.try_stamp_at(name)?.is_some() {
                directory.rename(temporary, &directory, name, Rename::Exchange)?;
                directory.remove_own_file(temporary)?;
            } else {
                directory.rename(temporary, &directory, name, Rename::NoReplace)?;
            }
            directory.sync()
        };
        write().or_fail("write", path)
    }
}
