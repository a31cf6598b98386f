//! A caller may ask an operation to stop. It stops before anything changed, or not at all.

use backtrail::{Error, ErrorCode, RestoreRequest, SaveRequest};
use backtrail_testkit::TestWorkspace;

#[test]
fn a_stopped_save_leaves_no_checkpoint() {
    let ws = TestWorkspace::new();
    ws.write("a/b/c", "1");
    let workspace = ws.open();
    workspace.progress().stop();
    let stopped = workspace.save(&SaveRequest::default(), ws.now());
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    assert_eq!(Error::Stopped.code(), ErrorCode::Interrupted);
    assert_eq!(ws.open().current().unwrap(), None);
    ws.save();
    ws.assert_store_is_sound();
}

#[test]
fn a_stopped_restore_leaves_every_file_as_it_was() {
    let ws = TestWorkspace::new();
    ws.write("a", "1");
    let first = ws.save();
    ws.write("a", "2");
    let before = ws.manifest();
    let workspace = ws.open();
    workspace.progress().stop();
    let stopped = workspace.restore(&RestoreRequest::whole(first.id), ws.now());
    assert!(matches!(stopped, Err(Error::Stopped)), "{stopped:?}");
    assert_eq!(ws.manifest(), before);
    assert!(!ws.open().has_interrupted_restore().unwrap());
    assert!(matches!(workspace.status(None), Err(Error::Stopped)));
    ws.open().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap();
    assert_eq!(ws.read("a").unwrap(), b"1");
}
