//! Moves the user repository back with the files, only on request: HEAD, its branch and the index.
//!
//! The move is part of the journal: the old and new contents of each file of the repository are in the state of the
//! safety checkpoint. So the move is finished or taken back like any other step.

use std::{
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use jiff::Timestamp;

use super::{
    Intent, Only,
    retry_policy::{Attempt, refusal_in},
};
use crate::{
    disk::git_file::{self, GitFile, Replaced},
    error::{Error, Result, While},
    model::{Conflict, ContentId, GitState, Scope, WorkspacePath},
    store::{Direction, ExactText, GitStep, Journal, NewGitFile, Store, TimelineEntry, Writer},
    user_git::{Destination, GitMove, Position, UserRepository},
    workspace::Workspace,
};

/// The parts of a safety checkpoint's state that `undo` needs.
const POSITION: &str = "position";
const INDEX: &str = "index";

/// Reasons why a move was not made.
const GONE: &str = "the git repository is gone or belongs to another directory, so it was not restored";
const HELD_BACK: &str = "not changed, because an earlier change to the repository failed";

impl Workspace {
    /// Returns the changes that a restore makes to the user repository, or `None` if it leaves it alone. An undo or
    /// redo goes on without a repository that is gone, and reports that.
    pub(super) fn plan_git(
        &self,
        store: &Store,
        target: &TimelineEntry,
        intent: &Intent,
        stays: &mut Vec<Conflict>,
    ) -> Result<Option<GitMove>> {
        let request = &intent.request;
        if !request.git {
            return Ok(None);
        }
        let none_here = || Error::GitState { reason: "there is no git repository here".into() };
        if intent.direction != Direction::Forward {
            let state = store.state(&target.id)?;
            let read = |name| state.git_file(&store.reader(), name).map_err(|problem| store.damaged(problem));
            let position = read(POSITION)?.and_then(|bytes| serde_json::from_slice::<Position>(&bytes).ok());
            // The operation being taken back left the repository alone.
            let Some(position) = position else { return Ok(None) };
            // Only a repository whose top is the workspace is ever moved. One around the workspace is another
            // repository.
            let repository = match self.repository_to_move()? {
                Some(repository) if repository.is_own()? => repository,
                _ => {
                    let path = WorkspacePath::new(b".git").unwrap_or_default();
                    stays.push(Conflict::new(path, GONE.to_owned()));
                    return Ok(None);
                }
            };
            return repository.plan_move(&Destination::Back(&position, read(INDEX)?));
        }
        let repository = self.user_repository().ok_or_else(none_here)?;
        if request.scope != Scope::Whole || request.only == Only::State {
            return Err(Error::Usage("git's HEAD and index can be restored only with the whole workspace".into()));
        }
        let Some(recorded) = target.record().and_then(|record| record.git.clone()) else {
            return Err(Error::GitState { reason: "there was no git repository when the checkpoint was taken".into() });
        };
        let recorded = GitState { commit: recorded.commit, branch: recorded.branch, ..GitState::default() };
        repository.plan_move(&Destination::Recorded(&recorded))
    }

    /// Carries out the git part of a journal. Files that another process changed in the meantime are skipped, and
    /// reported.
    pub(super) fn apply_git(
        &self,
        writer: &Writer,
        journal: &Journal,
        attempt: Attempt,
        now: Timestamp,
    ) -> Result<Vec<Conflict>> {
        let mut conflicts = Vec::new();
        if journal.git.is_empty() {
            return Ok(conflicts);
        }
        let mut is_short = false;
        let left = |error: &Error| refusal_in(error).filter(|_| attempt == Attempt::Again);
        let repository = match attempt.insist(|| self.repository_to_move(), refusal_in) {
            Err(error) if left(&error).is_some() => Err(left(&error).unwrap_or_default()),
            found => Ok(found?),
        };
        for step in &journal.git {
            let path = path_of(&step.path)?;
            // Commits are kept before their branch leaves them, and the index follows HEAD. On the way back, a commit
            // is released once its branch has it again.
            let is_held_back = is_short && (!journal.taken_back || step.new.is_none());
            let reason = match &repository {
                Err(why) => why,
                Ok(None) => GONE,
                Ok(Some(repository)) => match attempt.insist(|| repository.may_change(&path), refusal_in) {
                    Ok(false) => GONE,
                    Ok(true) if is_held_back => HELD_BACK,
                    Ok(true) => {
                        let change = || change(repository, writer, journal, step, &path);
                        match attempt.insist(change, refusal_in) {
                            Ok(Replaced::Done) => continue,
                            Ok(Replaced::Changed) => "another process changed it in the meantime",
                            Ok(Replaced::Locked) => "another git process has locked it",
                            Err(error) => left(&error).ok_or(error)?,
                        }
                    }
                    Err(error) => left(&error).ok_or(error)?,
                },
            };
            is_short |= step.new.is_some();
            conflicts.push(self.git_conflict(&path, reason));
        }
        if let (true, Ok(Some(repository))) = (conflicts.is_empty(), &repository) {
            note_in_logs(repository, journal, now);
        }
        Ok(conflicts)
    }

    /// Returns the conflict for a file of the repository. A linked work tree has its repository elsewhere: then the
    /// reason names the file.
    fn git_conflict(&self, path: &Path, reason: &str) -> Conflict {
        let below = path.strip_prefix(self.root()).ok().map(|below| below.as_os_str().as_bytes());
        let (shown, reason) = match below.and_then(|below| WorkspacePath::new(below).ok()) {
            Some(shown) => (shown, reason.to_owned()),
            None => (WorkspacePath::new(b".git").unwrap_or_default(), format!("{}: {reason}", path.display())),
        };
        Conflict::new(shown, reason)
    }

    /// Returns the position of the repository after a move, which may not have happened. Returns `None` if the
    /// repository is gone.
    pub(super) fn git_state_after(&self) -> Option<GitState> {
        let position = self.repository_to_move().ok().flatten()?.position();
        Some(GitState { commit: position.commit, branch: position.branch, ..GitState::default() })
    }

    /// Returns the repository to move, or `None` if it is gone. One that can't be read is an error.
    fn repository_to_move(&self) -> Result<Option<UserRepository>> {
        UserRepository::at(self.root()).or_fail("read", self.root().join(".git"))
    }
}

/// Appends to the reflogs, as git does. They are a convenience: a log that can't be written is skipped.
fn note_in_logs(repository: &UserRepository, journal: &Journal, now: Timestamp) {
    let what = if journal.taken_back { "taken back" } else { "restore" };
    for (path, old, new) in &journal.git_logs {
        let (old, new) = if journal.taken_back { (new, old) } else { (old, new) };
        let Some(path) = path_of(path).ok().filter(|path| repository.may_change(path).unwrap_or(false)) else {
            continue;
        };
        let seconds = now.as_second();
        let who = "Backtrail <backtrail@localhost>";
        let line = format!("{old} {new} {who} {seconds} +0000\tbacktrail: {what} {}\n", journal.target.short());
        drop(git_file::append_line(&path, &line));
    }
}

fn change(
    repository: &UserRepository,
    writer: &Writer,
    journal: &Journal,
    step: &GitStep,
    path: &Path,
) -> Result<Replaced> {
    let own = own_name(repository, journal, path);
    let file = GitFile { path, own: &own };
    let content =
        |id: Option<ContentId>| id.map(|id| writer.store().content(&writer.store().reader(), &id)).transpose();
    file.replace(content(step.old)?.as_deref(), content(step.new)?.as_deref()).or_fail("write", path)
}

/// Returns the path at which a file waits under a name of our own: beside HEAD, where git does not look for it. It is
/// the same forward and back, so that each direction finds what the other left.
fn own_name(repository: &UserRepository, journal: &Journal, path: &Path) -> PathBuf {
    let hash = xxhash_rust::xxh3::xxh3_64(path.as_os_str().as_bytes());
    repository.git_dir().join(format!("backtrail-{}-{hash:016x}", journal.sequence))
}

fn path_of(path: &ExactText) -> Result<PathBuf> {
    path.to_path().ok_or_else(|| Error::Internal("a path in the journal can't be read".into()))
}

/// Returns the files that a safety checkpoint keeps for a move, and the steps of the journal that name them.
pub(super) fn files_and_steps(git: &GitMove) -> Result<(Vec<NewGitFile>, Vec<GitStep>)> {
    let position = serde_json::to_vec(&git.before).map_err(|error| Error::Internal(error.to_string()))?;
    let mut files = vec![NewGitFile { name: POSITION.into(), bytes: position }];
    if let Some(index) = &git.index {
        files.push(NewGitFile { name: INDEX.into(), bytes: index.clone() });
    }
    let mut steps = Vec::new();
    for (number, edit) in git.edits.iter().enumerate() {
        let mut keep = |side: &str, bytes: &Option<Vec<u8>>| {
            let bytes = bytes.clone()?;
            let id = crate::store::content_id(&bytes);
            files.push(NewGitFile { name: format!("{number}-{side}"), bytes });
            id
        };
        let (old, new) = (keep("old", &edit.old), keep("new", &edit.new));
        steps.push(GitStep { path: ExactText::of_path(&edit.path), old, new });
    }
    Ok((files, steps))
}

/// Returns the lines for the reflogs.
pub(super) fn logs(git: &GitMove) -> Vec<(ExactText, String, String)> {
    git.logs.iter().map(|(path, old, new)| (ExactText::of_path(path), old.clone(), new.clone())).collect()
}
