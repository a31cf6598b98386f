//! Which pins belong to something that still runs. A `try` that is killed can't let go of its checkpoint; the next one
//! does so for it.
//!
//! Each has a file that its process keeps locked: whatever ends the process, the system lets go of the lock. A pin
//! without a file is somebody's wish, and stays. All of this is a convenience: without it, a pin is let go of by hand.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use backtrail::{CheckpointId, Error, Workspace, own_files};
use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};

use crate::invocation::Invocation;

/// The directory with the files, each named like its checkpoint.
const DIRECTORY: &str = "tries";

/// A pin that goes when this process does, by its own hand or by the next one's.
pub(crate) struct HeldPin {
    path: PathBuf,
    file: File,
}

impl HeldPin {
    /// Says that the pin of this checkpoint, which is still to be set, is this process's; none where that can't be said.
    pub(crate) fn note(workspace: &Workspace, id: &CheckpointId, invocation: &Invocation) -> Option<Self> {
        let path = file_of(id, invocation)?;
        Self::write(path, workspace.store_directory()).ok()
    }

    fn write(path: PathBuf, store: &Path) -> io::Result<Self> {
        own_files::make_private_directories(path.parent().unwrap_or(Path::new("/")))?;
        // It must not be seen before it is locked.
        let early = path.with_extension(format!("new-{}", std::process::id()));
        let file = own_files::create_new(&early, 0o600)?;
        let put = || -> io::Result<()> {
            flock(&file, FlockOperation::NonBlockingLockExclusive)?;
            (&file).write_all(store.as_os_str().as_bytes())?;
            fs::rename(&early, &path)
        };
        if let Err(error) = put() {
            drop(fs::remove_file(&early));
            return Err(error);
        }
        Ok(Self { path, file })
    }

    /// Did somebody ask meanwhile to keep the checkpoint?
    pub(crate) fn is_wanted(&self) -> bool {
        !is_at(&self.file, &self.path)
    }

    /// From now on a pin of this checkpoint is one like others.
    pub(crate) fn forget(self) {
        if is_at(&self.file, &self.path) {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Somebody wants to keep this checkpoint, whatever it was pinned for.
pub(crate) fn keep(id: &CheckpointId, invocation: &Invocation) {
    if let Some(path) = file_of(id, invocation) {
        drop(fs::remove_file(path));
    }
}

/// Lets go of what was pinned in this workspace by processes that are gone.
pub(crate) fn let_go_of_abandoned(workspace: &Workspace, invocation: &Invocation) {
    let Ok(directory) = invocation.environment().own_file(DIRECTORY) else { return };
    // Where there is no such directory there is nothing to do.
    let Ok(entries) = fs::read_dir(directory) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let Some(id) = path.file_name().and_then(|name| name.to_str()?.parse::<CheckpointId>().ok()) else { continue };
        if let Some(file) = abandoned(&path, workspace.store_directory()) {
            let_go(workspace, &id, HeldPin { path, file }, invocation);
        }
    }
}

/// The file, locked, where it is about this store and nobody holds it.
fn abandoned(path: &Path, store: &Path) -> Option<File> {
    let mut file = File::open(path).ok()?;
    let mut named = Vec::new();
    file.read_to_end(&mut named).ok()?;
    let is_free =
        named == store.as_os_str().as_bytes() && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    (is_free && is_at(&file, path)).then_some(file)
}

fn let_go(workspace: &Workspace, id: &CheckpointId, pin: HeldPin, invocation: &Invocation) {
    let is_pinned = match workspace.get(id) {
        Ok(checkpoint) => checkpoint.pinned,
        Err(Error::UnknownCheckpoint { .. }) => false,
        // The next one may know more.
        Err(_) => return,
    };
    if is_pinned {
        if workspace.unpin(id, Timestamp::now()).is_err() {
            return;
        }
        let short = id.short();
        let what = "is no longer pinned: what it was the way back for was killed";
        invocation.output.note(&format!("checkpoint {short} {what}; keep it with: backtrail pin {short}"));
    }
    pin.forget();
}

fn file_of(id: &CheckpointId, invocation: &Invocation) -> Option<PathBuf> {
    Some(invocation.environment().own_file(DIRECTORY).ok()?.join(id.to_string()))
}

/// Is it still this file that the path leads to?
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(file), Ok(path)) => identity(file) == identity(path),
        _ => false,
    }
}
