//! Making the new files ready, on the same mount as the paths that they are for.

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
    refused::{Attempt, refusal_in},
};
use crate::{
    disk::{self, Dir, FileType, Listed, private, set_mode, set_owner},
    error::{Error, Result, While},
    files,
    model::{Conflict, Mode, Side, WorkspacePath},
    store::{Area, Layout, ObjectReader, Step, Store, Writer},
    threads,
    workspace::Workspace,
};

/// So many files are made ready one after the other.
pub(super) const FEW: usize = 32;

/// More files than this are made durable with one call for the whole file system, which also waits for what others wrote.
pub(super) const MANY: usize = 1_000;

/// What to do with a directory that is there where a staging area goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfThere {
    /// It is somebody else's.
    Fail,
    /// It is that of the restore which was interrupted.
    Use,
}

/// When a file that is made ready becomes durable.
#[derive(Debug, Clone, Copy)]
pub(super) enum Durability {
    /// As soon as it is written.
    Synced,
    /// With all the others.
    Later,
}

/// The staging areas of one restore, open.
pub(super) struct Stage {
    pub(super) areas: Vec<Area>,
    /// None where the mount that it was on is gone.
    directories: Vec<Option<Dir>>,
}

impl Stage {
    pub(super) fn directories(&self) -> impl Iterator<Item = &Dir> {
        self.directories.iter().flatten()
    }

    /// A step's area; none where it is gone with the mount that it was on.
    pub(super) fn find(&self, step: &Step) -> Result<Option<&Dir>> {
        let missing = || Error::Internal("a step without a staging area".into());
        self.directories.get(step.area).map(Option::as_ref).ok_or_else(missing)
    }

    /// The areas that could be opened, and those that could not.
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

/// The name of a step's file in its area.
pub(super) fn slot(number: usize) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// Where old files go on file systems that can't exchange two names: one name for each time that the step was tried, in
/// one direction or the other.
pub(super) fn old_slots(number: usize) -> impl Iterator<Item = Vec<u8>> {
    let name = move |turn: usize| if turn == 0 { format!("{number}.old") } else { format!("{number}.old.{turn}") };
    (0..).map(move |turn| name(turn).into_bytes())
}

/// The steps that need a file or link made ready, with their numbers.
fn staged(steps: &[Step]) -> Vec<(usize, &Step)> {
    steps.iter().enumerate().filter(|(_, step)| step.puts_leaf()).collect()
}

impl Workspace {
    /// Makes every new file and link ready, not yet durable; reads and checks every object on the way.
    pub(super) fn stage(&self, writer: &Writer, plan: &mut RestorePlan, sequence: u64) -> Result<Stage> {
        let areas = self.choose_areas(writer, &mut plan.steps, sequence)?;
        if areas.iter().any(|area| matches!(area, Area::Workspace { .. })) {
            // Beside those that could not be cleared.
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
            self.make_area(writer.layout(), area, IfThere::Fail)?;
        }
        let stage = self.open_stage(writer, areas.to_vec())?;
        self.fill(writer, &plan.steps, &stage)?;
        Ok(stage)
    }

    /// Nothing has been touched yet; what was made ready is swept, now or by the next writer.
    pub(super) fn give_up_stage(&self, writer: &Writer, areas: &[Area], error: Error) -> Error {
        drop(self.clear_stage(writer, areas));
        error
    }

    /// Makes what is ready durable while `act` does something else that waits for the disk; both are done when this ends.
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
        let open = |area: &Area| self.open_area(writer.layout(), area).map(Some);
        let directories = areas.iter().map(open).collect::<Result<_>>()?;
        Ok(Stage { areas, directories })
    }

    /// Opens the areas of a restore that was interrupted; one whose mount is gone by now, or lets nobody in, is left out.
    pub(super) fn open_stage_again(&self, writer: &Writer, areas: &[Area]) -> Result<Stage> {
        let open = |area: &Area| {
            let open = || {
                let made = self.make_area(writer.layout(), area, IfThere::Use);
                made.and_then(|()| self.open_area(writer.layout(), area))
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

    /// Finds a place for each step's file that it can be renamed from: in the store, or at the top of its mount.
    fn choose_areas(&self, writer: &Writer, steps: &mut [Step], sequence: u64) -> Result<Vec<Area>> {
        let layout = writer.layout();
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
                    areas.push(Area::Workspace { parent: top, name: files::new_staging_area() });
                    areas.len() - 1
                })
            };
            by_parent.insert(parent, step.area);
        }
        Ok(areas)
    }

    /// The directory at a path, or the nearest one above it that exists.
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

    /// The topmost directory of the workspace from which a rename reaches this one.
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
                    files::mark(&directory.open_dir(name.as_bytes())?)
                };
                directory.while_open(make).or_fail("create", path)
            }
        }
    }

    fn fill(&self, store: &Store, steps: &[Step], stage: &Stage) -> Result<()> {
        let staged = staged(steps);
        let durability = if staged.len() <= FEW { Durability::Synced } else { Durability::Later };
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

    /// Makes the files durable, each by itself; false where one can't be opened for that, as its own mode forbids it.
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

    /// Makes the file or link of one step ready.
    pub(super) fn stage_one(
        &self,
        store: &Store,
        reader: &mut ObjectReader,
        number: usize,
        step: &Step,
        stage: &Stage,
        durability: Durability,
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
                    Durability::Synced => directory.sync_own(&file).or_fail("sync", &path),
                    Durability::Later => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Owner first, then permission bits: a change of owner takes some of them away.
    fn dress(&self, step: &Step, file: &File, mode: Mode) -> io::Result<()> {
        let owner = self.new_owner(&step.path);
        if let Some((user, group)) = owner {
            set_owner(file, user, group)?;
        }
        set_mode(file, if owner.is_some() { mode.without_identity() } else { mode })
    }

    /// Who root gives a new file or link to, where that is somebody else.
    fn new_owner(&self, path: &WorkspacePath) -> Option<(u32, u32)> {
        let own = own_identity();
        self.owner_for(path).filter(|owner| own.0 == 0 && *owner != own)
    }

    /// Who a restored file should belong to: whoever has the one in its place, else the directory.
    fn owner_for(&self, path: &WorkspacePath) -> Option<(u32, u32)> {
        let (directory, reached) = self.nearest_directory(&path.parent()?).ok()?;
        if Some(reached) == path.parent()
            && let Ok(owner) = directory.owner_at(path.name())
        {
            return Some(owner);
        }
        directory.owner().ok()
    }

    /// Empties and removes the areas. Only files of the program's own are in them by now; a directory that somebody put
    /// there is none of them, and stays.
    /// One on a mount that can't be written by now stays noted, and stops nobody.
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

    /// What lies in an area that can't be opened was not looked at: it is cleared by nobody, and told where it is still
    /// there.
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
                Some(Conflict { path: parent.join(name.as_bytes()), reason, kept: None })
            }
            _ => None,
        });
        Ok(told.collect())
    }

    fn clear_area(&self, writer: &Writer, area: &Area) -> Result<()> {
        let path = self.area_path(writer.layout(), area);
        let parent = match area {
            Area::Store { .. } => open_if_there(&writer.layout().stage())?,
            Area::Workspace { parent, .. } => self.open_existing(parent)?,
        };
        let Some(parent) = parent else { return Ok(()) };
        let (Area::Store { name } | Area::Workspace { name, .. }) = area;
        let directory = match parent.open_dir(name.as_bytes()) {
            Ok(directory) => directory,
            Err(error) if is_absence(&error) => return Ok(()),
            // Root was killed before it could give it away, and so before anything was in it.
            Err(error) if is_refused(&error) && parent.remove_dir(name.as_bytes()).is_ok() => return Ok(()),
            Err(error) => return Err(error).or_fail("clear", path),
        };
        let is_directory = |name: &[u8]| match directory.try_stamp_at(name) {
            Ok(stamp) => stamp.is_some_and(|stamp| FileType::of(&stamp) == FileType::Directory),
            Err(_) => false,
        };
        let all = directory.list().or_fail("clear", &path)?;
        // It was noted, but never made, and somebody has a directory of that name.
        if matches!(area, Area::Workspace { .. }) && !all.is_empty() && !files::is_marked(&directory) {
            return Ok(());
        }
        let (foreign, listed): (Vec<_>, Vec<_>) = all.into_iter().partition(|listed| match listed.file_type {
            Some(file_type) => file_type == FileType::Directory,
            None => is_directory(&listed.name),
        });
        let remove = |listed: &Listed| directory.remove_own_file(&listed.name).or_fail("clear", &path);
        // The mark goes last: without it, what is left would be the user's.
        let (marks, listed): (Vec<_>, Vec<_>) = listed.into_iter().partition(|listed| files::is_mark(&listed.name));
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

/// Who this process is: user and group.
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
