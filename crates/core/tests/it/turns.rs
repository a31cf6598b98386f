//! Prompts: the changes that were made for each, and the list of prompts behind the current checkpoint.

use backtrail::{Kind, Origin, RestoreRequest, SaveRequest, Scope, StepRequest, WorkspacePath};
use backtrail_testkit::TestWorkspace;

fn prompt(ws: &TestWorkspace, number: u64) -> backtrail::CheckpointId {
    let request = SaveRequest {
        kind: Some(Kind::Turn),
        allow_empty: true,
        origin: Origin {
            session: Some("s".into()),
            turn: Some(number),
            prompt: Some(format!("prompt {number}")),
            ..Origin::default()
        },
        ..SaveRequest::default()
    };
    ws.save_with(&request).checkpoint.id
}

fn step(ws: &TestWorkspace, turn: u64) {
    let request = StepRequest {
        origin: Origin { session: Some("s".into()), turn: Some(turn), ..Origin::default() },
        ..StepRequest::default()
    };
    ws.open().step_done(&request, ws.now()).unwrap();
}

#[test]
fn a_prompt_shows_all_changes_that_were_made_for_it() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let first = prompt(&ws, 1);
    ws.write("b", "1\n");
    step(&ws, 1);
    ws.write("a", "2\n");
    ws.remove("b");
    ws.write("c", "1\n");
    step(&ws, 1);
    ws.write("by hand", "1\n");
    let second = prompt(&ws, 2);
    let paths = |id| {
        let changes = ws.open().show(&id).unwrap().turn_changes.unwrap();
        changes.iter().map(|change| change.path.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(paths(first), ["a", "c"]);
    assert_eq!(paths(second), [""; 0]);
    let step = ws.open().resolve("step:1", &jiff::Zoned::now()).ok();
    assert!(step.is_none_or(|id| ws.open().show(&id).unwrap().turn_changes.is_none()));
}

#[test]
fn prompts_are_listed_from_the_current_checkpoint_backwards() {
    let ws = TestWorkspace::new();
    let turns: Vec<_> = (1..=3)
        .map(|number| {
            ws.write("a", number.to_string());
            prompt(&ws, number)
        })
        .collect();
    let behind = || ws.open().turns_behind().unwrap().iter().map(|turn| turn.id).collect::<Vec<_>>();
    assert_eq!(behind(), [turns[2], turns[1], turns[0]], "the third is listed although nothing was done for it yet");
    ws.write("a", "work for the third");
    assert_eq!(behind(), [turns[2], turns[1], turns[0]]);
    ws.open().restore(&RestoreRequest::whole(turns[1]), ws.now()).unwrap();
    assert_eq!(behind(), [turns[0]]);
    ws.write("a", "another way");
    let fourth = prompt(&ws, 4);
    ws.write("a", "done");
    assert_eq!(behind(), [fourth, turns[1], turns[0]], "the third is on another fork of the timeline");
}

/// Regression: a prompt for which nothing was done was skipped, and the previous one was taken back instead, even that
/// of another session. After a restore to a prompt, that prompt is not listed any more, also after any number of undos
/// and redos.
#[test]
fn a_restored_prompt_is_distinguished_from_a_new_one() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let first = prompt(&ws, 1);
    ws.write("a", "2");
    let second = prompt(&ws, 2);
    let behind = || ws.open().turns_behind().unwrap().iter().map(|turn| turn.id).collect::<Vec<_>>();
    assert_eq!(behind(), [second, first], "the second is new");
    ws.write("a", "work for the second");
    let path = Scope::Paths(vec![WorkspacePath::new(b"a").unwrap()]);
    ws.open().restore(&RestoreRequest { scope: path, ..RestoreRequest::whole(second) }, ws.now()).unwrap();
    assert_eq!(behind(), [second, first], "only a file was restored");
    ws.write("a", "work for the second");
    ws.open().restore(&RestoreRequest::whole(second), ws.now()).unwrap();
    assert_eq!(behind(), [first], "the second is taken back");
    ws.open().restore(&RestoreRequest::whole(first), ws.now()).unwrap();
    assert!(behind().is_empty());
    ws.open().undo(ws.now()).unwrap();
    assert_eq!(behind(), [first], "as before the restore that is undone");
    ws.open().undo(ws.now()).unwrap();
    assert_eq!(behind(), [second, first]);
    ws.open().redo(ws.now()).unwrap();
    assert_eq!(behind(), [first]);
    let third = prompt(&ws, 3);
    assert_eq!(behind(), [third, second, first], "the third is new, on top of the restored state");
}
