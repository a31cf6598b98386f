//! Runs the watcher of a workspace, and asks a running one.

use std::{
    collections::HashSet,
    io,
    os::fd::BorrowedFd,
    time::{Duration, Instant},
};

use jiff::Timestamp;

use crate::{
    error::{Error, Result, While},
    model::{Node, Reason, Scope, WorkspacePath},
    scan::Scan,
    store::{Layout, WatchNote},
    watcher::{
        AutoSaver, Comparison, Duties, Server, Times, WatchEnd, WatchFiles, WatcherReport, ask_status, ask_to_stop,
    },
    workspace::{Workspace, cache_file},
};

/// The time between two full scans that check what the events said.
const COMPARE_EVERY: Duration = Duration::from_secs(600);

/// The time that a watcher is given to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a watcher works.
#[derive(Debug, Clone)]
pub struct WatchRequest {
    /// The time when the watcher starts.
    pub now: Timestamp,
    /// Checkpoints are taken when files changed and then stayed quiet for this long. `None`: none are.
    pub auto: Option<Duration>,
    /// The watcher ends after this long without an event and without a question. `None`: it does not.
    pub idle_end: Option<Duration>,
    /// Full scans check what the events said, this often while there is activity.
    pub compare_every: Duration,
}

impl WatchRequest {
    /// A watcher that takes no checkpoints and runs until it is stopped.
    pub fn new(now: Timestamp) -> Self {
        Self { now, auto: None, idle_end: None, compare_every: COMPARE_EVERY }
    }
}

/// The outcome of [`Workspace::watch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watched {
    /// The watcher ran and ended.
    Ended(WatchEnd),
    /// Another process watches the workspace.
    RunsElsewhere,
}

/// The work of a watcher that needs the workspace.
struct WatcherDuties<'a> {
    workspace: &'a Workspace,
    auto: Option<(Duration, &'a dyn AutoSaver)>,
}

impl Workspace {
    /// Watches the workspace until `stop` can be read, somebody stops the watcher, or the workspace is gone. Calls
    /// `ready` with the number of watched directories once clients are answered.
    pub fn watch(
        &self,
        request: &WatchRequest,
        saver: &dyn AutoSaver,
        stop: BorrowedFd<'_>,
        ready: &mut dyn FnMut(u64),
    ) -> Result<Watched> {
        self.init(request.now)?;
        let store = self.existing_store()?;
        let directory = store.layout().watcher();
        let Some(files) = WatchFiles::claim(&directory).or_fail("write", &directory)? else {
            return Ok(Watched::RunsElsewhere);
        };
        let duties = WatcherDuties { workspace: self, auto: request.auto.map(|quiet_for| (quiet_for, saver)) };
        let times = Times { compare_every: request.compare_every, idle_end: request.idle_end };
        let started = request.now.as_millisecond();
        let server = Server::start(self.root(), files, &duties, times, started).or_fail("watch", self.root())?;
        ready(server.directories() as u64);
        Ok(Watched::Ended(server.run(stop).or_fail("watch", self.root())?))
    }

    /// Returns the report of the watcher. Returns `None` if none is running. A watcher that is running and does not
    /// answer is an error.
    pub fn watcher(&self) -> Result<Option<WatcherReport>> {
        let directory = Layout::new(self.store_directory()).watcher();
        if !WatchFiles::is_claimed(&directory) {
            return Ok(None);
        }
        match ask_status(&directory) {
            Ok(report) => Ok(Some(report)),
            // It ended, or it is still starting.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                Ok(WatchFiles::is_claimed(&directory).then(WatcherReport::default))
            }
            Err(source) => Err(Error::Io { action: "get an answer from the watcher at", path: directory, source }),
        }
    }

    /// Stops the watcher and waits until it has ended. Returns whether one was running.
    pub fn stop_watcher(&self) -> Result<bool> {
        let directory = Layout::new(self.store_directory()).watcher();
        if !WatchFiles::is_claimed(&directory) {
            return Ok(false);
        }
        let deadline = Instant::now() + PATIENCE;
        let mut last = ask_to_stop(&directory);
        while WatchFiles::is_claimed(&directory) {
            if Instant::now() >= deadline {
                let source = last.err().unwrap_or_else(|| io::ErrorKind::TimedOut.into());
                return Err(Error::Io { action: "stop the watcher at", path: directory, source });
            }
            std::thread::sleep(Duration::from_millis(10));
            // A watcher that is still starting hears the second question.
            if last.is_err() {
                last = ask_to_stop(&directory);
            }
        }
        Ok(true)
    }
}

impl Duties for WatcherDuties<'_> {
    fn skipped(&self) -> HashSet<WorkspacePath> {
        let scan = || {
            let store = self.workspace.store()?;
            self.workspace.scan_for_reading(store.as_ref(), &Scope::Whole)
        };
        // Without the list more directories are watched than necessary.
        scan().map(|scan| skipped_in(&scan)).unwrap_or_default()
    }

    fn compare(&self) -> Option<Comparison> {
        let store = self.workspace.store().ok()??;
        let layout = store.layout();
        let note = WatchNote::read(layout)?;
        let timeline = store.timeline().ok()?;
        let cache = self.workspace.stat_cache(&store, &timeline)?;
        if Some(note.cache) != cache_file(layout) {
            return None;
        }
        let scan = self.workspace.scan_for_reading(Some(&store), &Scope::Whole).ok()?;
        let mut differing: Vec<WorkspacePath> =
            cache.differences(&scan.root, usize::MAX)?.iter().filter_map(WorkspacePath::parent).collect();
        differing.dedup();
        Some(Comparison { since: note.token, differing, skipped: skipped_in(&scan) })
    }

    fn auto(&self) -> Option<(Duration, &dyn AutoSaver)> {
        self.auto
    }
}

/// Returns the paths that rules and marks skip, whose contents no scan reads.
fn skipped_in(scan: &Scan) -> HashSet<WorkspacePath> {
    let mut skipped = HashSet::new();
    scan.root.walk(&mut |path, node| {
        if matches!(node, Node::Skipped(Reason::Ignored | Reason::Rebuildable | Reason::Own | Reason::Git, _)) {
            skipped.insert(path.clone());
        }
    });
    skipped
}
