//! The history of one path.

use backtrail::{ChangeStatus, ErrorCode, RestoreRequest, SaveRequest};
use backtrail_testkit::TestWorkspace;

#[test]
fn the_history_of_a_path_lists_every_version() {
    let ws = TestWorkspace::new();
    ws.write("beside", "1\n");
    let mut expected = Vec::new();
    let mut save = |status: Option<(ChangeStatus, Option<u64>)>| {
        let saved = ws.save_with(&SaveRequest { allow_empty: true, ..SaveRequest::default() }).checkpoint;
        expected.extend(status.map(|(status, bytes)| (saved.id, status, bytes)));
        saved
    };
    save(None);
    ws.write("p", "1\n");
    let first = save(Some((ChangeStatus::Added, Some(2))));
    ws.write("beside", "2\n");
    save(None);
    ws.chmod("p", 0o755);
    save(Some((ChangeStatus::ModeChanged, Some(2))));
    ws.write("p", "longer\n");
    save(Some((ChangeStatus::Modified, Some(7))));
    ws.remove("p");
    save(Some((ChangeStatus::Deleted, None)));
    ws.symlink("beside", "p");
    save(Some((ChangeStatus::Added, Some(6))));
    ws.open().restore(&RestoreRequest::whole(first.id), ws.now()).unwrap();
    expected.reverse();
    let found = ws.open().history(&ws.workspace_path("p")).unwrap();
    let found: Vec<_> = found.iter().map(|version| (version.checkpoint, version.status, version.bytes)).collect();
    assert_eq!(found, expected);
    let error = ws.open().history(&ws.workspace_path("nowhere")).unwrap_err();
    assert_eq!(error.code(), ErrorCode::UnknownPath);
}
