//! Random sequences of edits, saves, restores, undos, redos, deletions and crashes, by one process and by several,
//! against a plain model of what the tree and the timeline must be.
//!
//! Edits go to the disk and are read back by the testkit; what a save captures, what a restore makes of a tree and what
//! retention takes is said here once more, over maps and lists. `BACKTRAIL_LONG=1` runs a hundred thousand steps, from a
//! new seed each time.

mod crash;
mod repositories;
mod run;
mod timeline;
mod tree;

use std::cell::Cell;

use backtrail::{CheckpointId, Kind, Only, RestoreRequest, SaveRequest, Way};
use backtrail_testkit::{
    TestWorkspace,
    crash::{self as driver, Driver, Ended, Fault},
};
use proptest::{
    prelude::*,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};
use run::Run;
use tree::*;

const DRIVER: Driver = Driver { child_test: "model::child" };

/// Paths that operations work on: files, and what some of them lie in.
const PATHS: [&str; 8] = ["a", "b", "d", "d/x", "d/y", "d/e", "d/e/z", "e/deep/er"];
const IGNORED: [&str; 4] = ["i.ign", "d/i.ign", "d/e/i.ign", "b/i.ign"];
const PRECIOUS: [&str; 2] = [".env", "d/.env"];
const FILE_MODES: [u32; 5] = [0o644, 0o755, 0o600, 0o400, 0o4755];
const DIRECTORY_MODES: [u32; 3] = [0o755, 0o700, 0o2775];
/// Directories that become repositories.
const REPOSITORIES: [&str; 3] = ["d", "d/e", "n"];
const KINDS: [Kind; 6] = [Kind::Manual, Kind::Automatic, Kind::Step, Kind::Turn, Kind::Session, Kind::Feature];

#[derive(Debug, Clone)]
enum Op {
    Write(usize),
    WriteAgain(usize),
    Append(usize),
    Delete(usize),
    Chmod(usize, usize),
    Link(usize, usize),
    Rename(usize, usize),
    MakeDirectory(usize),
    Ignored(usize),
    DeleteIgnored(usize),
    Precious(usize),
    DeletePrecious(usize),
    State(usize),
    DeleteState(usize),
    Repository(usize),
    Save(Wish),
    Do(Restoring),
    Forget(Forgetting),
    Reopen,
    /// The next operations go through the other handle.
    Switch,
    Crash(Restoring, usize, AfterCrash),
    CrashOther(Other, usize),
    Together(usize),
}

/// What a save is asked for.
#[derive(Debug, Clone)]
struct Wish {
    kind: Kind,
    /// The conversation goes on by so many lines, and is handed over with the feature list.
    conversation: Option<usize>,
    allow_empty: bool,
}

impl Default for Wish {
    fn default() -> Self {
        Self { kind: Kind::Manual, conversation: None, allow_empty: false }
    }
}

/// What concerns checkpoints and no file; checkpoints are counted back from the newest.
#[derive(Debug, Clone)]
enum Forgetting {
    Delete(usize),
    Prune,
    Pin(usize),
    Unpin(usize),
}

/// What is killed besides restores.
#[derive(Debug, Clone)]
enum Other {
    Save,
    Delete(usize),
    Prune,
    Pin(usize),
}

/// A restore in one of its forms; checkpoints are counted back from the newest.
#[derive(Debug, Clone)]
enum Restoring {
    Whole(usize),
    Paths(usize, Vec<usize>),
    /// The agent's own files alone.
    State(usize),
    Undo,
    Redo,
}

/// The next command after a crash.
#[derive(Debug, Clone)]
enum AfterCrash {
    Recover,
    Abort,
    Save,
    /// Somebody writes before anything is recovered.
    Write(usize),
}

fn any_op() -> impl Strategy<Value = Op> {
    let path = || 0..PATHS.len();
    prop_oneof![
        6 => path().prop_map(Op::Write),
        2 => path().prop_map(Op::WriteAgain),
        3 => path().prop_map(Op::Append),
        4 => path().prop_map(Op::Delete),
        3 => (path(), 0..FILE_MODES.len()).prop_map(|(path, mode)| Op::Chmod(path, mode)),
        3 => (path(), path()).prop_map(|(path, target)| Op::Link(path, target)),
        3 => (path(), path()).prop_map(|(from, to)| Op::Rename(from, to)),
        4 => path().prop_map(Op::MakeDirectory),
        3 => (0..IGNORED.len()).prop_map(Op::Ignored),
        1 => (0..IGNORED.len()).prop_map(Op::DeleteIgnored),
        2 => (0..PRECIOUS.len()).prop_map(Op::Precious),
        1 => (0..PRECIOUS.len()).prop_map(Op::DeletePrecious),
        2 => (0..STATE.len()).prop_map(Op::State),
        1 => (0..STATE.len()).prop_map(Op::DeleteState),
        1 => (0..REPOSITORIES.len()).prop_map(Op::Repository),
        10 => any_wish().prop_map(Op::Save),
        20 => any_restoring().prop_map(Op::Do),
        4 => (0..6_usize).prop_map(|back| Op::Forget(Forgetting::Delete(back))),
        2 => Just(Op::Forget(Forgetting::Prune)),
        2 => (0..6_usize).prop_map(|back| Op::Forget(Forgetting::Pin(back))),
        1 => (0..6_usize).prop_map(|back| Op::Forget(Forgetting::Unpin(back))),
        1 => Just(Op::Reopen),
        3 => Just(Op::Switch),
        2 => (any_other(), 1..40_usize).prop_map(|(what, point)| Op::CrashOther(what, point)),
        1 => (0..60_usize).prop_map(Op::Together),
        3 => (any_restoring(), 1..70_usize, any_after()).prop_map(|(what, point, next)| Op::Crash(what, point, next)),
    ]
}

fn any_wish() -> impl Strategy<Value = Wish> {
    let conversation = prop_oneof![6 => Just(None), 2 => (1..4_usize).prop_map(Some), 1 => prop_oneof![
        8 => Just(Some(20)), 1 => Just(Some(0))
    ]];
    (0..KINDS.len() + 3, conversation, prop::bool::weighted(0.1)).prop_map(|(kind, conversation, allow_empty)| Wish {
        kind: KINDS.get(kind).copied().unwrap_or(Kind::Manual),
        conversation,
        allow_empty,
    })
}

fn any_other() -> impl Strategy<Value = Other> {
    prop_oneof![
        2 => Just(Other::Save),
        2 => (0..4_usize).prop_map(Other::Delete),
        1 => Just(Other::Prune),
        1 => (0..4_usize).prop_map(Other::Pin),
    ]
}

fn any_restoring() -> impl Strategy<Value = Restoring> {
    prop_oneof![
        4 => (0..4_usize).prop_map(Restoring::Whole),
        4 => (0..4_usize, prop::collection::vec(0..PATHS.len(), 1..3)).prop_map(|(at, paths)| Restoring::Paths(at, paths)),
        1 => (0..4_usize).prop_map(Restoring::State),
        4 => Just(Restoring::Undo),
        3 => Just(Restoring::Redo),
    ]
}

fn any_after() -> impl Strategy<Value = AfterCrash> {
    prop_oneof![
        Just(AfterCrash::Recover),
        Just(AfterCrash::Abort),
        Just(AfterCrash::Save),
        (0..PATHS.len()).prop_map(AfterCrash::Write),
    ]
}

/// What children of the driver run; by itself it does nothing.
#[test]
fn child() {
    driver::child(|place, operation| {
        let ws = TestWorkspace::attach(place);
        let workspace = ws.open();
        let words: Vec<&str> = operation.split(' ').collect();
        let id = |id: &str| id.parse::<CheckpointId>().map_err(|_| "no id".to_owned());
        match words.as_slice() {
            ["save"] => workspace.save(&SaveRequest::default(), ws.now()).map(drop),
            ["saves", times] => {
                let request = SaveRequest { allow_empty: true, ..SaveRequest::default() };
                let times: usize = times.parse().unwrap();
                (0..times).try_for_each(|_| workspace.save(&request, ws.now()).map(drop))
            }
            ["delete", word] => workspace.delete(&[id(word)?], true, ws.now()).map(drop),
            ["prune"] => workspace.prune(ws.now()).map(drop),
            ["pin", word] => workspace.pin(&id(word)?, ws.now()).map(drop),
            ["state", word] => {
                let request = RestoreRequest { only: Only::State, ..RestoreRequest::whole(id(word)?) };
                workspace.restore(&request, ws.now()).map(drop)
            }
            ["undo"] => workspace.undo(ws.now()).map(drop),
            ["redo"] => workspace.redo(ws.now()).map(drop),
            ["restore", word, paths @ ..] => {
                let target = id(word)?;
                let scope =
                    to_scope(&(!paths.is_empty()).then(|| paths.iter().map(|path| path.as_bytes().to_vec()).collect()));
                workspace.restore(&RestoreRequest { scope, ..RestoreRequest::whole(target) }, ws.now()).map(drop)
            }
            other => panic!("unknown operation {other:?}"),
        }
        .map_err(|error| error.to_string())
    });
}

#[test]
fn every_restore_gives_the_tree_that_the_model_gives_and_nothing_is_lost() {
    let is_long = backtrail_testkit::is_long();
    let cases = if is_long { 5000 } else { 80 };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 600, ..Config::default() };
    let mut runner = if is_long {
        TestRunner::new(config)
    } else {
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
    };
    let (steps, tried) = (Cell::new(0), Cell::new(0));
    let sequences = prop::collection::vec(any_op(), 8..36);
    let result = runner.run(&sequences, |operations| {
        let mut run = Run::new();
        for operation in &operations {
            run.step(operation)?;
            steps.set(steps.get() + 1);
            if is_long && steps.get() % 500 == 0 {
                println!("{} steps so far", steps.get());
            }
        }
        tried.set(tried.get() + 1);
        run.end()
    });
    println!("{} steps in {} cases", steps.get(), tried.get());
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(!is_long || steps.get() >= 100_000, "{} steps are few", steps.get());
}

/// Found by the model: killed between the note that it was done and the end of the journal, an aborted restore gave the
/// old files back, but the workspace stood on the target and an undo was offered.
#[test]
fn an_aborted_restore_leaves_no_trace_of_itself() {
    let prepare = || {
        let ws = TestWorkspace::new();
        ws.write("a", "1\n");
        let one = ws.save();
        ws.write("a", "2\n");
        let two = ws.save();
        (ws, one.id, two.id)
    };
    let (ws, one, _) = prepare();
    let points = DRIVER.points(&ws.base(), &format!("restore {one}"));
    for point in 1..=points.len() {
        let (ws, one, two) = prepare();
        assert_eq!(DRIVER.run(&ws.base(), &format!("restore {one}"), point, Fault::Kill), Ended::Killed);
        let what = format!("killed at point {point} ({})", points[point - 1]);
        ws.open().recover(Way::Back, ws.now()).unwrap_or_else(|error| panic!("{what}: {error}"));
        let (stands_on, is_restored) = (ws.open().current().unwrap(), ws.read("a").unwrap() == b"1\n");
        assert_eq!(stands_on, Some(if is_restored { one } else { two }), "{what}: where the workspace stands");
        let undone = ws.open().undo(ws.now()).unwrap();
        assert_eq!(undone.is_some(), is_restored, "{what}: what can be undone");
        assert_eq!(ws.read("a").unwrap(), b"2\n", "{what}");
    }
}
