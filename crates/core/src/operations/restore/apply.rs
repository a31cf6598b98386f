//! Carries out a journal, path by path, below the root, through directory handles.
//!
//! The same code applies a new journal and finishes an interrupted one: each step looks at what is there and does what
//! is left to do. Files and symlinks are only moved or exchanged, never written in place. Directories are created and
//! removed one by one.

use std::{collections::BTreeSet, io, path::PathBuf};

use jiff::Timestamp;
use rustix::io::Errno;

use super::{
    check::is_absence,
    retry_policy::{Attempt, refusal},
    stage::{FEW, MANY, Stage, StageDurability, old_slots, own_identity, slot},
};
use crate::{
    disk::{self, Dir, FileType, Rename, set_mode},
    error::{Error, Result, While},
    model::{Conflict, ContentId, ContentSink, Contents, Mode, Side, Stamp, WorkspacePath},
    store::{HashOnly, Journal, OpenJournal, Step, Writer},
    threads,
    workspace::Workspace,
};

/// The reason why a step was not done.
enum Obstacle {
    /// Another process changed something here in the meantime: the step is skipped, and reported.
    Interference(&'static str),
    /// The system refused: the whole restore is taken back. If taking it back, or finishing it, is refused too, the
    /// step is skipped.
    Refusal(io::Error),
    /// The new content can't be read: the whole restore is taken back.
    Failure(Error),
}

impl From<io::Error> for Obstacle {
    fn from(error: io::Error) -> Self {
        let meddling = [Errno::NOTDIR, Errno::LOOP, Errno::NOENT, Errno::EXIST, Errno::NOTEMPTY, Errno::ISDIR];
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            // Nothing with such a name is there, and nothing can be created there.
            Some(Errno::NAMETOOLONG) => Self::Interference("its name is longer than the file system takes"),
            Some(code) if meddling.contains(&code) => Self::Interference("somebody changed it in the meantime"),
            _ => Self::Refusal(error),
        }
    }
}

impl From<Error> for Obstacle {
    fn from(error: Error) -> Self {
        Self::Failure(error)
    }
}

type Done = std::result::Result<(), Obstacle>;

impl Workspace {
    /// Carries out the steps. Returns the steps that were skipped, as conflicts.
    pub(super) fn apply_journal(
        &self,
        writer: &Writer,
        journal: &OpenJournal,
        stage: &Stage,
        attempt: Attempt,
        now: Timestamp,
    ) -> Result<Vec<Conflict>> {
        let journal = journal.journal();
        let root = Dir::open_resolved(self.root()).or_fail("open", self.root())?;
        let run = Run { workspace: self, writer, journal, stage, attempt, root, conflicts: Vec::new() };
        let mut conflicts = run.all()?;
        conflicts.extend(self.apply_git(writer, journal, attempt, now)?);
        Ok(conflicts)
    }
}

struct Run<'a> {
    workspace: &'a Workspace,
    writer: &'a Writer,
    journal: &'a Journal,
    stage: &'a Stage,
    attempt: Attempt,
    root: Dir,
    conflicts: Vec<Conflict>,
}

impl Run<'_> {
    fn all(mut self) -> Result<Vec<Conflict>> {
        let journal = self.journal;
        let steps: Vec<(usize, &Step)> = journal.steps.iter().enumerate().collect();
        // Sorted by path: a parent comes before the paths below it.
        let parents_first = || steps.iter().copied();
        let children_first = || steps.iter().rev().copied();
        self.each(parents_first(), concerns_directory, Self::open_up)?;
        self.each(children_first(), |step| step.takes_leaf() && !step.puts_leaf(), Self::set_aside)?;
        self.each(children_first(), Step::takes_directory, Self::remove_directory)?;
        self.each(parents_first(), Step::puts_directory, Self::make_directory)?;
        self.each(parents_first(), Step::puts_directory, Self::give_directory_away)?;
        self.each(parents_first(), Step::puts_leaf, Self::put)?;
        self.each(parents_first(), |step| step.in_place, Self::set_file_mode)?;
        self.each(children_first(), concerns_directory, Self::set_directory_mode)?;
        self.sync()?;
        Ok(self.conflicts)
    }

    fn each<'s>(
        &mut self,
        steps: impl Iterator<Item = (usize, &'s Step)>,
        concerns: impl Fn(&Step) -> bool,
        act: impl Fn(&Self, usize, &Step) -> Done,
    ) -> Result<()> {
        for (number, step) in steps.filter(|(_, step)| concerns(step)) {
            let refused = |obstacle: &Obstacle| match obstacle {
                Obstacle::Refusal(source) => refusal(source),
                _ => None,
            };
            match self.attempt.insist(|| act(self, number, step), refused) {
                Ok(()) => {}
                Err(Obstacle::Interference(reason)) => self.leave(step, reason.to_owned(), None),
                Err(Obstacle::Refusal(source)) => match refusal(&source).filter(|_| self.attempt == Attempt::Again) {
                    Some(why) => self.leave_refused(step, why),
                    None => return Err(source).or_fail("restore", self.full_path(&step.path)),
                },
                Err(Obstacle::Failure(error)) => return Err(error),
            }
        }
        Ok(())
    }

    fn leave(&mut self, step: &Step, reason: String, kept: Option<ContentId>) {
        if !self.conflicts.iter().any(|conflict| conflict.path == step.path) {
            self.conflicts.push(Conflict { kept, ..Conflict::new(step.path.clone(), reason) });
        }
    }

    /// Skips a step that the system refused. The file from before the restore may be in the staging area, which is
    /// cleared: the safety checkpoint has it.
    fn leave_refused(&mut self, step: &Step, why: &str) {
        let before = if self.journal.taken_back { step.new } else { step.old };
        let kept = before.and_then(|side| side.content());
        let reason = match kept {
            Some(_) => {
                format!("{why}; what it was before the restore is in checkpoint {}", self.journal.safety.id().short())
            }
            None => why.to_owned(),
        };
        self.leave(step, reason, kept);
    }

    fn full_path(&self, path: &WorkspacePath) -> PathBuf {
        self.workspace.root().join(path.to_text().as_ref())
    }

    /// Returns the directory that holds a path, reached from the root through real directories alone.
    fn parent(&self, path: &WorkspacePath) -> io::Result<Dir> {
        self.root.try_clone()?.open_below(path.parent_bytes())
    }

    /// Makes a directory writable while names in it change, or while it is removed, if its permissions forbid that. A
    /// new directory may be there from an earlier attempt, with its final permissions already.
    fn open_up(&self, _: usize, step: &Step) -> Done {
        self.remove_what_root_left(step);
        let opened = if step.path.is_root() {
            self.root.open_up_itself().map(drop)
        } else {
            self.parent(&step.path).and_then(|parent| parent.open_up(step.path.name())).map(drop)
        };
        match opened {
            Err(error) if is_absence(&error) && !is_directory_kept(step) => Ok(()),
            opened => Ok(opened?),
        }
    }

    /// Removes a directory that root could not give to its owner before root's process was killed. Nothing was in it by
    /// then: it is created again.
    fn remove_what_root_left(&self, step: &Step) {
        if self.attempt == Attempt::Again
            && step.puts_directory()
            && own_identity().0 != 0
            && let Ok(parent) = self.parent(&step.path)
            && parent.owner_at(step.path.name()).is_ok_and(|owner| owner.0 == 0)
        {
            drop(parent.remove_dir(step.path.name()));
        }
    }

    /// Moves a file or symlink that has to go into the staging area. Nothing is deleted.
    fn set_aside(&self, number: usize, step: &Step) -> Done {
        let parent = match self.parent(&step.path) {
            // The directory is gone, and the entry with it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        let name = step.path.name();
        let Some(stamp) = parent.try_stamp_at(name)? else { return Ok(()) };
        match FileType::of(&stamp) {
            FileType::Directory if step.new.is_some_and(|new| new.is_directory()) => return Ok(()),
            FileType::Directory => return Err(Obstacle::Interference("a directory has taken its place")),
            FileType::Special => return Err(Obstacle::Interference("a special file has taken its place")),
            FileType::File | FileType::Symlink => {}
        }
        if self.attempt == Attempt::Again && !self.is_as(&parent, name, &stamp, step.old.as_ref())? {
            return Err(Obstacle::Interference("somebody put something else there"));
        }
        self.move_out(&parent, name, self.area(step)?, &slot(number))
    }

    fn move_out(&self, parent: &Dir, name: &[u8], area: &Dir, slot: &[u8]) -> Done {
        match parent.rename(name, area, slot, Rename::NoReplace) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        }
        // Another process may have replaced it by a directory between the check and the move.
        if FileType::of(&area.stamp_at(slot)?) == FileType::Directory {
            area.rename(slot, parent, name, Rename::NoReplace)?;
            return Err(Obstacle::Interference("a directory has taken its place"));
        }
        Ok(())
    }

    fn remove_directory(&self, _: usize, step: &Step) -> Done {
        let parent = match self.parent(&step.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        match parent.try_stamp_at(step.path.name())? {
            None => Ok(()),
            Some(stamp) if FileType::of(&stamp) == FileType::Directory => {
                parent.remove_dir(step.path.name()).map_err(|error| match error.kind() {
                    io::ErrorKind::DirectoryNotEmpty => Obstacle::Interference("something is in it by now"),
                    _ => error.into(),
                })
            }
            // The file or symlink that replaces it is there already, or another process created one.
            Some(_) => Ok(()),
        }
    }

    fn make_directory(&self, number: usize, step: &Step) -> Done {
        let parent = self.parent(&step.path)?;
        match parent.make_dir(step.path.name(), Mode(0o700)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let stamp = parent.stamp_at(step.path.name())?;
                if FileType::of(&stamp) == FileType::Directory {
                    Ok(())
                } else {
                    Err(Obstacle::Interference("something else has taken its place"))
                }
            }
            made => {
                made?;
                self.give_directory_away(number, step)
            }
        }
    }

    /// Gives a directory that root created in another user's directory to that user. It is recognised by its owner
    /// alone, so that it is found again after an interruption.
    fn give_directory_away(&self, _: usize, step: &Step) -> Done {
        let own = own_identity();
        if own.0 != 0 {
            return Ok(());
        }
        let (parent, name) = (self.parent(&step.path)?, step.path.name());
        let owner = parent.owner()?;
        if owner.0 != own.0 && parent.owner_at(name)?.0 == own.0 && parent.open_dir(name).is_ok() {
            parent.set_owner_at(name, owner.0, owner.1)?;
        }
        Ok(())
    }

    /// Puts the new file or symlink at a path.
    fn put(&self, number: usize, step: &Step) -> Done {
        let parent = self.parent(&step.path)?;
        let present = parent.try_stamp_at(step.path.name())?;
        if self.attempt == Attempt::Again {
            if let Some(stamp) = &present {
                if self.is_as(&parent, step.path.name(), stamp, step.new.as_ref())? {
                    return Ok(());
                }
                if step.takes_leaf() && !self.is_as(&parent, step.path.name(), stamp, step.old.as_ref())? {
                    return Err(Obstacle::Interference("it holds neither what it was nor what it becomes"));
                }
            }
            self.make_ready(number, step)?;
        }
        match present {
            None => Ok(move_in(self.area(step)?, &slot(number), &parent, step.path.name())?),
            Some(stamp) => self.replace(number, step, &parent, &stamp),
        }
    }

    /// Replaces the present entry by exchanging it with the staged file, so that one or the other is always there.
    fn replace(&self, number: usize, step: &Step, parent: &Dir, present: &Stamp) -> Done {
        let name = step.path.name();
        let area = self.area(step)?;
        match FileType::of(present) {
            FileType::Directory => return Err(Obstacle::Interference("a directory has taken its place")),
            FileType::Special => return Err(Obstacle::Interference("a special file has taken its place")),
            FileType::File | FileType::Symlink => {}
        }
        if !step.takes_leaf() {
            // Nothing was expected here: another process created it, unless it equals what the restore wants.
            if self.is_as(parent, name, present, step.new.as_ref())? {
                return Ok(());
            }
            return Err(Obstacle::Interference("somebody made it in the meantime"));
        }
        match area.rename(&slot(number), parent, name, Rename::Exchange) {
            Err(error) if is_unsupported(&error) => {
                self.move_out(parent, name, area, &free_old_slot(area, number)?)?;
                return Ok(move_in(area, &slot(number), parent, name)?);
            }
            other => other?,
        }
        let came_out = FileType::of(&area.stamp_at(&slot(number))?);
        if !matches!(came_out, FileType::File | FileType::Symlink) {
            area.rename(&slot(number), parent, name, Rename::Exchange)?;
            return Err(Obstacle::Interference("something else has taken its place"));
        }
        Ok(())
    }

    fn area(&self, step: &Step) -> std::result::Result<&Dir, Obstacle> {
        self.stage.find(step)?.ok_or(Obstacle::Interference("the mount that it was on is gone"))
    }

    /// Ensures that the slot holds the new file, as it did before the interruption.
    fn make_ready(&self, number: usize, step: &Step) -> Done {
        let area = self.area(step)?;
        if let Some(stamp) = area.try_stamp_at(&slot(number))? {
            if self.is_as(area, &slot(number), &stamp, step.new.as_ref())? {
                return Ok(());
            }
            // It may be what an exchange moved out of the workspace: it is examined once all steps are done.
            area.rename(&slot(number), area, &free_old_slot(area, number)?, Rename::NoReplace)?;
        }
        let mut reader = self.writer.store().reader();
        let made = self.workspace.stage_one(
            self.writer.store(),
            &mut reader,
            number,
            step,
            self.stage,
            StageDurability::Synced,
        );
        made.map_err(|error| match error {
            // The error concerns the workspace, not the store.
            Error::Io { path, source, .. } if path == self.full_path(&step.path) => Obstacle::Refusal(source),
            other => other.into(),
        })
    }

    fn set_file_mode(&self, _: usize, step: &Step) -> Done {
        let (Some(Side::File { mode, content }), name) = (step.new, step.path.name()) else { return Ok(()) };
        let parent = self.parent(&step.path)?;
        let stamp = parent.stamp_at(name)?;
        let is_same_file = FileType::of(&stamp) == FileType::File
            && stamp.links == 1
            && content_of(&parent, name, &stamp)? == Some(content);
        if !is_same_file {
            return Err(Obstacle::Interference("somebody changed it in the meantime"));
        }
        if !has_mode(&parent, name, &stamp, mode)? {
            let is_own = parent.owner_at(name)?.0 == own_identity().0;
            let mode = if is_own { mode } else { mode.without_identity() };
            set_mode(&parent.open_closed_file(name)?, mode)?;
        }
        Ok(())
    }

    fn set_directory_mode(&self, _: usize, step: &Step) -> Done {
        if step.path.is_root() {
            return close(&self.root, step);
        }
        let directory = self.parent(&step.path).and_then(|parent| parent.open_dir(step.path.name()));
        match directory {
            Err(error) if is_absence(&error) && !step.new.is_some_and(|new| new.is_directory()) => Ok(()),
            directory => close(&directory?, step),
        }
    }

    /// Returns whether the present entry is exactly this one.
    fn is_as(&self, parent: &Dir, name: &[u8], stamp: &Stamp, side: Option<&Side>) -> io::Result<bool> {
        let Some(side) = side else { return Ok(false) };
        let fits = match (side, FileType::of(stamp)) {
            (Side::File { mode, .. }, FileType::File) => has_mode(parent, name, stamp, *mode)?,
            (Side::Symlink { .. }, FileType::Symlink) => true,
            _ => false,
        };
        Ok(fits && content_of(parent, name, stamp)? == side.content())
    }

    /// Makes the new names durable.
    fn sync(&self) -> Result<()> {
        let mut parents = BTreeSet::new();
        for step in &self.journal.steps {
            parents.insert(step.path.parent().unwrap_or_default());
            if step.new.is_some_and(|new| new.is_directory()) {
                parents.insert(step.path.clone());
            }
        }
        if parents.len() > MANY {
            let mut synced = disk::sync_filesystem(&self.root);
            for area in self.stage.directories() {
                synced = synced.and_then(|()| disk::sync_filesystem(area));
            }
            return synced.or_fail("sync", self.workspace.root());
        }
        let sync = |path: &WorkspacePath| match self.workspace.open_existing(path) {
            Ok(Some(directory)) => match directory.sync() {
                Err(error) if self.attempt == Attempt::Again && refusal(&error).is_some() => Ok(()),
                synced => synced.or_fail("sync", self.full_path(path)),
            },
            Ok(None) => Ok(()),
            // The directory has its restrictive permissions back, and can't even be opened.
            Err(error) if is_refusal(&error) => disk::sync_filesystem(&self.root).or_fail("sync", self.full_path(path)),
            Err(error) => Err(error),
        };
        let parents: Vec<WorkspacePath> = parents.into_iter().collect();
        if parents.len() <= FEW { parents.iter().try_for_each(sync) } else { threads::wait_for_each(&parents, sync) }
    }
}

/// Returns whether a file has these permission bits, as far as it may. Another user's file never gets set-user-ID or
/// set-group-ID bits.
fn has_mode(parent: &Dir, name: &[u8], stamp: &Stamp, mode: Mode) -> io::Result<bool> {
    let present = Mode::from_raw(stamp.mode);
    Ok(present == mode || (present == mode.without_identity() && parent.owner_at(name)?.0 != own_identity().0))
}

/// Returns an unused name for an old file.
fn free_old_slot(area: &Dir, number: usize) -> io::Result<Vec<u8>> {
    for name in old_slots(number) {
        if area.try_stamp_at(&name)?.is_none() {
            return Ok(name);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn concerns_directory(step: &Step) -> bool {
    [step.old, step.new].into_iter().flatten().any(|side| side.is_directory())
}

/// Sets the permission bits of a directory: those of the plan, or its own if it should have been removed and could not
/// be.
fn close(directory: &Dir, step: &Step) -> Done {
    let present = Mode::from_raw(directory.stamp()?.mode);
    let mode = match (step.new, step.old) {
        (Some(Side::Directory { mode }), _) => mode,
        (_, Some(Side::Directory { mode })) if present == Mode(mode.0 | 0o700) => mode,
        _ => return Ok(()),
    };
    if present != mode {
        directory.set_own_mode(mode)?;
    }
    Ok(())
}

fn is_directory_kept(step: &Step) -> bool {
    step.old.is_some_and(|old| old.is_directory()) && step.new.is_some_and(|new| new.is_directory())
}

fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied)
}

fn is_unsupported(error: &io::Error) -> bool {
    let codes = [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP];
    error.raw_os_error().is_some_and(|code| codes.contains(&Errno::from_raw_os_error(code)))
}

fn move_in(area: &Dir, slot: &[u8], parent: &Dir, name: &[u8]) -> io::Result<()> {
    area.rename(slot, parent, name, Rename::NoReplace)
}

/// Returns the id of the current content of a file or symlink. Returns `None` if it changed while it was read.
pub(super) fn content_of(parent: &Dir, name: &[u8], stamp: &Stamp) -> io::Result<Option<ContentId>> {
    match FileType::of(stamp) {
        FileType::Symlink => HashOnly.put(Contents::Whole(&parent.read_link(name)?)),
        FileType::File => {
            let file = parent.open_closed_file(name)?;
            let bytes = file.metadata()?.len();
            HashOnly.put(Contents::Stream { file: &file, bytes })
        }
        _ => Ok(None),
    }
}
