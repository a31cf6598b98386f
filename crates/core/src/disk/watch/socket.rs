//! Local sockets in the directory of a store.
//!
//! A socket is reached through the open directory that contains it: its address holds fewer bytes than a path may have.

use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
    time::{Duration, Instant},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags},
    io::Errno,
    net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt},
};

/// The number of clients that may wait to be accepted.
const BACKLOG: i32 = 128;

/// A socket that accepts clients.
#[derive(Debug)]
pub(crate) struct Listener(OwnedFd);

/// A connection whose reads and writes all end by one deadline.
#[derive(Debug)]
pub(crate) struct Stream {
    stream: UnixStream,
    deadline: Instant,
}

fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(rustix::fs::CWD, path, flags, Mode::empty())?)
}

fn address(directory: &OwnedFd, name: &str) -> io::Result<SocketAddrUnix> {
    Ok(SocketAddrUnix::new(format!("/proc/self/fd/{}/{name}", directory.as_raw_fd()))?)
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

impl Listener {
    /// Creates a socket that only this user can connect to. Replaces one that a dead process left behind: the caller
    /// must know that there is no living one.
    pub(crate) fn bind(directory: &Path, name: &str) -> io::Result<Self> {
        let directory = open_directory(directory)?;
        match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let listener = socket()?;
        // The name is created with these permission bits.
        rustix::fs::fchmod(&listener, Mode::from_raw_mode(0o600))?;
        rustix::net::bind(&listener, &address(&directory, name)?)?;
        rustix::fs::chmodat(&directory, name, Mode::from_raw_mode(0o600), AtFlags::empty())?;
        rustix::net::listen(&listener, BACKLOG)?;
        Ok(Self(listener))
    }

    /// Accepts a client of the same user. Returns `None` if no client is waiting, or another user's was refused.
    pub(crate) fn accept(&self, patience: Duration) -> io::Result<Option<Stream>> {
        match rustix::net::accept_with(&self.0, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(client) if is_same_user(&client)? => Ok(Some(Stream::new(client, patience))),
            Ok(_) | Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Stream {
    fn new(socket: OwnedFd, patience: Duration) -> Self {
        Self { stream: socket.into(), deadline: Instant::now() + patience }
    }

    /// Connects to the socket of a process of the same user. Never waits: a socket whose process does not accept is an
    /// error once its backlog is full.
    pub(crate) fn connect(directory: &Path, name: &str, patience: Duration) -> io::Result<Self> {
        let directory = open_directory(directory)?;
        let client = socket()?;
        rustix::net::connect(&client, &address(&directory, name)?)?;
        if !is_same_user(&client)? {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(Self::new(client, patience))
    }

    /// Gives later reads and writes this much time from now.
    pub(crate) fn allow(&mut self, patience: Duration) {
        self.deadline = Instant::now() + patience;
    }

    /// Returns the bytes up to and without the next newline. An end of the connection before it is an error.
    pub(crate) fn read_line(&mut self, max_bytes: usize) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        let mut piece = [0; 16 << 10];
        loop {
            match self.stream.read(&mut piece) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => line.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.ready(rustix::event::PollFlags::IN)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
            if line.last() == Some(&b'\n') {
                line.pop();
                return Ok(line);
            }
            if line.len() > max_bytes {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
    }

    /// Writes a line and its newline.
    pub(crate) fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        let line = [line, b"\n"].concat();
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.ready(rustix::event::PollFlags::OUT)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn ready(&self, wanted: rustix::event::PollFlags) -> io::Result<()> {
        use rustix::event::{PollFd, Timespec, poll};
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let timeout = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
        match poll(&mut [PollFd::new(&self.stream, wanted)], Some(&timeout)) {
            Ok(0) => Err(io::ErrorKind::TimedOut.into()),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

fn is_same_user(socket: &OwnedFd) -> io::Result<bool> {
    Ok(sockopt::socket_peercred(socket)?.uid == rustix::process::geteuid())
}
