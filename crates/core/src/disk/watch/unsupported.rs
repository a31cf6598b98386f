//! The same on systems without a watcher: nothing can be opened.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
    time::Duration,
};

use super::FileEvent;
use crate::disk::Dir;

/// A value that can't exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Never {}

pub(crate) type EventQueue = Never;
pub(crate) type Listener = Never;
pub(crate) type MountTable = Never;
pub(crate) type Stream = Never;
pub(crate) type WatchId = Never;

fn unsupported<T>() -> io::Result<T> {
    Err(io::ErrorKind::Unsupported.into())
}

impl Never {
    pub(crate) fn new() -> io::Result<Self> {
        unsupported()
    }

    pub(crate) fn open() -> io::Result<Self> {
        unsupported()
    }

    pub(crate) fn bind(_: &Path, _: &str) -> io::Result<Self> {
        unsupported()
    }

    pub(crate) fn connect(_: &Path, _: &str, _: Duration) -> io::Result<Self> {
        unsupported()
    }

    pub(crate) fn watch(&self, _: &Dir) -> io::Result<Self> {
        match *self {}
    }

    pub(crate) fn watch_names(&self, _: &Dir) -> io::Result<Self> {
        match *self {}
    }

    pub(crate) fn unwatch(&self, _: Self) {
        match *self {}
    }

    pub(crate) fn read(&mut self, _: impl FnMut(FileEvent)) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn changed_near(&mut self, _: &Path) -> io::Result<bool> {
        match *self {}
    }

    pub(crate) fn below(&self, _: &Path) -> Vec<Vec<u8>> {
        match *self {}
    }

    pub(crate) fn accept(&self, _: Duration) -> io::Result<Option<Self>> {
        match *self {}
    }

    pub(crate) fn allow(&mut self, _: Duration) {
        match *self {}
    }

    pub(crate) fn read_line(&mut self, _: usize) -> io::Result<Vec<u8>> {
        match *self {}
    }

    pub(crate) fn write_line(&mut self, _: &[u8]) -> io::Result<()> {
        match *self {}
    }
}

impl AsFd for Never {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match *self {}
    }
}

pub(crate) fn reports_events(_: &Dir) -> io::Result<bool> {
    unsupported()
}

pub(crate) fn wait(_: &[BorrowedFd<'_>], _: Option<Duration>) -> io::Result<Vec<bool>> {
    unsupported()
}

pub(crate) fn mount_namespace() -> io::Result<(u64, u64)> {
    unsupported()
}
