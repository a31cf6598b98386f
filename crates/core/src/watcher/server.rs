//! The process that keeps the watches and answers clients.

use std::{
    collections::HashSet,
    io,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, Sender, channel},
    thread::Scope,
    time::{Duration, Instant},
};

use super::{
    auto::{AutoOutcome, AutoSaver, Schedule},
    protocol::{Ask, MAX_LINE_BYTES, Question, Reply, SOCKET, VERSION, WatcherReport},
    tree::WatchTree,
};
use crate::{
    disk::{
        self, Dir, delays,
        lock::{FileLock, LockError},
        private,
        watch::{
            Change, EventQueue, FileEvent, Listener, MountTable, Stream, Waker, WatchId, mount_namespace, random_id,
            reports_events, wait,
        },
    },
    model::{ChangeAnswer, ChangedDirectories, WatchToken, WorkspacePath},
};

/// The time that a client has to send its question and to take the answer.
const PATIENCE: Duration = Duration::from_millis(100);

/// A cookie whose event has not arrived by then is given up.
const COOKIE_PATIENCE: Duration = Duration::from_secs(1);

/// Answers with more directories than this save nothing.
const MANY_DIRECTORIES: usize = 20_000;

/// How often the watcher looks whether its workspace is still there.
const LOOK_AROUND_EVERY: Duration = Duration::from_secs(60);

/// The durations that decide when a watcher acts by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// Full scans compare what the events said, this often while there is activity.
    pub(crate) compare_every: Duration,
    /// The watcher ends after this long without an event and without a question.
    pub(crate) idle_end: Option<Duration>,
}

/// The work of a watcher that needs the workspace: it runs beside the loop that answers.
pub(crate) trait Duties: Sync {
    /// Returns the directories that checkpoints skip.
    fn skipped(&self) -> HashSet<WorkspacePath>;

    /// Scans everything and compares it with the last scan whose result is known. Returns `None` if there is none.
    fn compare(&self) -> Option<Comparison>;

    /// Takes the checkpoints, if the watcher is to take any, and the time that files have to stay quiet before.
    fn auto(&self) -> Option<(Duration, &dyn AutoSaver)>;
}

/// The result of a full scan.
pub(crate) struct Comparison {
    /// The moment of the scan that it was compared with.
    pub(crate) since: WatchToken,
    /// Directories that differ.
    pub(crate) differing: Vec<WorkspacePath>,
    /// Directories that checkpoints skip.
    pub(crate) skipped: HashSet<WorkspacePath>,
}

/// The reason why a watcher ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEnd {
    /// The user asked it to.
    Stopped,
    /// The workspace or its store was moved or removed.
    Gone,
    /// Nothing happened for a long time.
    Idle,
}

/// The files of a watcher in the store.
#[derive(Debug)]
pub(crate) struct WatchFiles {
    directory: PathBuf,
    _lock: FileLock,
}

impl WatchFiles {
    /// Takes the place of the only watcher of a workspace. Returns `None` if another process has it.
    pub(crate) fn claim(directory: &Path) -> io::Result<Option<Self>> {
        private::make_directories(directory)?;
        match FileLock::acquire(&directory.join("lock"), Duration::ZERO) {
            Ok(lock) => Ok(Some(Self { directory: directory.to_owned(), _lock: lock })),
            Err(LockError::Busy) => Ok(None),
            Err(LockError::Unsupported) => Err(io::ErrorKind::Unsupported.into()),
            Err(LockError::Io(error)) => Err(error),
        }
    }

    /// Returns whether a process has the place of the watcher.
    pub(crate) fn is_claimed(directory: &Path) -> bool {
        let lock = directory.join("lock");
        private::exists(&lock) && matches!(FileLock::acquire(&lock, Duration::ZERO), Err(LockError::Busy))
    }
}

/// A client whose cookie has not arrived yet.
struct Waiting {
    cookie: u64,
    client: Stream,
    ask: Ask,
    since: Instant,
}

/// What a job beside the loop reports.
enum Report {
    Compared(Option<Comparison>),
    Saved(AutoOutcome),
}

/// A running watcher.
pub(crate) struct Server<'a> {
    path: &'a Path,
    root: Dir,
    identity: (u64, u64),
    files: WatchFiles,
    /// The directory of the cookies, in the store.
    cookies: Dir,
    listener: Listener,
    namespace: (u64, u64),
    mounts: MountTable,
    watches: Watches,
    waiting: Vec<Waiting>,
    next_cookie: u64,
    report: WatcherReport,
    times: Times,
    duties: &'a dyn Duties,
    schedule: Option<Schedule>,
    is_restoring: bool,
    last_activity: Instant,
    last_comparison: Instant,
    had_events: bool,
    is_comparing: bool,
    last_asked: u64,
    end: Option<WatchEnd>,
}

/// The watches and what they have seen. They are replaced as a whole if events were lost.
struct Watches {
    queue: EventQueue,
    tree: WatchTree,
    instance: String,
    sequence: u64,
    /// The watch on the directory of the cookies.
    cookie_watch: WatchId,
    /// The watch on the store's own files.
    store_watch: WatchId,
    /// The watch on the names beside the workspace. `None` if they can't be watched: then a workspace that was moved is
    /// noticed later.
    beside_watch: Option<WatchId>,
}

impl<'a> Server<'a> {
    /// Watches the workspace at `root`. `started` is the time, in milliseconds since 1970.
    pub(crate) fn start(
        root: &'a Path,
        files: WatchFiles,
        duties: &'a dyn Duties,
        times: Times,
        started: i64,
    ) -> io::Result<Self> {
        let directory = Dir::open_resolved(root)?;
        let stamp = directory.stamp()?;
        if !reports_events(&directory)? {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                "the file system of the workspace does not report changes reliably",
            ));
        }
        let mounts = MountTable::open()?;
        let cookie_directory = files.directory.join("cookies");
        private::make_directories(&cookie_directory)?;
        let cookies = Dir::open(&cookie_directory)?;
        for name in private::names(&cookie_directory)? {
            cookies.remove_own_file(name.as_encoded_bytes())?;
        }
        let store = Dir::open(files.directory.parent().unwrap_or(&files.directory))?;
        let mounted = mount_points(&mounts, root);
        let watches = Watches::new(&directory, root, &cookies, &store, duties.skipped(), mounted)?;
        // Clients are answered from here on.
        let listener = Listener::bind(&files.directory, SOCKET)?;
        let auto = duties.auto();
        let report =
            WatcherReport { pid: std::process::id(), since: started, auto: auto.is_some(), ..WatcherReport::default() };
        let now = Instant::now();
        let mut schedule = auto.map(|(quiet_for, _)| Schedule::new(quiet_for));
        // What changed before the watcher started is saved, too.
        schedule.iter_mut().for_each(|schedule| schedule.changed(now));
        Ok(Self {
            path: root,
            identity: (stamp.device, stamp.inode),
            root: directory,
            files,
            cookies,
            listener,
            namespace: mount_namespace()?,
            mounts,
            watches,
            waiting: Vec::new(),
            next_cookie: 0,
            report,
            times,
            duties,
            schedule,
            is_restoring: false,
            last_activity: now,
            last_comparison: now,
            had_events: false,
            is_comparing: false,
            last_asked: 0,
            end: None,
        })
    }

    /// Returns the number of watched directories.
    pub(crate) fn directories(&self) -> usize {
        self.watches.tree.directories()
    }

    /// Answers clients until `stop` can be read, the workspace is gone, or a client asks the watcher to end.
    pub(crate) fn run(mut self, stop: BorrowedFd<'_>) -> io::Result<WatchEnd> {
        let (reports, arrived) = channel();
        let waker = Waker::new()?;
        std::thread::scope(|scope| {
            loop {
                let handles = [self.watches.queue.as_fd(), self.listener.as_fd(), stop, waker.as_fd()];
                let ready = wait(&handles, Some(self.timeout()))?;
                if ready[2] {
                    return Ok(WatchEnd::Stopped);
                }
                waker.reset();
                self.read_events()?;
                self.accept()?;
                self.take_reports(&arrived);
                self.give_up_late_cookies();
                self.look_around();
                if let Some(end) = self.end {
                    return Ok(end);
                }
                self.start_jobs(scope, &reports, &waker);
            }
        })
    }

    /// Returns the time until something has to be done without an event.
    fn timeout(&self) -> Duration {
        let now = Instant::now();
        let mut next = now + LOOK_AROUND_EVERY;
        if let Some(idle_end) = self.times.idle_end {
            next = next.min(self.last_activity + idle_end);
        }
        if self.had_events && !self.is_comparing {
            next = next.min(self.last_comparison + self.times.compare_every);
        }
        if let Some(due) = self.schedule.as_ref().and_then(Schedule::due) {
            next = next.min(due);
        }
        if !self.waiting.is_empty() {
            next = next.min(now + COOKIE_PATIENCE);
        }
        next.saturating_duration_since(now)
    }

    fn read_events(&mut self) -> io::Result<()> {
        let mut events = Vec::new();
        self.watches.queue.read(|event| events.push(event))?;
        for event in events {
            delays::pass();
            match event {
                FileEvent::Overflow => {
                    // The events that follow belong to watches that do not exist any more.
                    self.renew_watches("overflow");
                    return Ok(());
                }
                FileEvent::At { watch, name, is_directory, what } => {
                    if watch == self.watches.cookie_watch {
                        self.cookie_event(name.as_ref().map(|name| name.as_slice()), what);
                    } else if Some(watch) == self.watches.beside_watch {
                        // The loop looks whether the workspace is still there.
                    } else if watch == self.watches.store_watch {
                        self.store_event(name.as_ref().map(|name| name.as_slice()), what);
                    } else {
                        self.workspace_event(watch, name.as_ref().map(|name| name.as_slice()), is_directory, what);
                    }
                }
            }
            if self.end.is_some() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn workspace_event(&mut self, watch: WatchId, name: Option<&[u8]>, is_directory: bool, what: Change) {
        let Watches { queue, tree, sequence, .. } = &mut self.watches;
        *sequence += 1;
        match (what, name) {
            (Change::Unwatched | Change::Gone, _) if tree.is_root(watch) => {
                self.end = Some(WatchEnd::Gone);
                return;
            }
            (Change::Unwatched, _) => tree.forget(watch),
            (Change::Contents, Some(name)) if is_directory => {
                // A directory that could not be read may have become readable.
                if tree.is_watched(watch, name) {
                    tree.note(watch, *sequence);
                } else {
                    tree.note(watch, *sequence);
                    tree.renew(&self.root, queue, watch, name, *sequence);
                }
            }
            (Change::Appeared | Change::Vanished, Some(name)) if is_directory => {
                tree.note(watch, *sequence);
                tree.renew(&self.root, queue, watch, name, *sequence);
            }
            _ => {
                tree.note(watch, *sequence);
            }
        }
        self.had_events = true;
        let now = Instant::now();
        self.last_activity = now;
        if let Some(schedule) = self.schedule.as_mut().filter(|_| !self.is_restoring) {
            schedule.changed(now);
        }
    }

    /// Follows the restores of this program: their changes are not saved, because checkpoints hold them.
    fn store_event(&mut self, name: Option<&[u8]>, what: Change) {
        match (name, what) {
            (None, Change::Gone | Change::Unwatched) => self.end = Some(WatchEnd::Gone),
            (Some(b"journal"), Change::Appeared) => {
                self.is_restoring = true;
                // The safety checkpoint holds what changed before.
                self.schedule.iter_mut().for_each(Schedule::forget);
            }
            (Some(b"journal"), Change::Vanished) => self.is_restoring = false,
            _ => {}
        }
    }

    fn cookie_event(&mut self, name: Option<&[u8]>, what: Change) {
        match (name, what) {
            (None, Change::Gone | Change::Unwatched) => self.end = Some(WatchEnd::Gone),
            (Some(name), Change::Appeared) => {
                let arrived = self.waiting.iter().position(|waiting| cookie_name(waiting.cookie).as_bytes() == name);
                if let Some(position) = arrived {
                    let waiting = self.waiting.swap_remove(position);
                    self.answer(waiting);
                }
            }
            _ => {}
        }
    }

    /// Answers a client. Every event from before its question was read.
    fn answer(&mut self, waiting: Waiting) {
        let Waiting { mut client, ask, .. } = waiting;
        let Ask::Changes { root, namespace, since } = ask else { return };
        let changes = self.changes(root, namespace, since.as_ref());
        if since.is_some()
            && let Err(reason) = &changes
        {
            self.count_fallback(reason);
        }
        let is_certain =
            !matches!(changes.as_ref().map_err(String::as_str), Err("root" | "mount_namespace" | "watch_limit"));
        let token = is_certain.then(|| self.watches.token());
        self.last_asked = self.watches.sequence;
        let reply = Reply::Changes(ChangeAnswer { token, changes });
        if !send(&mut client, &reply) {
            self.count_fallback("late");
        }
    }

    fn changes(
        &mut self,
        root: (u64, u64),
        namespace: (u64, u64),
        since: Option<&WatchToken>,
    ) -> Result<ChangedDirectories, String> {
        if root != self.identity {
            return Err("root".into());
        }
        if namespace != self.namespace {
            return Err("mount_namespace".into());
        }
        if self.mounts.changed_near(self.path).unwrap_or(true) {
            self.rebuild();
            return Err("mounts".into());
        }
        if self.watches.tree.shortage.is_some() {
            return Err("watch_limit".into());
        }
        let Some(since) = since else { return Err("first".into()) };
        if since.instance != self.watches.instance || since.sequence > self.watches.sequence {
            return Err("restarted".into());
        }
        let found = self.watches.tree.since(since.sequence);
        if found.here.len() + found.whole.len() > MANY_DIRECTORIES {
            return Err("many".into());
        }
        Ok(ChangedDirectories { here: found.here, whole: found.whole })
    }

    /// Starts over after events were lost.
    fn renew_watches(&mut self, reason: &str) {
        self.count_fallback(reason);
        self.rebuild();
        let now = Instant::now();
        self.schedule.iter_mut().filter(|_| !self.is_restoring).for_each(|schedule| schedule.changed(now));
        for waiting in std::mem::take(&mut self.waiting) {
            // Their cookies were lost with the other events.
            self.remove_cookie(waiting.cookie);
            let Waiting { mut client, .. } = waiting;
            let answer = ChangeAnswer { token: Some(self.watches.token()), changes: Err(reason.to_owned()) };
            send(&mut client, &Reply::Changes(answer));
        }
    }

    fn rebuild(&mut self) {
        let build = || -> io::Result<Watches> {
            let store = Dir::open(self.store())?;
            let skipped = self.watches.tree.skipped().clone();
            Watches::new(&self.root, self.path, &self.cookies, &store, skipped, mount_points(&self.mounts, self.path))
        };
        match build() {
            Ok(watches) => {
                self.watches = watches;
                self.is_restoring = private::exists(&self.store().join("journal"));
            }
            // Without watches there is nothing to answer from.
            Err(_) => self.end = Some(WatchEnd::Gone),
        }
    }

    /// Returns the directory of the store's own files.
    fn store(&self) -> &Path {
        self.files.directory.parent().unwrap_or(&self.files.directory)
    }

    fn count_fallback(&mut self, reason: &str) {
        *self.report.fallbacks.entry(reason.to_owned()).or_default() += 1;
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Some(mut client) = self.listener.accept(PATIENCE)? {
            let question = client.read_line(MAX_LINE_BYTES).ok().and_then(|line| serde_json::from_slice(&line).ok());
            let Some(Question { version: VERSION, ask }) = question else {
                send(&mut client, &Reply::Refused("the question is from another version".into()));
                continue;
            };
            self.last_activity = Instant::now();
            self.take_question(client, ask);
        }
        Ok(())
    }

    fn take_question(&mut self, mut client: Stream, ask: Ask) {
        let reply = match ask {
            Ask::Changes { .. } => {
                self.next_cookie += 1;
                let cookie = self.next_cookie;
                if self.cookies.create_own_file(cookie_name(cookie).as_bytes()).is_err() {
                    // Without a cookie nobody knows which events are still to come.
                    self.count_fallback("cookie");
                    let answer = ChangeAnswer { token: None, changes: Err("cookie".into()) };
                    send(&mut client, &Reply::Changes(answer));
                    return;
                }
                self.remove_cookie(cookie);
                client.allow(COOKIE_PATIENCE);
                self.waiting.push(Waiting { cookie, client, ask, since: Instant::now() });
                return;
            }
            Ask::FellBack { reason } => {
                self.count_fallback(&reason);
                Reply::Done
            }
            Ask::Status => Reply::Status(self.status()),
            Ask::Stop => {
                self.end = Some(WatchEnd::Stopped);
                Reply::Done
            }
        };
        send(&mut client, &reply);
    }

    fn remove_cookie(&self, cookie: u64) {
        // A cookie that stays is removed when a watcher starts.
        self.cookies.remove_own_file(cookie_name(cookie).as_bytes()).ok();
    }

    fn give_up_late_cookies(&mut self) {
        let (late, waiting): (Vec<_>, Vec<_>) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition(|waiting| waiting.since.elapsed() > COOKIE_PATIENCE);
        self.waiting = waiting;
        late.iter().for_each(|_| self.count_fallback("late"));
    }

    fn status(&self) -> WatcherReport {
        WatcherReport {
            directories: self.watches.tree.directories() as u64,
            pending: self.watches.tree.changed_since(self.last_asked) as u64,
            ..self.report.clone()
        }
    }

    /// Ends the watcher if its workspace is gone, or nothing happened for a long time.
    fn look_around(&mut self) {
        let found = disk::stamp_following(self.path).ok().flatten().map(|stamp| (stamp.device, stamp.inode));
        if found != Some(self.identity) || !private::exists(&self.files.directory) {
            self.end = Some(WatchEnd::Gone);
        }
        if self.times.idle_end.is_some_and(|idle_end| self.last_activity.elapsed() >= idle_end) {
            self.end.get_or_insert(WatchEnd::Idle);
        }
    }

    fn start_jobs<'scope>(&mut self, scope: &'scope Scope<'scope, '_>, reports: &Sender<Report>, waker: &Waker)
    where
        'a: 'scope,
    {
        let now = Instant::now();
        let duties = self.duties;
        if self.had_events && !self.is_comparing && self.last_comparison + self.times.compare_every <= now {
            (self.is_comparing, self.had_events) = (true, false);
            let (reports, waker) = (reports.clone(), waker.clone());
            scope.spawn(move || {
                reports.send(Report::Compared(duties.compare())).ok();
                waker.wake();
            });
        }
        if let Some(schedule) = self.schedule.as_mut()
            && schedule.due().is_some_and(|due| due <= now)
            && let Some((_, saver)) = duties.auto()
        {
            schedule.begin();
            let (reports, waker) = (reports.clone(), waker.clone());
            scope.spawn(move || {
                reports.send(Report::Saved(saver.save())).ok();
                waker.wake();
            });
        }
    }

    fn take_reports(&mut self, arrived: &Receiver<Report>) {
        for report in arrived.try_iter() {
            match report {
                Report::Compared(compared) => {
                    (self.is_comparing, self.last_comparison) = (false, Instant::now());
                    compared.into_iter().for_each(|compared| self.compared(compared));
                }
                Report::Saved(outcome) => {
                    if let Some(schedule) = self.schedule.as_mut() {
                        schedule.end(&outcome, Instant::now());
                    }
                    match outcome {
                        AutoOutcome::Failed(problem) => self.report.problem = Some(problem),
                        AutoOutcome::Done => self.report.problem = None,
                        AutoOutcome::Later => {}
                    }
                }
            }
        }
    }

    /// Counts what a full scan found and no event had reported. The next answers contain it.
    fn compared(&mut self, compared: Comparison) {
        let Watches { queue, tree, sequence, instance, .. } = &mut self.watches;
        if compared.since.instance == *instance {
            let found = tree.since(compared.since.sequence);
            let here: HashSet<WorkspacePath> = found.here.into_iter().collect();
            for path in compared.differing {
                let is_known = here.contains(&path) || found.whole.iter().any(|whole| path.is_within(whole));
                if !is_known {
                    self.report.missed += 1;
                    *sequence += 1;
                    tree.note_path(&path, *sequence);
                }
            }
        }
        *sequence += 1;
        tree.skip(&self.root, queue, compared.skipped, *sequence);
    }
}

impl Watches {
    fn new(
        root: &Dir,
        path: &Path,
        cookies: &Dir,
        store: &Dir,
        skipped: HashSet<WorkspacePath>,
        mounts: HashSet<WorkspacePath>,
    ) -> io::Result<Self> {
        let queue = EventQueue::new()?;
        let cookie_watch = queue.watch_names(cookies)?;
        let store_watch = queue.watch_names(store)?;
        let beside = path.parent().and_then(|parent| Dir::open(parent).ok());
        let beside_watch = beside.and_then(|beside| queue.watch_names(&beside).ok());
        let tree = WatchTree::build(root, &queue, skipped, mounts)?;
        Ok(Self { tree, queue, instance: random_id()?, sequence: 0, cookie_watch, store_watch, beside_watch })
    }

    fn token(&self) -> WatchToken {
        WatchToken { instance: self.instance.clone(), sequence: self.sequence }
    }
}

fn mount_points(mounts: &MountTable, root: &Path) -> HashSet<WorkspacePath> {
    mounts.below(root).into_iter().filter_map(|path| WorkspacePath::new(path).ok()).collect()
}

fn cookie_name(number: u64) -> String {
    format!("{number}")
}

/// Sends a reply. Returns whether the client took it.
fn send(client: &mut Stream, reply: &Reply) -> bool {
    serde_json::to_vec(reply).is_ok_and(|line| client.write_line(&line).is_ok())
}
