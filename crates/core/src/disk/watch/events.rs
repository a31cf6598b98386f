//! Events about directories, from inotify.

use std::{
    io,
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
    time::Duration,
};

use bstr::BString;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};

use super::{Change, FileEvent};
use crate::disk::{
    Dir,
    filesystem::{self, BCACHEFS, BTRFS, EXT, F2FS, TMPFS, XFS, ZFS},
};

const BUFFER_BYTES: usize = 64 << 10;

/// A watch on a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct WatchId(i32);

/// The queue of events about all watched directories, in the order in which they happened.
#[derive(Debug)]
pub(crate) struct EventQueue {
    queue: OwnedFd,
    buffer: Vec<MaybeUninit<u8>>,
}

impl EventQueue {
    pub(crate) fn new() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Self { queue, buffer: vec![MaybeUninit::uninit(); BUFFER_BYTES] })
    }

    /// Watches an open directory. Returns the existing watch if the directory is already watched.
    pub(crate) fn watch(&self, directory: &Dir) -> io::Result<WatchId> {
        let flags = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        self.add(directory, flags)
    }

    /// Watches for names that are created in, moved into or removed from an open directory.
    pub(crate) fn watch_names(&self, directory: &Dir) -> io::Result<WatchId> {
        let flags = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        self.add(directory, flags)
    }

    /// The name in `/proc` leads to exactly the directory that is open, so that no symlink can lead elsewhere.
    fn add(&self, directory: &Dir, flags: WatchFlags) -> io::Result<WatchId> {
        let name = format!("/proc/self/fd/{}", directory.as_fd().as_raw_fd());
        Ok(WatchId(inotify::add_watch(&self.queue, name, flags | WatchFlags::ONLYDIR)?))
    }

    /// Ends a watch. Does nothing if the kernel has already ended it.
    pub(crate) fn unwatch(&self, watch: WatchId) {
        inotify::remove_watch(&self.queue, watch.0).ok();
    }

    /// Passes the events that are waiting to `take`. Never waits. Reads at most one buffer.
    pub(crate) fn read(&mut self, mut take: impl FnMut(FileEvent)) -> io::Result<()> {
        let mut reader = inotify::Reader::new(&self.queue, &mut self.buffer);
        loop {
            match reader.next() {
                Ok(event) => of_event(&event).into_iter().for_each(&mut take),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if reader.is_buffer_empty() {
                return Ok(());
            }
        }
    }
}

impl AsFd for EventQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

fn of_event(event: &inotify::Event<'_>) -> Option<FileEvent> {
    let flags = event.events();
    if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
        return Some(FileEvent::Overflow);
    }
    let what = if flags.contains(ReadFlags::IGNORED) {
        Change::Unwatched
    } else if flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT) {
        Change::Gone
    } else if flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
        Change::Appeared
    } else if flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
        Change::Vanished
    } else {
        Change::Contents
    };
    let name = event.file_name().map(|name| BString::from(name.to_bytes()));
    let is_directory = flags.contains(ReadFlags::ISDIR);
    Some(FileEvent::At { watch: WatchId(event.wd()), name, is_directory, what })
}

/// Returns whether every change on this file system comes from this kernel, which then reports it.
///
/// Returns `true` only for file systems that are known for it: another computer may change a network file system, and
/// another mount the layers of an overlay.
pub(crate) fn reports_events(directory: &Dir) -> io::Result<bool> {
    Ok(matches!(filesystem::kind(directory)?, EXT | XFS | BTRFS | TMPFS | F2FS | ZFS | BCACHEFS))
}

/// Waits until one of the handles is ready. Returns for each of them whether it is. With a `timeout` of `None`, waits
/// for as long as it takes.
pub(crate) fn wait(handles: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<Vec<bool>> {
    let wanted = PollFlags::IN | PollFlags::PRI;
    let mut polled: Vec<PollFd<'_>> = handles.iter().map(|handle| PollFd::from_borrowed_fd(*handle, wanted)).collect();
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(&mut polled, timeout.as_ref()) {
        Ok(_) => Ok(polled.iter().map(|polled| !polled.revents().is_empty()).collect()),
        Err(Errno::INTR) => Ok(vec![false; handles.len()]),
        Err(error) => Err(error.into()),
    }
}
