//! Asks the watcher of a workspace, if one runs.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use super::protocol::{Ask, MAX_LINE_BYTES, Question, Reply, SOCKET, VERSION, WatcherReport};
use crate::{
    disk::watch::{Stream, mount_namespace},
    model::{ChangeAnswer, ChangeSource, WatchToken},
};

/// The longest time that an operation waits for a watcher before it scans everything.
const PATIENCE: Duration = Duration::from_millis(100);

/// The longest time that a user waits for an answer about the watcher itself.
const PATIENCE_OF_A_PERSON: Duration = Duration::from_secs(2);

/// The watcher whose socket is in a directory.
#[derive(Debug)]
pub(crate) struct SocketWatcher {
    directory: PathBuf,
}

impl SocketWatcher {
    pub(crate) fn at(directory: PathBuf) -> Self {
        Self { directory }
    }
}

impl ChangeSource for SocketWatcher {
    fn changes_since(&self, root: (u64, u64), since: Option<&WatchToken>) -> Option<ChangeAnswer> {
        let ask = || {
            let namespace = mount_namespace()?;
            ask(&self.directory, Ask::Changes { root, namespace, since: since.cloned() }, PATIENCE)
        };
        // Whatever went wrong, the answer is not known.
        match ask() {
            Ok(Reply::Changes(answer)) => Some(answer),
            _ => None,
        }
    }

    fn note_fallback(&self, reason: &str) {
        // Only a number in the watcher's report depends on this.
        ask(&self.directory, Ask::FellBack { reason: reason.to_owned() }, PATIENCE).ok();
    }
}

/// Returns the report of the watcher. Returns an error if none answers.
pub(crate) fn ask_status(directory: &Path) -> io::Result<WatcherReport> {
    match ask(directory, Ask::Status, PATIENCE_OF_A_PERSON)? {
        Reply::Status(report) => Ok(report),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// Asks the watcher to end.
pub(crate) fn ask_to_stop(directory: &Path) -> io::Result<()> {
    ask(directory, Ask::Stop, PATIENCE_OF_A_PERSON).map(drop)
}

fn ask(directory: &Path, ask: Ask, patience: Duration) -> io::Result<Reply> {
    let mut stream = Stream::connect(directory, SOCKET, patience)?;
    let question = serde_json::to_vec(&Question { version: VERSION, ask })?;
    stream.write_line(&question)?;
    let reply = stream.read_line(MAX_LINE_BYTES)?;
    Ok(serde_json::from_slice(&reply)?)
}
