//! Records which pins belong to a running process. A killed `try` can't unpin its checkpoint, so the next one does it.
//!
//! Each such pin has a file that its process keeps locked: the kernel releases the lock when the process ends for any
//! reason. A pin without a file was set by the user, and stays. These files are only a convenience: without them, the
//! user has to unpin by hand.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
};

use backtrail::{CheckpointId, Error, Workspace, app_files};
use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};

use crate::{failure::Failure, invocation::Invocation};

/// The directory of these files, each named after its checkpoint.
const DIRECTORY: &str = "tries";
/// The directory of the same files for a search in the workspace itself: the files of the workspace are those of some
/// other checkpoint until the search ends.
const BISECTS: &str = "bisects";

/// A pin that ends with this process. Either this process unpins the checkpoint, or the next one does.
pub(crate) struct HeldPin {
    path: PathBuf,
    file: File,
}

impl HeldPin {
    /// Records that the pin of this checkpoint belongs to this process. Called before the pin is set. Returns `None` if
    /// the file can't be written.
    pub(crate) fn note(workspace: &Workspace, id: &CheckpointId, invocation: &Invocation) -> Option<Self> {
        let path = file_of(id, invocation)?;
        Self::write(path, workspace.store_directory()).ok()
    }

    /// Records that this process changes the files of the workspace, and that this checkpoint brings them back.
    pub(crate) fn note_bisect(
        workspace: &Workspace,
        id: &CheckpointId,
        invocation: &Invocation,
    ) -> Result<Self, Failure> {
        let path = invocation.environment().own_file(BISECTS)?.join(id.to_string());
        let written = Self::write(path.clone(), workspace.store_directory());
        written.map_err(|source| Error::Io { action: "write", path, source }.into())
    }

    fn write(path: PathBuf, store: &Path) -> io::Result<Self> {
        app_files::make_private_directories(path.parent().unwrap_or(Path::new("/")))?;
        // The file must not be visible before it is locked.
        let early = path.with_extension(format!("new-{}", std::process::id()));
        let file = app_files::create_new(&early, 0o600)?;
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

    /// Returns whether the user asked meanwhile to keep the checkpoint.
    pub(crate) fn is_wanted(&self) -> bool {
        !is_at(&self.file, &self.path)
    }

    /// Removes the record, so that a pin of this checkpoint becomes an ordinary one.
    pub(crate) fn forget(self) {
        if is_at(&self.file, &self.path) {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// Keeps this checkpoint pinned because the user asked for it, whatever it was pinned for.
pub(crate) fn keep(id: &CheckpointId, invocation: &Invocation) {
    if let Some(path) = file_of(id, invocation) {
        drop(fs::remove_file(path));
    }
}

/// Unpins the checkpoints of this workspace that were pinned by processes that have ended. A checkpoint that brings back
/// the files of a killed search stays pinned.
pub(crate) fn let_go_of_abandoned(workspace: &Workspace, invocation: &Invocation) {
    let needed = abandoned_bisect(workspace, invocation).map(|(id, _)| id);
    for (id, pin) in all_abandoned(DIRECTORY, workspace, invocation) {
        if needed != Some(id) {
            let_go(workspace, &id, pin, invocation);
        }
    }
}

/// Returns the checkpoint that brings back the files of a search that was killed. Returns `None` if there is none.
pub(crate) fn abandoned_bisect(workspace: &Workspace, invocation: &Invocation) -> Option<(CheckpointId, HeldPin)> {
    all_abandoned(BISECTS, workspace, invocation).into_iter().next()
}

/// Returns the files of this workspace in a directory whose processes have ended.
fn all_abandoned(directory: &str, workspace: &Workspace, invocation: &Invocation) -> Vec<(CheckpointId, HeldPin)> {
    let Ok(directory) = invocation.environment().own_file(directory) else { return Vec::new() };
    // A missing directory means that there are no such files.
    let Ok(entries) = fs::read_dir(directory) else { return Vec::new() };
    let found = entries.flatten().map(|entry| entry.path()).filter_map(|path| {
        let id = path.file_name()?.to_str()?.parse::<CheckpointId>().ok()?;
        let file = abandoned(&path, workspace.store_directory())?;
        Some((id, HeldPin { path, file }))
    });
    found.collect()
}

/// Locks the file and returns it. Returns `None` if it belongs to another store, or if another process holds the lock.
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
        // The next process may be able to read the checkpoint.
        Err(_) => return,
    };
    if is_pinned {
        if workspace.unpin(id, Timestamp::now()).is_err() {
            return;
        }
        let short = id.short();
        let what = "is no longer pinned: the command that needed it was killed";
        invocation.output.note(&format!("checkpoint {short} {what}; keep it with: backtrail pin {short}"));
    }
    pin.forget();
}

fn file_of(id: &CheckpointId, invocation: &Invocation) -> Option<PathBuf> {
    Some(invocation.environment().own_file(DIRECTORY).ok()?.join(id.to_string()))
}

/// Returns whether the path still leads to this file.
fn is_at(file: &File, path: &Path) -> bool {
    let identity = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(file), Ok(path)) => identity(file) == identity(path),
        _ => false,
    }
}
