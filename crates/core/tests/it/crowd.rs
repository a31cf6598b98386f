//! Many processes on one workspace at once, with threads that edit its files: no save fails, no checkpoint is lost, no
//! file is torn, and an edit during a restore is in the workspace or in the store.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use backtrail::{ListFilter, Options, RestoreRequest, SaveRequest, Start, Workspace};
use backtrail_testkit::{Found, TestWorkspace, is_long};

const ROOT: &str = "BACKTRAIL_CROWD_ROOT";
const STORES: &str = "BACKTRAIL_CROWD_STORES";
const TASK: &str = "BACKTRAIL_CROWD_TASK";
const ROUNDS: &str = "BACKTRAIL_CROWD_ROUNDS";

fn open(root: PathBuf, stores: PathBuf) -> Workspace {
    let location = backtrail::locate(&Start::At(root), &stores, None).unwrap();
    Workspace::new(location, Options { patience: Duration::from_secs(240), ..Options::default() })
}

fn now() -> jiff::Timestamp {
    jiff::Timestamp::now()
}

/// The body of the child processes. Does nothing as a test of its own.
#[test]
fn crowd_child() {
    let Some(root) = std::env::var_os(ROOT) else { return };
    let workspace = open(root.into(), std::env::var_os(STORES).unwrap().into());
    let task = std::env::var(TASK).unwrap();
    let rounds: usize = std::env::var(ROUNDS).unwrap().parse().unwrap();
    for round in 0..rounds {
        let message = format!("{task} {round}");
        match task.split('-').next().unwrap() {
            "save" => {
                std::fs::write(workspace.root().join(&task), format!("{message}\n")).unwrap();
                let request =
                    SaveRequest { message: Some(message.clone()), allow_empty: true, ..SaveRequest::default() };
                let saved = workspace.save(&request, now()).unwrap_or_else(|error| panic!("{message}: {error}"));
                println!("saved {}", saved.checkpoint.id);
            }
            "restore" => {
                let list = workspace.list(&ListFilter::default()).unwrap();
                let target = &list[round * 7 % list.len()];
                // The restore may fail: another process may have deleted the checkpoint, or may write to the files.
                let request = RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(target.id) };
                drop(workspace.restore(&request, now()).inspect_err(|error| println!("{message}: {error}")));
            }
            "prune" => {
                workspace.prune(now()).unwrap_or_else(|error| panic!("{message}: {error}"));
                std::thread::sleep(Duration::from_millis(20));
            }
            other => panic!("unknown task {other}"),
        }
    }
}

fn start(ws: &TestWorkspace, task: &str, rounds: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crowd::crowd_child", "--nocapture"])
        .env(ROOT, ws.root())
        .env(STORES, ws.stores())
        .env(TASK, task)
        .env(ROUNDS, rounds.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns a line that starts with its own length, so that a torn line is noticed.
fn whole_line(editor: usize, number: usize) -> String {
    let text = format!("editor {editor} wrote this as number {number} {}", "x".repeat(number * 13 % 200));
    format!("{} {text}\n", text.len())
}

fn is_whole(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let line = text.strip_suffix('\n').and_then(|line| line.split_once(' '));
    line.is_some_and(|(length, line)| length.parse() == Ok(line.len()))
}

#[test]
fn concurrent_saves_restores_prunes_and_edits_lose_nothing() {
    let (savers, rounds) = if is_long() { (16, 20) } else { (4, 4) };
    let ws = TestWorkspace::in_memory();
    ws.write("steady", "1\n");
    ws.write("edited/0", whole_line(0, 0));
    ws.save();
    let done = AtomicBool::new(false);
    let (root, done_ref) = (ws.root(), &done);
    let mut saved: BTreeSet<String> = BTreeSet::new();
    let written = std::thread::scope(|scope| {
        // Each thread writes a temporary file and renames it to its own file, as editors do.
        let editors: Vec<_> = (0..2)
            .map(|editor| {
                let root = root.clone();
                scope.spawn(move || {
                    let mut number = 0;
                    while !done_ref.load(Ordering::Acquire) {
                        number += 1;
                        drop(std::fs::create_dir_all(root.join("edited")));
                        let (part, whole) =
                            (root.join(format!("edited/.{editor}.part")), root.join(format!("edited/{editor}")));
                        let wrote = std::fs::write(&part, whole_line(editor, number));
                        drop(wrote.and_then(|()| std::fs::rename(&part, &whole)));
                        std::thread::sleep(Duration::from_millis(3));
                    }
                    number
                })
            })
            .collect();
        let mut children: Vec<Child> =
            (0..savers).map(|number| start(&ws, &format!("save-{number}"), rounds)).collect();
        children.push(start(&ws, "restore-1", rounds));
        children.push(start(&ws, "restore-2", rounds));
        children.push(start(&ws, "prune-1", rounds));
        for child in children {
            let output = child.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{text}\n{errors}");
            saved.extend(text.lines().filter_map(|line| line.strip_prefix("saved ")).map(str::to_owned));
        }
        done.store(true, Ordering::Release);
        editors.into_iter().map(|editor| editor.join().unwrap()).sum::<usize>()
    });
    println!("{savers} processes saved {} times beside restores, prunes and {written} edits", saved.len());
    assert_eq!(saved.len(), savers * rounds, "two saves returned the same checkpoint");
    let list = ws.open().list(&ListFilter::default()).unwrap();
    let listed: BTreeSet<String> = list.iter().map(|checkpoint| checkpoint.id.to_string()).collect();
    assert_eq!(saved.difference(&listed).count(), 0, "a checkpoint is lost");
    ws.assert_store_is_sound();
    // Every edited file, on disk or in a checkpoint, holds one whole edit.
    let on_disk = ws.manifest();
    for (path, found) in on_disk.0.iter().filter(|(path, _)| path.starts_with(b"edited/") && !path.ends_with(b".part"))
    {
        let Found::File(_, bytes) = found else { continue };
        assert!(is_whole(bytes), "{}: torn", String::from_utf8_lossy(path));
    }
    for checkpoint in list.iter().take(if is_long() { usize::MAX } else { 6 }) {
        for (path, _, id) in ws.tree_in_store(&checkpoint.id) {
            if path.starts_with(b"edited/") && !path.ends_with(b".part") {
                let bytes = ws.store_git(&["cat-file", "blob", &id]);
                assert!(is_whole(&bytes), "{}: torn in {}", String::from_utf8_lossy(&path), checkpoint.id);
            }
        }
    }
}

/// A thread writes to one file all the time while the file is restored again and again.
#[test]
fn an_edit_during_a_restore_is_in_the_workspace_or_in_the_store() {
    let ws = TestWorkspace::in_memory();
    ws.write("file", whole_line(9, 0));
    ws.write("other", "1\n");
    let one = ws.save().id;
    let rounds = if is_long() { 400 } else { 25 };
    let (mut kept, mut edits) = (0, 0);
    for round in 0..rounds {
        // The temporary file is outside of the workspace, where no restore removes it.
        let (path, part) = (ws.path("file"), ws.outside().join("part"));
        std::fs::write(&path, whole_line(1, round)).unwrap();
        ws.write("other", format!("{round}\n"));
        let stop = AtomicBool::new(false);
        let last = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut number = 0;
                loop {
                    number += 1;
                    std::fs::write(&part, whole_line(2 + round, number)).unwrap();
                    std::fs::rename(&part, &path).unwrap();
                    if stop.load(Ordering::Acquire) {
                        return number;
                    }
                }
            });
            let outcome =
                ws.open().restore(&RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(one) }, ws.now());
            stop.store(true, Ordering::Release);
            let last = writer.join().unwrap();
            if let Ok(outcome) = outcome {
                kept += outcome.conflicts.len();
            }
            last
        });
        edits += last;
        // The last edit was made before, during or after the restore. It must not be lost in any case.
        let bytes = whole_line(2 + round, last).into_bytes();
        let is_there = ws.read("file") == Some(bytes.clone()) || ws.is_in_store(&bytes);
        assert!(is_there, "round {round}: the last of {last} edits is lost; the file is {:?}", ws.read("file"));
        assert!(ws.read("file").is_none_or(|bytes| is_whole(&bytes)), "torn");
    }
    println!("{rounds} restores during {edits} edits, {kept} conflicts reported");
    ws.assert_store_is_sound();
}

fn save_and_restore(workspace: Workspace, name: &str, first: backtrail::CheckpointId, rounds: usize) {
    for round in 0..rounds {
        // A restore of the other workspace may be removing the directory.
        drop(std::fs::write(workspace.root().join(name), format!("{round}\n")));
        workspace.save(&SaveRequest::default(), now()).unwrap();
        if round % 3 == 2 {
            let request = RestoreRequest { skip_conflicts: true, ..RestoreRequest::whole(first) };
            workspace.restore(&request, now()).unwrap();
            workspace.undo(now()).unwrap();
        }
    }
}

/// A directory and one below it are workspaces, saved and restored at the same time.
#[test]
fn a_parent_and_a_child_can_be_workspaces_at_once() {
    let ws = TestWorkspace::in_memory();
    ws.write("above", "1\n");
    ws.write("child/file", "1\n");
    let child_root = ws.path("child");
    let now = ws.now();
    let first = ws.open().save(&SaveRequest::default(), now).unwrap().checkpoint.id;
    let child_first = ws.open_at(&child_root).save(&SaveRequest::default(), now).unwrap().checkpoint.id;
    let rounds = if is_long() { 100 } else { 8 };
    std::thread::scope(|scope| {
        let (parent, child) = (open(ws.root(), ws.stores()), open(child_root.clone(), ws.stores()));
        scope.spawn(move || save_and_restore(parent, "above", first, rounds));
        scope.spawn(move || save_and_restore(child, "file", child_first, rounds));
    });
    ws.assert_store_is_sound();
    assert_eq!(ws.open_at(&child_root).verify().unwrap().damaged, []);
    // The child has checkpoints in its own store.
    let list = ws.open_at(&child_root).list(&ListFilter::default()).unwrap();
    assert!(list.len() >= 2);
}
