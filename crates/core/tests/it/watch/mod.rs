//! The watcher: a save that relies on it captures what a full scan captures.

mod doubts;
mod mutations;
mod random;

use std::{
    os::{fd::AsFd, unix::net::UnixStream},
    sync::{Arc, mpsc::channel},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use backtrail::{
    AutoOutcome, AutoSaver, ChangeAnswer, ChangeSource, Checkpoint, Options, SaveRequest, WatchEnd, WatchRequest,
    WatchToken, Watched, WatcherReport, WatcherUse, Workspace,
};
use backtrail_testkit::TestWorkspace;

/// A watcher in a thread of this process.
pub(crate) struct RunningWatcher {
    stop: UnixStream,
    thread: Option<JoinHandle<Watched>>,
}

struct NoSaver;

impl AutoSaver for NoSaver {
    fn save(&self) -> AutoOutcome {
        AutoOutcome::Done
    }
}

impl RunningWatcher {
    /// Starts a watcher and waits until it answers.
    pub(crate) fn start(ws: &TestWorkspace) -> Self {
        Self::start_with(ws.open(), WatchRequest::new(ws.now()))
    }

    pub(crate) fn start_with(workspace: Workspace, request: WatchRequest) -> Self {
        let (stop, stopped) = UnixStream::pair().unwrap();
        let (ready, is_ready) = channel();
        let thread = std::thread::spawn(move || {
            let ready = &mut |_: u64| ready.send(()).unwrap();
            workspace.watch(&request, &NoSaver, stopped.as_fd(), ready).unwrap()
        });
        is_ready.recv().unwrap();
        Self { stop, thread: Some(thread) }
    }

    /// Ends the watcher, and returns how it ended.
    pub(crate) fn stop(mut self) -> Watched {
        std::io::Write::write_all(&mut self.stop, &[0]).ok();
        self.thread.take().unwrap().join().unwrap()
    }

    /// Waits until the watcher ends by itself.
    pub(crate) fn wait(mut self) -> Watched {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for RunningWatcher {
    fn drop(&mut self) {
        std::io::Write::write_all(&mut self.stop, &[0]).ok();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Opens the workspace so that nothing relies on the watcher.
fn without_watcher(ws: &TestWorkspace) -> Workspace {
    let settings = backtrail::Settings::default().with_workspace(&ws.root()).unwrap();
    ws.open_as(&ws.root(), Options { settings, watcher: WatcherUse::Off, ..Options::default() })
}

/// Opens the workspace with a source of changes of the test's own.
fn open_with_source(ws: &TestWorkspace, source: Arc<dyn ChangeSource>) -> Workspace {
    let settings = backtrail::Settings::default().with_workspace(&ws.root()).unwrap();
    ws.open_as(&ws.root(), Options { settings, change_source: Some(source), ..Options::default() })
}

/// Saves with the watcher if there is a change, and returns the current checkpoint.
fn save(ws: &TestWorkspace) -> Checkpoint {
    ws.save_with(&SaveRequest::default()).checkpoint
}

/// Saves with the watcher, and checks that a full scan finds nothing that the checkpoint lacks.
#[track_caller]
fn assert_save_is_exact(ws: &TestWorkspace, what: &str) -> Checkpoint {
    let saved = save(ws);
    let left = without_watcher(ws).status(None).unwrap();
    assert_eq!(left.changes, [], "{what}: found by a full scan after the save");
    saved
}

fn report(ws: &TestWorkspace) -> WatcherReport {
    ws.open().watcher().unwrap().expect("a watcher is running")
}

/// Waits for a condition that another thread brings about.
#[track_caller]
fn wait_until(what: &str, mut is_met: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(120);
    while !is_met() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A source that answers from a watcher's memory of the past, or lies.
#[derive(Debug)]
struct Liar;

impl ChangeSource for Liar {
    fn changes_since(&self, _: (u64, u64), since: Option<&WatchToken>) -> Option<ChangeAnswer> {
        let token = Some(WatchToken { instance: "liar".into(), sequence: 1 });
        let changes = since.map(|_| backtrail::ChangedDirectories::default()).ok_or_else(|| "first".to_owned());
        Some(ChangeAnswer { token, changes })
    }

    fn note_fallback(&self, _: &str) {}
}

/// Without this the other tests would prove nothing: they would pass if every save scanned everything.
#[test]
fn a_save_looks_only_at_what_the_watcher_names() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "old");
    ws.write("e/b", "old");
    let workspace = open_with_source(&ws, Arc::new(Liar));
    workspace.save(&SaveRequest::default(), ws.now()).unwrap();
    ws.write("d/a", "new");
    let saved = workspace.save(&SaveRequest::default(), ws.now()).unwrap();
    assert!(!saved.created, "the source said that nothing changed");
    assert_eq!(workspace.status(None).unwrap().changes, []);
    assert_eq!(without_watcher(&ws).status(None).unwrap().changes.len(), 1);
}

#[test]
fn a_watched_save_reads_a_small_part_of_the_stat_cache() {
    let ws = TestWorkspace::new();
    for directory in 0..80 {
        for file in 0..20 {
            ws.write(format!("top/d{directory}/file-{file}"), format!("{directory} {file}"));
        }
    }
    let workspace = open_with_source(&ws, Arc::new(Liar));
    let request = SaveRequest { allow_empty: true, ..SaveRequest::default() };
    workspace.save(&request, ws.now()).unwrap();
    let cache = ws.store().join("backtrail/stat-cache");
    let whole = std::fs::metadata(&cache).unwrap().len();
    backtrail::disk::read_counts::forget(&cache);
    assert!(workspace.save(&request, ws.now()).unwrap().created);
    let read = backtrail::disk::read_counts::bytes_read(&cache);
    assert!(read > 0 && read < whole / 8, "{read} bytes of {whole}");
}

#[test]
fn a_restore_never_relies_on_the_watcher() {
    let ws = TestWorkspace::new();
    ws.write("d/a", "old");
    let workspace = open_with_source(&ws, Arc::new(Liar));
    let first = workspace.save(&SaveRequest::default(), ws.now()).unwrap().checkpoint;
    ws.write("d/a", "new");
    ws.write("d/only", "copy");
    let outcome = workspace.restore(&backtrail::RestoreRequest::whole(first.id), ws.now()).unwrap();
    assert_eq!(ws.read("d/a").unwrap(), b"old");
    let safety = outcome.safety.expect("unsaved work is kept");
    assert!(ws.is_in_store(b"new") && ws.is_in_store(b"copy"), "{safety}");
    workspace.undo(ws.now()).unwrap();
    assert_eq!(ws.read("d/only").unwrap(), b"copy");
}

#[test]
fn a_watcher_answers_and_ends_when_asked() {
    let ws = TestWorkspace::new();
    ws.write("a/b/c", "1");
    assert_eq!(ws.open().watcher().unwrap(), None);
    assert!(!ws.open().stop_watcher().unwrap());
    let watcher = RunningWatcher::start(&ws);
    assert_eq!(report(&ws).directories, 3);
    save(&ws);
    ws.write("a/b/c", "2");
    assert_save_is_exact(&ws, "one edit");
    assert_eq!(report(&ws).fallbacks.len(), 0);
    assert!(ws.open().stop_watcher().unwrap());
    assert_eq!(watcher.wait(), Watched::Ended(WatchEnd::Stopped));
    assert_eq!(ws.open().watcher().unwrap(), None);
    ws.write("a/b/c", "3");
    assert_save_is_exact(&ws, "without a watcher");
}

#[test]
fn nothing_is_written_into_the_workspace() {
    let ws = TestWorkspace::new();
    ws.write("a/b", "1");
    let before = ws.manifest();
    let watcher = RunningWatcher::start(&ws);
    save(&ws);
    save(&ws);
    assert_eq!(ws.manifest().differences(&before), Vec::<String>::new());
    watcher.stop();
    ws.assert_store_is_sound();
}

#[test]
fn a_second_watcher_finds_the_first() {
    let ws = TestWorkspace::new();
    let watcher = RunningWatcher::start(&ws);
    let (_stop, stopped) = UnixStream::pair().unwrap();
    let second = ws.open().watch(&WatchRequest::new(ws.now()), &NoSaver, stopped.as_fd(), &mut |_| {}).unwrap();
    assert_eq!(second, Watched::RunsElsewhere);
    watcher.stop();
}

/// The address of a socket holds 107 bytes.
#[test]
fn a_store_with_a_long_path_has_a_watcher() {
    let ws = TestWorkspace::new();
    ws.write("a/b", "1");
    let store = ws.base().join("long".repeat(50)).join("store");
    assert!(store.as_os_str().len() >= 200);
    let open = || {
        let location = backtrail::locate(&backtrail::Start::At(ws.root()), &ws.stores(), Some(&store)).unwrap();
        Workspace::new(location, Options::default())
    };
    let watcher = RunningWatcher::start_with(open(), WatchRequest::new(ws.now()));
    open().save(&SaveRequest::default(), ws.now()).unwrap();
    ws.write("a/b", "2");
    assert!(open().save(&SaveRequest::default(), ws.now()).unwrap().created);
    assert_eq!(open().watcher().unwrap().unwrap().fallbacks.len(), 0);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::symlink_metadata(store.join("backtrail/watch/socket")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    watcher.stop();
}

#[test]
fn a_watcher_ends_with_its_workspace() {
    let ws = TestWorkspace::new();
    let watcher = RunningWatcher::start(&ws);
    std::fs::remove_dir(ws.root()).unwrap();
    assert_eq!(watcher.wait(), Watched::Ended(WatchEnd::Gone));
}

#[test]
fn a_watcher_ends_when_nothing_happens() {
    let ws = TestWorkspace::new();
    let request = WatchRequest { idle_end: Some(Duration::from_millis(50)), ..WatchRequest::new(ws.now()) };
    assert_eq!(RunningWatcher::start_with(ws.open(), request).wait(), Watched::Ended(WatchEnd::Idle));
}
