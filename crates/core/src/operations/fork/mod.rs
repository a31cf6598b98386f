//! `fork`: makes new workspaces with the files of a checkpoint, or with the files on disk.
//!
//! The order of the steps, and what a crash between them leaves, is described in `docs/store-format.md`.

mod adopt;
mod begun;
mod files;
mod left_out;
mod list;
mod point;

use std::path::{Path, PathBuf};

pub use adopt::AdoptRequest;
use begun::Begun;
use files::Files;
use jiff::Timestamp;
pub use list::{Fork, ForkChanges};
use point::Point;

use crate::{
    clock::Clock,
    disk::{self, private},
    error::{Error, Result, While},
    model::{CheckpointId, Kind, Skipped},
    operations::{
        new_directory::not_empty,
        save::{SaveRequest, Unchanged},
    },
    store::Writer,
    workspace::Workspace,
};

/// The forks that the caller asks for.
#[derive(Debug, Clone)]
pub struct ForkRequest {
    /// The checkpoint whose files the forks get. `None` means the files on disk.
    pub from: Option<CheckpointId>,
    /// The directories to make, each new or empty.
    pub directories: Vec<PathBuf>,
    /// The directory that holds the stores.
    pub stores: PathBuf,
    /// The treatment of skipped paths.
    pub left_out: LeftOut,
    /// Set if the directories may hold a `.git` already.
    pub may_hold_git: bool,
}

/// The treatment of paths that checkpoints skip because they are ignored, can be rebuilt or are too large.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LeftOut {
    /// Directories become links to those of the workspace. Files are not in the fork.
    #[default]
    Linked,
    /// Files and directories are copied.
    Copied,
}

/// A fork that was made.
#[derive(Debug, Clone)]
pub struct Forked {
    /// Its directory.
    pub path: PathBuf,
    /// The fork point: the checkpoint that its history starts with.
    pub checkpoint: CheckpointId,
    /// The number of files, symlinks included, without skipped paths.
    pub files: u64,
    /// Skipped paths that could not be copied, with the reason.
    pub not_copied: Vec<Skipped>,
}

/// Returns the request for the checkpoint of a workspace that has none.
fn first_save() -> SaveRequest {
    SaveRequest { message: Some("before forking".into()), kind: Some(Kind::Automatic), ..SaveRequest::default() }
}

impl Workspace {
    /// Makes workspaces with the files of a checkpoint, or with the files on disk. Each has a store of its own, which
    /// starts with the fork point.
    ///
    /// A fork exists once it has all its files. Every directory is checked before the first one is made.
    pub fn fork(&self, request: &ForkRequest, clock: impl Clock) -> Result<Vec<Forked>> {
        let fork = || {
            self.check_fork(request)?;
            let (writer, now) = self.writer_at(&clock)?;
            self.fork_locked(&writer, request, now)
        };
        self.report_failure(fork(), clock.now())
    }

    fn fork_locked(&self, writer: &Writer, request: &ForkRequest, now: Timestamp) -> Result<Vec<Forked>> {
        let Some((directory, rest)) = request.directories.split_first() else { return Ok(Vec::new()) };
        let timeline = writer.timeline()?;
        match &request.from {
            Some(id) => timeline.require(id).map(drop)?,
            // An adoption needs a checkpoint that the workspace stands on.
            None if timeline.current().is_none() => {
                self.save_locked(writer, &first_save(), Unchanged::AsRequested, now)?;
            }
            None => {}
        }
        let first = Begun::begin(self, directory, request, &[writer])?;
        let point = self.fork_point(writer, &first.writer, request.from, now)?;
        let mut forked = vec![self.complete_fork(writer, &first, &point, request, now)?];
        for directory in rest {
            // The first fork has the objects of the fork point, if the workspace's store does not.
            let begun = Begun::begin(self, directory, request, &[writer, &first.writer])?;
            forked.push(self.complete_fork(writer, &begun, &point, request, now)?);
        }
        Ok(forked)
    }

    fn complete_fork(
        &self,
        writer: &Writer,
        begun: &Begun,
        point: &Point,
        request: &ForkRequest,
        now: Timestamp,
    ) -> Result<Forked> {
        let written = Files::of(self, begun, point, request.left_out)?.write()?;
        disk::sync_filesystem(&begun.target).or_fail("sync", begun.workspace.root())?;
        begun.publish(&point.id, now)?;
        begun.finish(writer, &point.id, written.links)?;
        let path = begun.workspace.root().to_owned();
        Ok(Forked { path, checkpoint: point.id, files: written.files, not_copied: written.not_copied })
    }

    /// Returns an error if one of the directories can't become a fork. Changes nothing.
    pub fn check_fork(&self, request: &ForkRequest) -> Result<()> {
        request.directories.iter().try_for_each(|directory| self.check_fork_target(directory, request))
    }

    fn check_fork_target(&self, directory: &Path, request: &ForkRequest) -> Result<()> {
        self.refuse_own_places(directory)?;
        let there = directory.ancestors().find_map(|ancestor| private::canonical(ancestor).ok());
        let own = self.options().own_directories.iter().chain([&request.stores]);
        let mut own = own.filter_map(|path| private::canonical(path).ok());
        if there.is_some_and(|there| own.any(|own| there.starts_with(own))) {
            return Err(Error::ProtectedDirectory { path: directory.to_owned() });
        }
        if !private::exists(directory) {
            return Ok(());
        }
        let is_free = || -> std::io::Result<bool> {
            let is_allowed = |name: &std::ffi::OsString| request.may_hold_git && name == ".git";
            Ok(disk::is_directory(directory) && private::names(directory)?.iter().all(is_allowed))
        };
        if is_free().or_fail("read", directory)? { Ok(()) } else { Err(not_empty(directory)) }
    }
}
