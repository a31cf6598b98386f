//! Reverts of prompts and sessions: whose work goes, and whose stays.

use backtrail::{Author, CheckpointId, Kind, Origin, RevertRequest, RevertTarget, SaveRequest, StepRequest};
use backtrail_testkit::TestWorkspace;

fn origin(session: &str, author: Option<Author>) -> Origin {
    Origin { session: Some(session.into()), turn: Some(1), author, ..Origin::default() }
}

fn prompt(ws: &TestWorkspace, session: &str) -> CheckpointId {
    let origin = origin(session, Some(Author::Other));
    let request = SaveRequest { kind: Some(Kind::Turn), allow_empty: true, origin, ..SaveRequest::default() };
    ws.save_with(&request).checkpoint.id
}

fn call(ws: &TestWorkspace, session: &str, author: Author, paths: &[&str]) -> StepRequest {
    StepRequest {
        origin: origin(session, Some(author)),
        call: Some(format!("call of {session}")),
        paths: paths.iter().map(|path| ws.workspace_path(path)).collect(),
        ..StepRequest::default()
    }
}

fn begins(ws: &TestWorkspace, session: &str, paths: &[&str]) {
    ws.open().step(&call(ws, session, Author::Other, paths), ws.now()).unwrap();
}

fn ends(ws: &TestWorkspace, session: &str, paths: &[&str]) {
    ws.open().step_done(&call(ws, session, Author::Agent, paths), ws.now()).unwrap();
}

#[test]
fn a_file_that_no_running_call_names_is_shared_and_stays() {
    let ws = TestWorkspace::new();
    for name in ["a", "b", "c"] {
        ws.write(name, "1\n");
    }
    ws.save();
    prompt(&ws, "one");
    prompt(&ws, "two");
    begins(&ws, "one", &["a"]);
    begins(&ws, "two", &["b"]);
    for name in ["a", "b", "c"] {
        ws.write(name, "2\n");
    }
    ends(&ws, "one", &["a"]);
    ends(&ws, "two", &["b"]);
    for (session, expected) in [("one", ["1\n", "2\n", "2\n"]), ("two", ["2\n", "1\n", "2\n"])] {
        let request = RevertRequest::whole(RevertTarget::Session(session.into()));
        let done = ws.open().revert(&request, ws.now()).unwrap();
        assert_eq!(done.shared, [ws.workspace_path("c")], "{session}");
        let found = ["a", "b", "c"].map(|name| String::from_utf8(ws.read(name).unwrap()).unwrap());
        assert_eq!(found, expected, "{session}");
        ws.open().undo(ws.now()).unwrap().unwrap();
    }
}

/// An agent does not report the end of a call that was denied. The next prompt of its session ends it.
#[test]
fn a_call_that_never_ended_does_not_count_after_the_next_prompt() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    prompt(&ws, "one");
    prompt(&ws, "two");
    begins(&ws, "two", &[]);
    prompt(&ws, "two");
    begins(&ws, "one", &[]);
    ws.write("a", "2\n");
    ends(&ws, "one", &[]);
    let done = ws.open().revert(&RevertRequest::whole(RevertTarget::Session("one".into())), ws.now()).unwrap();
    assert_eq!((ws.read("a").unwrap(), done.shared), (b"1\n".to_vec(), Vec::new()));
}

/// Records of earlier versions have no author. It follows from the event that the hook recorded.
#[test]
fn the_author_of_an_older_record_is_derived() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    ws.save();
    let turn = prompt(&ws, "one");
    let step = |event: &str, bytes: &str| {
        ws.write("a", bytes);
        let metadata = [("event".to_owned(), event.into())].into_iter().collect();
        let request = StepRequest { origin: origin("one", None), metadata, ..StepRequest::default() };
        ws.open().step_done(&request, ws.now()).unwrap().unwrap().checkpoint.origin.author
    };
    assert_eq!(step("before tool", "by hand\n"), Some(Author::Other));
    assert_eq!(step("after tool", "by hand\nby the agent\n"), Some(Author::Agent));
    assert_eq!(step("something else", "by hand\nby the agent\n\n"), None);
    ws.write("a", "by hand\nby the agent\n");
    ws.open().revert(&RevertRequest::whole(RevertTarget::Checkpoint(turn)), ws.now()).unwrap();
    assert_eq!(ws.read("a").unwrap(), b"by hand\n");
}
