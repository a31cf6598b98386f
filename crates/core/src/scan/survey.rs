//! Surveys the workspace: the names, sizes and times of everything on disk, captured or not.
//!
//! Reads no contents and applies no ignore rules. [`not_taken_back`](crate::operations::not_taken_back) compares two surveys.

use std::{
    io,
    path::Path,
    sync::atomic::{AtomicI64, Ordering},
    thread,
    time::Duration,
};

use bstr::BString;
use rayon::prelude::*;

use super::{
    rebuildable::is_rebuildable,
    walk::{MAX_DEPTH, join},
};
use crate::{
    disk::{self, Dir, FileType, Listed},
    error::{Error, Result, While},
    events::Progress,
    model::{Stamp, is_shortage},
    threads,
};

/// The number of files that one worker stats in a row. Checking a few costs less than handing them to another worker.
const FILES_IN_A_ROW: usize = 256;

/// The longest tick of the file system's clock.
const MAX_TICK: Duration = Duration::from_millis(20);

/// The names, sizes and times of everything in a workspace at one moment.
///
/// Git directories and the program's own directories are not in it.
#[derive(Debug)]
pub struct Survey {
    pub(crate) entries: Vec<Seen>,
}

/// One name on disk.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) name: BString,
    pub(crate) node: SeenNode,
}

#[derive(Debug)]
pub(crate) enum SeenNode {
    /// A file, a symlink, a special file, or a directory that was not listed.
    Entry(Stamp),
    /// A directory that was listed.
    Directory { mode: u32, reach: Reach, entries: Vec<Seen> },
}

/// The part of a directory that is surveyed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Everything below it.
    Whole,
    /// Its own names only: a tool can rebuild the directory.
    TopLevel,
}

/// The inputs of a survey.
pub(crate) struct SurveyOptions<'a> {
    /// Directories of the program itself, by device and inode.
    pub(crate) own: &'a [(u64, u64)],
    /// Set if rebuildable directories are captured. They are then surveyed like all others.
    pub(crate) capture_rebuildable: bool,
    /// An earlier survey. A directory in it is surveyed to the same depth as before, even if marks were added since.
    pub(crate) before: Option<&'a Survey>,
    pub(crate) progress: &'a Progress,
}

/// Surveys a workspace.
pub(crate) fn survey(root: &Path, options: &SurveyOptions<'_>) -> Result<Survey> {
    let walker = SurveyWalker { options, newest: AtomicI64::new(i64::MIN) };
    let walk = || {
        let directory = Dir::open_resolved(root)?;
        let before = options.before.map(|before| before.entries.as_slice());
        walker.entries(&directory, b"", Reach::Whole, before)
    };
    let found = threads::for_trees(walk);
    if options.progress.is_stopped() {
        return Err(Error::Stopped);
    }
    let entries = found.or_fail("survey", root)?;
    wait_until_after(walker.newest.into_inner());
    Ok(Survey { entries })
}

/// Waits until any later change gets a later time than `newest`. Without this, a change within the same tick of the
/// file system's clock could go unnoticed.
fn wait_until_after(newest: i64) {
    const STEP: Duration = Duration::from_millis(1);
    let mut waited = Duration::ZERO;
    while disk::coarse_now() <= newest && waited < MAX_TICK {
        thread::sleep(STEP);
        waited += STEP;
    }
}

struct SurveyWalker<'a> {
    options: &'a SurveyOptions<'a>,
    /// The newest change time of all entries.
    newest: AtomicI64,
}

impl SurveyWalker<'_> {
    fn entries(&self, directory: &Dir, path: &[u8], reach: Reach, before: Option<&[Seen]>) -> io::Result<Vec<Seen>> {
        if self.options.progress.is_stopped() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut listed = directory.list()?;
        listed.retain(|listed| listed.name != ".git");
        let is_file = |listed: &Listed| listed.file_type.is_some_and(|file_type| file_type != FileType::Directory);
        let (files, others): (Vec<Listed>, Vec<Listed>) = listed.into_iter().partition(is_file);
        let file = |listed: Listed| self.file(directory, listed.name).transpose();
        let other = |listed: Listed| self.entry(directory, path, listed.name, reach, before).transpose();
        let files = files.into_par_iter().with_min_len(FILES_IN_A_ROW).filter_map(file);
        let mut seen = files.collect::<io::Result<Vec<Seen>>>()?;
        seen.extend(others.into_par_iter().filter_map(other).collect::<io::Result<Vec<Seen>>>()?);
        seen.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(seen)
    }

    /// Returns `None` if the name is gone.
    fn file(&self, directory: &Dir, name: BString) -> io::Result<Option<Seen>> {
        let stamp = self.stamp(directory, &name)?;
        Ok(stamp.map(|stamp| Seen { name, node: SeenNode::Entry(stamp) }))
    }

    /// Returns `None` if the name is gone or belongs to the program.
    fn entry(
        &self,
        directory: &Dir,
        path: &[u8],
        name: BString,
        reach: Reach,
        before: Option<&[Seen]>,
    ) -> io::Result<Option<Seen>> {
        let Some(stamp) = self.stamp(directory, &name)? else { return Ok(None) };
        if self.options.own.contains(&(stamp.device, stamp.inode)) {
            return Ok(None);
        }
        let node = match FileType::of(&stamp) {
            FileType::Directory if reach == Reach::Whole => {
                self.subdirectory(directory, &join(path, &name), &name, &stamp, before)?
            }
            _ => SeenNode::Entry(stamp),
        };
        Ok(Some(Seen { name, node }))
    }

    fn subdirectory(
        &self,
        parent: &Dir,
        path: &[u8],
        name: &[u8],
        stamp: &Stamp,
        before: Option<&[Seen]>,
    ) -> io::Result<SeenNode> {
        if path.iter().filter(|byte| **byte == b'/').count() >= MAX_DEPTH {
            return Ok(SeenNode::Entry(*stamp));
        }
        let known = before.and_then(|before| find(before, name));
        let list = |directory: Dir| {
            let reach = match known {
                Some(SeenNode::Directory { reach, .. }) => *reach,
                _ => self.reach_of(parent, name, &directory)?,
            };
            let before = match known {
                Some(SeenNode::Directory { entries, .. }) => Some(entries.as_slice()),
                _ => None,
            };
            let entries = self.entries(&directory, path, reach, before)?;
            Ok(SeenNode::Directory { mode: stamp.mode, reach, entries })
        };
        match parent.open_dir(name).and_then(list) {
            Err(error) if is_shortage(&error) || self.options.progress.is_stopped() => Err(error),
            // A directory that can't be listed is compared by its own times.
            Err(_) => Ok(SeenNode::Entry(*stamp)),
            listed => listed,
        }
    }

    fn reach_of(&self, parent: &Dir, name: &[u8], directory: &Dir) -> io::Result<Reach> {
        if self.options.capture_rebuildable {
            return Ok(Reach::Whole);
        }
        match is_rebuildable(parent, name, directory, || false) {
            Err(error) if is_shortage(&error) => Err(error),
            Ok(true) => Ok(Reach::TopLevel),
            Ok(false) | Err(_) => Ok(Reach::Whole),
        }
    }

    /// Returns `None` if nothing is there.
    fn stamp(&self, directory: &Dir, name: &[u8]) -> io::Result<Option<Stamp>> {
        let stamp = match directory.try_stamp_at(name) {
            Err(error) if is_shortage(&error) => return Err(error),
            // A name without a stamp is still compared by its name.
            Err(_) => Some(Stamp::default()),
            Ok(stamp) => stamp,
        };
        self.newest.fetch_max(stamp.map_or(i64::MIN, |stamp| stamp.ctime), Ordering::Relaxed);
        Ok(stamp)
    }
}

/// Returns the entry of this name.
fn find<'s>(entries: &'s [Seen], name: &[u8]) -> Option<&'s SeenNode> {
    let position = entries.binary_search_by(|entry| entry.name.as_slice().cmp(name)).ok()?;
    Some(&entries[position].node)
}
