//! What retention never takes, and what a checkpoint that stays keeps with it.

use backtrail::{Checkpoint, Kind, ListFilter, RestoreRequest, SaveRequest, Settings};
use backtrail_testkit::TestWorkspace;

/// Takes an automatic checkpoint of a file with this content.
fn automatic(ws: &TestWorkspace, content: &str) -> Checkpoint {
    ws.write("file", content);
    ws.save_with(&SaveRequest { kind: Some(Kind::Automatic), ..SaveRequest::default() }).checkpoint
}

#[test]
fn where_the_workspace_stands_and_what_undo_needs_stay() {
    let ws = TestWorkspace::new();
    let [first, second, third] = ["1\n", "2\n", "3\n"].map(|content| automatic(&ws, content));
    ws.write("file", "unsaved\n");
    ws.open().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap();
    let mut settings = Settings::default();
    (settings.retention.automatic, settings.retention.safety) = (1, 1);
    let workspace = ws.open_with(&ws.root(), settings);
    let pruned = workspace.prune(ws.now()).unwrap();
    assert_eq!(pruned.deleted, [second.id], "the newest stays, and the oldest, on which the workspace stands");
    let listed: Vec<_> = workspace.list(&ListFilter::default()).unwrap().iter().map(|found| found.id).collect();
    assert!(listed.contains(&first.id) && listed.contains(&third.id), "{listed:?}");
    assert_eq!(workspace.current().unwrap(), Some(first.id));
    workspace.undo(ws.now()).unwrap().expect("there is something to undo");
    assert_eq!(ws.read("file").unwrap(), b"unsaved\n");
    ws.assert_store_is_sound();
}

#[test]
fn what_a_checkpoint_that_stays_needs_stays_with_it() {
    let ws = TestWorkspace::new();
    ws.write("shared/deep/file", "in each of them\n");
    ws.write_mode("secret", "with a mode of its own\n", 0o640);
    let save = |number: u8| {
        ws.write("own", format!("{number}\n"));
        let attachments = vec![("log".to_owned(), vec![number; 10_000])];
        let saved = ws.save_with(&SaveRequest { attachments, ..SaveRequest::default() });
        (saved.checkpoint.id, ws.manifest())
    };
    let made: Vec<_> = (0..4).map(save).collect();
    ws.open().delete(&[made[0].0, made[2].0], false, ws.now()).unwrap();
    ws.open().prune(ws.now()).unwrap();
    assert!(!ws.is_in_store(b"2\n"), "what only a deleted one had is gone");
    assert!(ws.open().verify().unwrap().damaged.is_empty());
    ws.assert_store_is_sound();
    for number in [1, 3] {
        let (id, tree) = &made[number];
        assert_eq!(ws.open().attachment(id, "log").unwrap(), vec![number as u8; 10_000]);
        ws.open().restore(&RestoreRequest::whole(*id), ws.now()).unwrap();
        assert_eq!(tree.differences(&ws.manifest()), Vec::<String>::new());
    }
}

#[test]
fn a_workspace_stands_on_something_while_anything_is_left() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let one = ws.save();
    ws.write("a", "2");
    let two = ws.save();
    ws.open().restore(&RestoreRequest::whole(one.id), ws.now()).unwrap();
    ws.open().delete(&[one.id], false, ws.now()).unwrap();
    assert_eq!(ws.open().current().unwrap(), Some(two.id));
    assert_eq!(ws.open().status(None).unwrap().changes.len(), 1, "the files are those of the one that was deleted");
}
