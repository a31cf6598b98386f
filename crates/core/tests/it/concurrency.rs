//! Several processes and threads on one workspace: no checkpoint is lost, and readers never wait.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    process::{Child, Command},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use backtrail::{ErrorCode, ListFilter, Options, SaveRequest, Scope, Start, Workspace};
use backtrail_testkit::TestWorkspace;

const ROOT: &str = "BACKTRAIL_TEST_ROOT";
const STORES: &str = "BACKTRAIL_TEST_STORES";
const NUMBER: &str = "BACKTRAIL_TEST_NUMBER";
const SAVES: usize = 5;

fn open(root: PathBuf, stores: PathBuf, patience: Duration) -> Workspace {
    let location = backtrail::locate(&Start::At(root), &stores, None).unwrap();
    Workspace::new(location, Options { patience, ..Options::default() })
}

fn save_own_file(workspace: &Workspace, name: &str, number: usize) -> backtrail::CheckpointId {
    std::fs::write(workspace.root().join(name), format!("{name} {number}\n")).unwrap();
    let request = SaveRequest { message: Some(format!("{name} {number}")), allow_empty: true, ..Default::default() };
    let now = jiff::Timestamp::from_millisecond(1_800_000_000_000 + number as i64).unwrap();
    workspace.save(&request, now).unwrap().checkpoint.id
}

/// The body of the child processes of [`concurrent_processes_lose_no_checkpoint`]. Does nothing as a test of its own.
#[test]
fn saving_child() {
    let Some(root) = std::env::var_os(ROOT) else { return };
    let stores = std::env::var_os(STORES).unwrap();
    let name = std::env::var(NUMBER).unwrap();
    let workspace = open(root.into(), stores.into(), Duration::from_secs(60));
    for number in 0..SAVES {
        save_own_file(&workspace, &name, number);
    }
}

#[test]
fn concurrent_processes_lose_no_checkpoint() {
    let ws = TestWorkspace::new();
    let start = |number: usize| -> Child {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "concurrency::saving_child"])
            .env(ROOT, ws.root())
            .env(STORES, ws.stores())
            .env(NUMBER, format!("p{number}"))
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let children: Vec<Child> = (0..4).map(start).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert_every_save_is_listed(&ws, (0..4).map(|number| format!("p{number}")).collect());
}

#[test]
fn concurrent_threads_lose_no_checkpoint() {
    let ws = TestWorkspace::new();
    let (root, stores) = (ws.root(), ws.stores());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (root, stores) = (root.clone(), stores.clone());
            scope.spawn(move || {
                let workspace = open(root, stores, Duration::from_secs(60));
                for number in 0..SAVES {
                    save_own_file(&workspace, &format!("t{thread}"), number);
                }
            });
        }
    });
    assert_every_save_is_listed(&ws, (0..4).map(|number| format!("t{number}")).collect());
}

/// Checks that every save is on the timeline, with its own sequence number and the file that it was made for.
#[track_caller]
fn assert_every_save_is_listed(ws: &TestWorkspace, names: Vec<String>) {
    let list = ws.open().list(&ListFilter::default()).unwrap();
    let messages: BTreeSet<String> = list.iter().map(|checkpoint| checkpoint.message.clone()).collect();
    let expected: BTreeSet<String> =
        names.iter().flat_map(|name| (0..SAVES).map(move |number| format!("{name} {number}"))).collect();
    assert_eq!(messages, expected);
    assert_eq!(list.len(), expected.len());
    let sequences: BTreeSet<u64> = list.iter().map(|checkpoint| checkpoint.sequence).collect();
    assert_eq!(sequences.len(), list.len(), "two checkpoints have the same sequence number");
    for pair in list.windows(2) {
        assert_eq!(pair[0].parent, Some(pair[1].id), "the parent is not the previous checkpoint");
    }
    for checkpoint in &list {
        let (name, _) = checkpoint.message.split_once(' ').unwrap();
        let content = ws.store_git(&["show", &format!("{}:{name}", checkpoint.id)]);
        assert_eq!(String::from_utf8_lossy(&content), format!("{}\n", checkpoint.message));
    }
    assert_eq!(ws.open().status(None).unwrap().changes, []);
    ws.assert_store_is_sound();
}

#[test]
fn readers_see_a_consistent_store_during_saves() {
    let ws = TestWorkspace::new();
    ws.write("a", "0");
    let first = ws.save().id;
    let (root, stores) = (ws.root(), ws.stores());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let workspace = open(root.clone(), stores.clone(), Duration::ZERO);
            let mut seen = 1;
            let mut rounds = 0;
            while !done.load(Ordering::Acquire) || rounds == 0 {
                let list = workspace.list(&ListFilter::default()).unwrap();
                assert!(list.len() >= seen, "{} checkpoints after {seen}", list.len());
                seen = list.len();
                assert_eq!(list.last().unwrap().id, first);
                workspace.show(&list[0].id).unwrap();
                workspace.diff(Some(first), Some(list[0].id), &Scope::Whole).unwrap();
                assert_eq!(workspace.verify().unwrap().damaged, []);
                rounds += 1;
            }
        });
        let workspace = open(root.clone(), stores.clone(), Duration::from_secs(60));
        // Enough saves that packs are merged and refs are packed while the reader works.
        for number in 1..110 {
            save_own_file(&workspace, "a", number);
            if reader.is_finished() {
                break;
            }
        }
        done.store(true, Ordering::Release);
        reader.join().unwrap();
    });
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap().len(), 110);
}

#[test]
fn a_save_succeeds_while_files_appear_and_vanish() {
    let ws = TestWorkspace::new();
    ws.write("steady", "1\n");
    for number in 0..60 {
        ws.write(format!("d{}/{number}", number % 6), "x\n");
    }
    let root = ws.root();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0_usize;
            while !done.load(Ordering::Acquire) {
                let directory = root.join(format!("d{}", number % 6));
                drop(std::fs::write(directory.join("come"), "y".repeat(number % 100)));
                drop(std::fs::rename(directory.join("come"), directory.join("gone")));
                drop(std::fs::rename(&directory, root.join("moved")));
                drop(std::fs::rename(root.join("moved"), &directory));
                drop(std::fs::remove_file(directory.join("gone")));
                drop(std::os::unix::fs::symlink("x", directory.join("gone")));
                drop(std::fs::remove_file(directory.join("gone")));
                drop(std::fs::create_dir(directory.join("gone")));
                drop(std::fs::remove_dir(directory.join("gone")));
                number += 1;
            }
        });
        let saves: Vec<_> = (0..12).map(|_| ws.open().save(&SaveRequest::default(), ws.now())).collect();
        done.store(true, Ordering::Release);
        for saved in saves {
            let saved = saved.unwrap();
            assert!(ws.paths_in_store(&saved.checkpoint.id).contains(&"steady".to_owned()));
        }
    });
    let settled = ws.save_with(&SaveRequest::default()).checkpoint;
    assert_eq!(ws.paths_in_store(&settled.id).len(), 61, "a save captures every file once the writes have stopped");
    ws.assert_store_is_sound();
}

#[test]
fn a_held_lock_is_waited_for_and_never_stolen() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.save();
    ws.write("a", "2");
    let lock = std::fs::File::open(ws.store().join("backtrail/lock")).unwrap();
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let workspace = open(ws.root(), ws.stores(), Duration::from_millis(1));
    let error = workspace.save(&SaveRequest::default(), ws.now()).unwrap_err();
    assert_eq!(error.code(), ErrorCode::Busy);
    assert_eq!(workspace.status(None).unwrap().changes.len(), 1, "reading needs no lock");
    drop(lock);
    assert!(workspace.save(&SaveRequest::default(), ws.now()).unwrap().created);
}

#[test]
fn each_worktree_of_a_repository_has_its_own_history() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    ws.git_init();
    let tree = ws.outside().join("tree");
    ws.git(&["worktree", "add", "-q", "-b", "side", tree.to_str().unwrap()]);
    ws.save();
    let other = ws.open_at(&tree);
    assert_eq!(other.current().unwrap(), None);
    other.save(&SaveRequest::default(), ws.now()).unwrap();
    std::fs::write(tree.join("a"), "2").unwrap();
    assert!(other.save(&SaveRequest::default(), ws.now()).unwrap().created);
    assert!(!ws.save_with(&SaveRequest::default()).created);
    assert_ne!(other.store_directory(), ws.store());
}

/// Another process removes the store right before the save locks it.
#[test]
fn a_save_recreates_a_store_that_another_process_removes() {
    let ws = TestWorkspace::new();
    let workspace = open(ws.root(), ws.stores(), Duration::from_secs(60));
    ws.write("a", "1");
    let is_done = AtomicBool::new(false);
    let failed: Vec<String> = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                // Fails if there is no store, or if a save is using it.
                backtrail::forget(workspace.store_directory(), None, Duration::from_secs(60)).ok();
            }
        });
        let request = SaveRequest { allow_empty: true, ..SaveRequest::default() };
        let saves = (0..100).map(|_| workspace.save(&request, ws.now()));
        let failed = saves.filter_map(|saved| saved.err().map(|error| error.to_string())).collect();
        is_done.store(true, Ordering::Relaxed);
        failed
    });
    assert!(failed.is_empty(), "{failed:?}");
    save_own_file(&workspace, "a", 1);
    assert_eq!(workspace.verify().unwrap().damaged, []);
}

#[test]
fn concurrent_inits_create_the_store_once() {
    for _ in 0..25 {
        let ws = TestWorkspace::new();
        let barrier = std::sync::Barrier::new(4);
        let created: usize = std::thread::scope(|scope| {
            let (root, stores) = (ws.root(), ws.stores());
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    let (root, stores, barrier) = (root.clone(), stores.clone(), &barrier);
                    scope.spawn(move || {
                        let workspace = open(root, stores, Duration::from_secs(60));
                        barrier.wait();
                        workspace.init(jiff::Timestamp::UNIX_EPOCH)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| usize::from(thread.join().unwrap().unwrap())).sum()
        });
        assert_eq!(created, 1);
    }
}
