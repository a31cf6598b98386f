//! Random sequences of edits, saves, restores, undos, redos and crashes, against a plain model of what the tree must be.
//!
//! Edits go to the disk and are read back by the testkit; what a save captures and what a restore makes of a tree is said
//! here once more, over maps of paths. `BACKTRAIL_LONG=1` runs many more cases, from a new seed each time.

mod run;
mod tree;

use backtrail::{CheckpointId, RestoreRequest};
use backtrail_testkit::{
    TestWorkspace,
    crash::{self, Driver, Ended, Fault},
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
/// So many safety checkpoints are kept; undo reaches no further.
const KEPT_SAFETIES: usize = 20;

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
    Save,
    Do(Restoring),
    Reopen,
    Crash(Restoring, usize, AfterCrash),
}

/// A restore in one of its forms; checkpoints are counted back from the newest.
#[derive(Debug, Clone)]
enum Restoring {
    Whole(usize),
    Paths(usize, Vec<usize>),
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
        8 => Just(Op::Save),
        20 => any_restoring().prop_map(Op::Do),
        1 => Just(Op::Reopen),
        3 => (any_restoring(), 1..70_usize, any_after()).prop_map(|(what, point, next)| Op::Crash(what, point, next)),
    ]
}

fn any_restoring() -> impl Strategy<Value = Restoring> {
    prop_oneof![
        4 => (0..4_usize).prop_map(Restoring::Whole),
        4 => (0..4_usize, prop::collection::vec(0..PATHS.len(), 1..3)).prop_map(|(at, paths)| Restoring::Paths(at, paths)),
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
    crash::child(|place, operation| {
        let ws = TestWorkspace::attach(place);
        let workspace = ws.open();
        let words: Vec<&str> = operation.split(' ').collect();
        match words.as_slice() {
            ["undo"] => workspace.undo(ws.now()).map(drop),
            ["redo"] => workspace.redo(ws.now()).map(drop),
            ["restore", id, paths @ ..] => {
                let target: CheckpointId = id.parse().map_err(|_| "no id".to_owned())?;
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
    let is_long = std::env::var_os("BACKTRAIL_LONG").is_some();
    let cases = if is_long { 1500 } else { 120 };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 600, ..Config::default() };
    let mut runner = if is_long {
        TestRunner::new(config)
    } else {
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
    };
    let sequences = prop::collection::vec(any_op(), 8..26);
    let result = runner.run(&sequences, |operations| {
        let mut run = Run::new();
        for operation in &operations {
            run.step(operation)?;
        }
        run.end()
    });
    if let Err(error) = result {
        panic!("{error}");
    }
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
        ws.open().recover(true, ws.now()).unwrap_or_else(|error| panic!("{what}: {error}"));
        let (stands_on, is_restored) = (ws.open().current().unwrap(), ws.read("a").unwrap() == b"1\n");
        assert_eq!(stands_on, Some(if is_restored { one } else { two }), "{what}: where the workspace stands");
        let undone = ws.open().undo(ws.now()).unwrap();
        assert_eq!(undone.is_some(), is_restored, "{what}: what can be undone");
        assert_eq!(ws.read("a").unwrap(), b"2\n", "{what}");
    }
}
