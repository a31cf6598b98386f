//! Creates the new files in staging areas, on the same mount as the paths that they are for.

use std::{
    collections::HashMap,
    fs::File,
    io,
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use rayon::prelude::*;

use super::{
    RestorePlan,
    check::is_absence,
    retry_policy::{Attempt, refusal_in},
};
use crate::{
    disk::{self, Dir, FileType, Listed, private, set_mode, set_owner},
    error::{Error, Result, While},
    model::{Conflict, Mode, Side, WorkspacePath},
    scan,
    store::{Area, Layout, ObjectReader, Step, Store, Writer},
    threads,
    workspace::Workspace,
};

/// Up to this number, files are staged one after the other.
pub(super) const FEW: usize = 32;

/// Above this number, files are made durable with one call for the whole file system. That call also waits for the
/// writes of other processes.
pub(super) const MANY: usize = 1_000;

/// The treatment of a directory that exists at the path of a staging area.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfThere {
    /// It belongs to another process or the user.
    Fail,
    /// It belongs to the restore that was interrupted.
    Use,
}

/// The moment at which a staged file becomes durable.
#[derive(Debug, Clone, Copy)]
pub(super) enum StageDurability {
    /// As soon as it is written.
    Synced,
    /// Together with all other files.
    Later,
}

/// The open staging areas of one restore.
pub(super) struct Stage {
    pub(super) areas: Vec<Area>,
    /// `None` for an area that can't be opened, for instance because its mount is gone.
    directories: Vec<Option<Dir>>,
}

impl Stage {
    pub(super) fn directories(&self) -> impl Iterator<Item = &Dir> {
        self.directories.iter().flatten()
    }

    /// Returns a step's area. Returns `None` if it can't be opened, for instance because its mount is gone.
    pub(super) fn find(&self, step: &Step) -> Result<Option<&Dir>> {
        let missing = || Error::Internal("a step without a staging area".into());
        self.directories.get(step.area).map(Option::as_ref).ok_or_else(missing)
    }

    /// Returns the areas that could be opened, and those that could not.
    pub(super) fn opened_and_not(&self) -> (Vec<Area>, Vec<Area>) {
        let is_open = |(_, directory): &(&Area, &Option<Dir>)| directory.is_some();
        let (opened, not): (Vec<_>, Vec<_>) = self.areas.iter().zip(&self.directories).partition(is_open);
        let areas = |found: Vec<(&Area, _)>| found.into_iter().map(|(area, _)| area.clone()).collect();
        (areas(opened), areas(not))
    }

    pub(super) fn directory(&self, step: &Step) -> Result<&Dir> {
        self.find(step)?.ok_or_else(|| Error::Internal("a staging area that is gone".into()))
    }
}

/// Returns the name of a step's file in its area.
pub(super) fn slot(number: usize) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// Returns the names for old files on file systems that can't exchange two names. Each attempt at a step, in either
/// direction, uses another one.
pub(super) fn old_slots(number: usize) -> impl Iterator<Item = Vec<u8>> {
    let name = move |turn: usize| if turn == 0 { format!("{number}.old") } else { format!("{number}.old.{turn}") };
    (0..).map(move |turn| name(turn).into_bytes())
}

/// Returns the steps that need a staged file or symlink, with their numbers.
fn staged(steps: &[Step]) -> Vec<(usize, &Step)> {
    steps.iter().enumerate().filter(|(_, step)| step.puts_leaf()).collect()
}

impl Workspace {
    /// Stages every new file and symlink. They are not durable yet. Reads and checks every object on the way.
    pub(super) fn stage(&self, writer: &Writer, plan: &mut RestorePlan, sequence: u64) -> Result<Stage> {
        let areas = self.choose_areas(writer, &mut plan.steps, sequence)?;
        if areas.iter().any(|area| matches!(area, Area::Workspace { .. })) {
            // Areas that could not be cleared stay noted.
            let mut noted = writer.leftover_areas()?;
            noted.retain(|area| matches!(area, Area::Workspace { .. }));
            noted.extend(areas.iter().cloned());
            writer.note_areas(&noted)?;
        }
        let ready = self.make_stage(writer, plan, &areas);
        ready.map_err(|error| self.give_up_stage(writer, &areas, error))
    }

    fn make_stage(&self, writer: &Writer, plan: &RestorePlan, areas: &[Area]) -> Result<Stage> {
        for area in areas {
            self.make_area(writer.store().layout(), area, IfThere::Fail)?;
        }
        let stage = self.open_stage(writer, areas.to_vec())?;
        self.fill(writer.store(), &plan.steps, &stage)?;
        Ok(stage)
    }

    /// Clears the staging areas after an error, and returns that error. Nothing in the workspace was touched yet. If
    /// clearing fails, the next writer does it.
    pub(super) fn give_up_stage(&self, writer: &Writer, areas: &[Area], error: Error) -> Error {
        drop(self.clear_stage(writer, areas));
        error
    }

    /// Makes the staged files durable while `act` does something else that waits for the disk. Both are done when this
    /// returns.
    pub(super) fn sync_stage_during<T>(
        &self,
        writer: &Writer,
        plan: &RestorePlan,
        stage: &Stage,
        act: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let staged = staged(&plan.steps);
        let done = if staged.len() <= FEW {
            self.sync_stage(&staged, stage).and_then(|()| act())
        } else {
            let (acted, synced) = threads::beside(act, || self.sync_stage(&staged, stage));
            synced.and(acted)
        };
        done.map_err(|error| self.give_up_stage(writer, &stage.areas, error))
    }

    fn open_stage(&self, writer: &Writer, areas: Vec<Area>) -> Result<Stage> {
        let open = |area: &Area| self.open_area(writer.store().layout(), area).map(Some);
        let directories = areas.iter().map(open).collect::<Result<_>>()?;
        Ok(Stage { areas, directories })
    }

    /// Opens the areas of an interrupted restore. Skips an area whose mount is gone by now, or can't be accessed.
    pub(super) fn open_stage_again(&self, writer: &Writer, areas: &[Area]) -> Result<Stage> {
        let open = |area: &Area| {
            let open = || {
                let made = self.make_area(writer.store().layout(), area, IfThere::Use);
                made.and_then(|()| self.open_area(writer.store().layout(), area))
            };
            match (Attempt::Again.insist(open, refusal_in), area) {
                (Err(error), Area::Workspace { .. }) if refusal_in(&error).is_some() => Ok(None),
                (Err(Error::NotADirectory { .. }), Area::Workspace { .. }) => Ok(None),
                (Err(Error::Io { source, .. }), Area::Workspace { .. }) if is_absence(&source) => Ok(None),
                (opened, _) => opened.map(Some),
            }
        };
        let directories = areas.iter().map(open).collect::<Result<_>>()?;
        Ok(Stage { areas: areas.to_vec(), directories })
    }

    fn open_area(&self, layout: &Layout, area: &Area) -> Result<Dir> {
        let path = self.area_path(layout, area);
        match area {
            Area::Store { .. } => Dir::open(&path).or_fail("open", path),
            Area::Workspace { parent, name } => {
                let directory = self.open_existing(parent)?;
                let directory = directory.ok_or_else(|| Error::NotADirectory { path: path.clone() })?;
                directory.open_dir(name.as_bytes()).or_fail("open", path)
            }
        }
    }

    fn area_path(&self, layout: &Layout, area: &Area) -> std::path::PathBuf {
        match area {
            Area::Store { name } => layout.stage().join(name),
            Area::Workspace { parent, name } => self.root().join(parent.to_text().as_ref()).join(name),
        }
    }

    /// Finds an area for each step from which its file can be renamed: in the store, or at the top of its mount.
    fn choose_areas(&self, writer: &Writer, steps: &mut [Step], sequence: u64) -> Result<Vec<Area>> {
        let layout = writer.store().layout();
        private::make_directories(&layout.stage()).or_fail("create", layout.stage())?;
        let store = Dir::open(&layout.stage()).or_fail("open", layout.stage())?;
        let mut areas = vec![Area::Store { name: format!("{sequence}") }];
        let mut by_parent: HashMap<WorkspacePath, usize> = HashMap::new();
        let mut by_mount: HashMap<WorkspacePath, usize> = HashMap::new();
        for step in steps.iter_mut() {
            let parent = step.path.parent().unwrap_or_default();
            if let Some(known) = by_parent.get(&parent) {
                step.area = *known;
                continue;
            }
            let (directory, path) = self.nearest_directory(&parent)?;
            step.area = if store.can_rename_to(&directory) {
                0
            } else {
                let top = self.mount_top(&directory, path)?;
                *by_mount.entry(top.clone()).or_insert_with(|| {
                    areas.push(Area::Workspace { parent: top, name: scan::new_staging_area() });
                    areas.len() - 1
                })
            };
            by_parent.insert(parent, step.area);
        }
        Ok(areas)
    }

    /// Returns the directory at a path, or the nearest one above it that exists.
    fn nearest_directory(&self, path: &WorkspacePath) -> Result<(Dir, WorkspacePath)> {
        let mut directory = Dir::open_resolved(self.root()).or_fail("open", self.root())?;
        let mut reached = WorkspacePath::root();
        for part in path.parts() {
            match directory.open_dir(part) {
                Ok(below) => directory = below,
                Err(error) if is_absence(&error) => break,
                Err(error) => {
                    return Err(error).or_fail("open", self.root().join(reached.join(part).to_text().as_ref()));
                }
            }
            reached = reached.join(part);
        }
        Ok((directory, reached))
    }

    /// Returns the topmost directory of the workspace from which a rename reaches this one.
    fn mount_top(&self, directory: &Dir, path: WorkspacePath) -> Result<WorkspacePath> {
        let mut top = path;
        while let Some(parent) = top.parent() {
            let above = self.open_existing(&parent)?;
            if !above.is_some_and(|above| above.can_rename_to(directory)) {
                break;
            }
            top = parent;
        }
        Ok(top)
    }

    fn make_area(&self, layout: &Layout, area: &Area, if_there: IfThere) -> Result<()> {
        let path = self.area_path(layout, area);
        match area {
            Area::Store { .. } => private::make_directories(&path).or_fail("create", path),
            Area::Workspace { parent, name } => {
                let directory = self.open_existing(parent)?;
                let directory = directory.ok_or_else(|| Error::NotADirectory { path: path.clone() })?;
                let make = || -> io::Result<()> {
                    if if_there == IfThere::Fail || directory.try_stamp_at(name.as_bytes())?.is_none() {
                        directory.make_own_dir(name.as_bytes())?;
                    }
                    scan::mark(&directory.open_dir(name.as_bytes())?)
                };
                directory.while_open(make).or_fail("create", path)
            }
        }
    }

    fn fill(&self, store: &Store, steps: &[Step], stage: &Stage) -> Result<()> {
        let staged = staged(steps);
        let durability = if staged.len() <= FEW { StageDurability::Synced } else { StageDurability::Later };
        let fill_one = |reader: &mut ObjectReader, (number, step): &(usize, &Step)| {
            self.stage_one(store, reader, *number, step, stage, durability)
        };
        if staged.len() <= FEW {
            let mut reader = store.reader();
            staged.iter().try_for_each(|item| fill_one(&mut reader, item))
        } else {
            threads::shared(|| staged.par_iter().try_for_each_init(|| store.reader(), fill_one))
        }
    }

    fn sync_stage(&self, staged: &[(usize, &Step)], stage: &Stage) -> Result<()> {
        let is_synced = staged.len() <= FEW || (staged.len() <= MANY && self.sync_staged(staged, stage)?);
        for directory in stage.directories() {
            let synced = if is_synced { directory.sync() } else { disk::sync_filesystem(directory) };
            synced.or_fail("sync", self.root())?;
        }
        Ok(())
    }

    /// Makes the files durable one by one. Returns `false` if one can't be opened for that because its own permissions
    /// forbid it.
    fn sync_staged(&self, staged: &[(usize, &Step)], stage: &Stage) -> Result<bool> {
        let files: Vec<_> = staged.iter().filter(|(_, step)| matches!(step.new, Some(Side::File { .. }))).collect();
        let is_refused = AtomicBool::new(false);
        threads::wait_for_each(&files, |(number, step)| {
            let directory = stage.directory(step)?;
            match directory.open_file(&slot(*number)) {
                Ok(file) => directory.sync_own(&file).or_fail("sync", self.root()),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    is_refused.store(true, Ordering::Relaxed);
                    Ok(())
                }
                Err(error) => Err(error).or_fail("open", self.root()),
            }
        })?;
        Ok(!is_refused.into_inner())
    }

    /// Stages the file or symlink of one step.
    pub(super) fn stage_one(
        &self,
        store: &Store,
        reader: &mut ObjectReader,
        number: usize,
        step: &Step,
        stage: &Stage,
        durability: StageDurability,
    ) -> Result<()> {
        let directory = stage.directory(step)?;
        let name = slot(number);
        let path = self.root().join(step.path.to_text().as_ref());
        match step.new {
            Some(Side::Symlink { target }) => {
                let target = store.content(reader, &target)?;
                directory.create_symlink(&target, &name).or_fail("make ready", &path)?;
                match self.new_owner(&step.path) {
                    Some((user, group)) => directory.set_owner_at(&name, user, group).or_fail("make ready", &path),
                    None => Ok(()),
                }
            }
            Some(Side::File { content, mode }) => {
                let mut file = directory.create_file(&name).or_fail("make ready", &path)?;
                let mut length = 0;
                let mut write = |piece: &[u8]| {
                    length += piece.len() as u64;
                    directory.write_own(&mut file, piece)
                };
                store.copy_content(&content, &mut write)?.or_fail("make ready", &path)?;
                private::check_length(&file, length).or_fail("make ready", &path)?;
                self.dress(step, &file, mode).or_fail("make ready", &path)?;
                match durability {
                    StageDurability::Synced => directory.sync_own(&file).or_fail("sync", &path),
                    StageDurability::Later => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Sets the owner first, then the permission bits: a change of owner clears some of them.
    fn dress(&self, step: &Step, file: &File, mode: Mode) -> io::Result<()> {
        let owner = self.new_owner(&step.path);
        if let Some((user, group)) = owner {
            set_owner(file, user, group)?;
        }
        set_mode(file, if owner.is_some() { mode.without_identity() } else { mode })
    }

    /// Returns the owner to whom root gives a new file or symlink, if that is another user.
    fn new_owner(&self, path: &WorkspacePath) -> Option<(u32, u32)> {
        let own = own_identity();
        self.owner_for(path).filter(|owner| own.0 == 0 && *owner != own)
    }

    /// Returns the owner that a restored file should have: the owner of the file in its place, else of the directory.
    fn owner_for(&self, path: &WorkspacePath) -> Option<(u32, u32)> {
        let (directory, reached) = self.nearest_directory(&path.parent()?).ok()?;
        if Some(reached) == path.parent()
            && let Ok(owner) = directory.owner_at(path.name())
        {
            return Some(owner);
        }
        directory.owner().ok()
    }

    /// Empties and removes the areas. By now they hold only the program's own files. A directory that another process
    /// put there is not one of them, and stays. An area on a mount that can't be written by now stays noted, and is not
    /// an error.
    pub(super) fn clear_stage(&self, writer: &Writer, areas: &[Area]) -> Result<()> {
        let is_elsewhere = |area: &Area| matches!(area, Area::Workspace { .. });
        let noted: Vec<Area> = writer.leftover_areas()?.into_iter().filter(is_elsewhere).collect();
        let mut stuck: Vec<Area> = noted.iter().filter(|area| !areas.contains(area)).cloned().collect();
        for area in areas {
            match Attempt::Again.insist(|| self.clear_area(writer, area), refusal_in) {
                Err(error) if is_elsewhere(area) && refusal_in(&error).is_some() => stuck.push(area.clone()),
                cleared => cleared?,
            }
        }
        match stuck.is_empty() {
            true => writer.forget_areas(),
            false if stuck == noted => Ok(()),
            false => writer.note_areas(&stuck),
        }
    }

    /// Leaves areas alone that can't be opened: their contents were not examined, so they are never cleared. Reports
    /// those that still exist.
    pub(super) fn leave_unopened(&self, writer: &Writer, unopened: &[Area]) -> Result<Vec<Conflict>> {
        if unopened.is_empty() {
            return Ok(Vec::new());
        }
        let mut noted = writer.leftover_areas()?;
        noted.retain(|area| matches!(area, Area::Workspace { .. }) && !unopened.contains(area));
        writer.note_areas(&noted)?;
        let is_there = |parent: &WorkspacePath, name: &str| match self.open_existing(parent) {
            Ok(Some(directory)) => directory.try_stamp_at(name.as_bytes()).is_ok_and(|stamp| stamp.is_some()),
            Ok(None) => false,
            Err(_) => true,
        };
        let told = unopened.iter().filter_map(|area| match area {
            Area::Workspace { parent, name } if is_there(parent, name) => {
                let reason = "it can't be opened any more, and may hold files that the restore set aside".to_owned();
                Some(Conflict::new(parent.join(name.as_bytes()), reason))
            }
            _ => None,
        });
        Ok(told.collect())
    }

    fn clear_area(&self, writer: &Writer, area: &Area) -> Result<()> {
        let path = self.area_path(writer.store().layout(), area);
        let parent = match area {
            Area::Store { .. } => open_if_there(&writer.store().layout().stage())?,
            Area::Workspace { parent, .. } => self.open_existing(parent)?,
        };
        let Some(parent) = parent else { return Ok(()) };
        let (Area::Store { name } | Area::Workspace { name, .. }) = area;
        let directory = match parent.open_dir(name.as_bytes()) {
            Ok(directory) => directory,
            Err(error) if is_absence(&error) => return Ok(()),
            // Root's process was killed before it could give the directory away, and so before anything was in it.
            Err(error) if is_refused(&error) && parent.remove_dir(name.as_bytes()).is_ok() => return Ok(()),
            Err(error) => return Err(error).or_fail("clear", path),
        };
        let is_directory = |name: &[u8]| match directory.try_stamp_at(name) {
            Ok(stamp) => stamp.is_some_and(|stamp| FileType::of(&stamp) == FileType::Directory),
            Err(_) => false,
        };
        let all = directory.list().or_fail("clear", &path)?;
        // The area was noted, but never created, and the user has a directory of that name.
        if matches!(area, Area::Workspace { .. }) && !all.is_empty() && !scan::is_marked(&directory) {
            return Ok(());
        }
        let (foreign, listed): (Vec<_>, Vec<_>) = all.into_iter().partition(|listed| match listed.file_type {
            Some(file_type) => file_type == FileType::Directory,
            None => is_directory(&listed.name),
        });
        let remove = |listed: &Listed| directory.remove_own_file(&listed.name).or_fail("clear", &path);
        // The mark is removed last: without it, the remaining files would count as the user's.
        let (marks, listed): (Vec<_>, Vec<_>) = listed.into_iter().partition(|listed| scan::is_mark(&listed.name));
        if listed.len() <= FEW {
            listed.iter().try_for_each(remove)?;
        } else {
            threads::wait_for_each(&listed, remove)?;
        }
        marks.iter().try_for_each(remove)?;
        if !foreign.is_empty() {
            return Ok(());
        }
        parent.while_open(|| parent.remove_dir(name.as_bytes())).or_fail("clear", path)
    }
}

/// Returns the effective user and group of this process.
pub(super) fn own_identity() -> (u32, u32) {
    (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw())
}

fn open_if_there(path: &Path) -> Result<Option<Dir>> {
    match Dir::open(path) {
        Ok(directory) => Ok(Some(directory)),
        Err(error) if is_absence(&error) => Ok(None),
        Err(error) => Err(error).or_fail("open", path),
    }
}

fn is_refused(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}
