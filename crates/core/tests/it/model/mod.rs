//! Random sequences of edits, saves, restores, undos, redos, deletions and crashes, by one process and by several,
//! compared with a plain model of the tree and the timeline.
//!
//! The testkit makes the edits on disk and reads them back. The model computes the results of saves, restores and
//! retention independently, on maps and lists. `BACKTRAIL_LONG=1` runs a hundred thousand steps, from a new seed each
//! time.

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

/// Paths that operations work on: files, and the directories of some of them.
const PATHS: [&str; 8] = ["a", "b", "d", "d/x", "d/y", "d/e", "d/e/z", "e/deep/er"];
const IGNORED: [&str; 4] = ["i.ign", "d/i.ign", "d/e/i.ign", "b/i.ign"];
const PRECIOUS: [&str; 2] = [".env", "d/.env"];
const FILE_MODES: [u32; 5] = [0o644, 0o755, 0o600, 0o400, 0o4755];
const DIRECTORY_MODES: [u32; 3] = [0o755, 0o700, 0o2775];
/// Directories that an operation makes repositories.
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
    Save(SaveOptions),
    Restore(RestoreOp),
    Checkpoints(CheckpointOp),
    Reopen,
    /// The next operations go through the other handle.
    Switch,
    Crash(RestoreOp, usize, AfterCrash),
    CrashOther(OtherOp, usize),
    /// Concurrent saves. The child process is killed at this point.
    ConcurrentSaves(usize),
}

/// The options of a save.
#[derive(Debug, Clone)]
struct SaveOptions {
    kind: Kind,
    /// The number of lines that the conversation grows by. Zero stands for very many. It is attached
    /// together with the feature list.
    conversation: Option<usize>,
    allow_empty: bool,
}

impl Default for SaveOptions {
    fn default() -> Self {
        Self { kind: Kind::Manual, conversation: None, allow_empty: false }
    }
}

/// An operation on checkpoints that touches no file. Checkpoints are counted back from the newest.
#[derive(Debug, Clone)]
enum CheckpointOp {
    Delete(usize),
    Prune,
    Pin(usize),
    Unpin(usize),
}

/// An operation other than a restore that is killed.
#[derive(Debug, Clone)]
enum OtherOp {
    Save,
    Delete(usize),
    Prune,
    Pin(usize),
}

/// A restore in one of its forms. Checkpoints are counted back from the newest.
#[derive(Debug, Clone)]
enum RestoreOp {
    Whole(usize),
    Paths(usize, Vec<usize>),
    /// Restores only the agent's own files.
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
    /// Another process writes to this path before the recovery.
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
        10 => any_save_options().prop_map(Op::Save),
        20 => any_restore().prop_map(Op::Restore),
        4 => (0..6_usize).prop_map(|back| Op::Checkpoints(CheckpointOp::Delete(back))),
        2 => Just(Op::Checkpoints(CheckpointOp::Prune)),
        2 => (0..6_usize).prop_map(|back| Op::Checkpoints(CheckpointOp::Pin(back))),
        1 => (0..6_usize).prop_map(|back| Op::Checkpoints(CheckpointOp::Unpin(back))),
        1 => Just(Op::Reopen),
        3 => Just(Op::Switch),
        2 => (any_other_op(), 1..40_usize).prop_map(|(what, point)| Op::CrashOther(what, point)),
        1 => (0..60_usize).prop_map(Op::ConcurrentSaves),
        3 => (any_restore(), 1..70_usize, any_after_crash())
            .prop_map(|(what, point, next)| Op::Crash(what, point, next)),
    ]
}

fn any_save_options() -> impl Strategy<Value = SaveOptions> {
    let conversation = prop_oneof![6 => Just(None), 2 => (1..4_usize).prop_map(Some), 1 => prop_oneof![
        8 => Just(Some(20)), 1 => Just(Some(0))
    ]];
    (0..KINDS.len() + 3, conversation, prop::bool::weighted(0.1)).prop_map(|(kind, conversation, allow_empty)| {
        SaveOptions { kind: KINDS.get(kind).copied().unwrap_or(Kind::Manual), conversation, allow_empty }
    })
}

fn any_other_op() -> impl Strategy<Value = OtherOp> {
    prop_oneof![
        2 => Just(OtherOp::Save),
        2 => (0..4_usize).prop_map(OtherOp::Delete),
        1 => Just(OtherOp::Prune),
        1 => (0..4_usize).prop_map(OtherOp::Pin),
    ]
}

fn any_restore() -> impl Strategy<Value = RestoreOp> {
    prop_oneof![
        4 => (0..4_usize).prop_map(RestoreOp::Whole),
        4 => (0..4_usize, prop::collection::vec(0..PATHS.len(), 1..3)).prop_map(|(at, paths)| RestoreOp::Paths(at, paths)),
        1 => (0..4_usize).prop_map(RestoreOp::State),
        4 => Just(RestoreOp::Undo),
        3 => Just(RestoreOp::Redo),
    ]
}

fn any_after_crash() -> impl Strategy<Value = AfterCrash> {
    prop_oneof![
        Just(AfterCrash::Recover),
        Just(AfterCrash::Abort),
        Just(AfterCrash::Save),
        (0..PATHS.len()).prop_map(AfterCrash::Write),
    ]
}

/// Runs an operation in a child process of the driver. Does nothing as a test of its own.
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
            ["delete", word] => workspace.delete_for_good(&[id(word)?], true, ws.now()).map(drop),
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
fn tree_and_timeline_match_the_model_and_nothing_is_lost() {
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
        run.check_end()
    });
    println!("{} steps in {} cases", steps.get(), tried.get());
    if let Err(error) = result {
        panic!("{error}");
    }
    assert!(!is_long || steps.get() >= 100_000, "{} steps are too few", steps.get());
}

/// Regression: a restore was killed after it was logged and before its journal was removed. An abort then brought the
/// old files back, but the workspace stood on the target and an undo was possible.
#[test]
fn an_aborted_restore_leaves_no_trace() {
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
        assert_eq!(
            stands_on,
            Some(if is_restored { one } else { two }),
            "{what}: the checkpoint that the workspace stands on"
        );
        let undone = ws.open().undo(ws.now()).unwrap();
        assert_eq!(undone.is_some(), is_restored, "{what}: whether a restore can be undone");
        assert_eq!(ws.read("a").unwrap(), b"2\n", "{what}");
    }
}
