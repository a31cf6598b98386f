//! What a watcher needs from the system: events about directories, local sockets, and the table of mounts.
//!
//! Only Linux has all of it. On other systems a watcher can't be started, and no client finds one.

#[cfg(target_os = "linux")]
mod events;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod socket;
#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(target_os = "linux")]
pub(crate) use self::{
    events::{EventQueue, WatchId, reports_events, wait},
    mounts::{MountTable, mount_namespace},
    socket::{Listener, Stream},
};
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::{
    EventQueue, Listener, MountTable, Stream, WatchId, mount_namespace, reports_events, wait,
};

use std::{
    io::{Read, Write},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::Arc,
};

use bstr::BString;

/// An event that the kernel reported.
#[derive(Debug)]
pub(crate) enum FileEvent {
    /// Something changed in a watched directory, or the directory itself did.
    At {
        watch: WatchId,
        /// `None` if the event concerns the watched directory itself.
        name: Option<BString>,
        is_directory: bool,
        what: Change,
    },
    /// The kernel dropped events because too many were waiting.
    Overflow,
}

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// The contents or the metadata changed.
    Contents,
    /// A name was created or moved in.
    Appeared,
    /// A name was removed or moved away.
    Vanished,
    /// The watched directory itself was removed or moved, or its file system was unmounted.
    Gone,
    /// The kernel ended the watch.
    Unwatched,
}

/// Returns random bytes.
pub(crate) fn random_id() -> std::io::Result<String> {
    let mut bytes = [0u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}

/// Ends the waiting of another thread.
#[derive(Debug, Clone)]
pub(crate) struct Waker(Arc<(UnixStream, UnixStream)>);

impl Waker {
    pub(crate) fn new() -> std::io::Result<Self> {
        let (waiting, waking) = UnixStream::pair()?;
        waiting.set_nonblocking(true)?;
        waking.set_nonblocking(true)?;
        Ok(Self(Arc::new((waiting, waking))))
    }

    /// Makes the waker readable.
    pub(crate) fn wake(&self) {
        // If the buffer is full, the waker is readable already.
        (&self.0.1).write_all(&[0]).ok();
    }

    /// Makes the waker unreadable again.
    pub(crate) fn reset(&self) {
        while (&self.0.0).read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.0.as_fd()
    }
}
