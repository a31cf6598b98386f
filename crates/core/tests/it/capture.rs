//! A save captures exactly the files on disk.

use backtrail::{ErrorCode, ListFilter, Origin, SaveRequest};
use backtrail_testkit::{Found, TestWorkspace};

#[test]
fn git_reads_exactly_what_is_on_disk() {
    let ws = TestWorkspace::new();
    ws.write("a.txt", "text\n");
    ws.write_mode("bin/tool", "#!/bin/sh\n", 0o755);
    ws.write("d/e/deep", b"\0\x01\x02");
    ws.symlink("a.txt", "link");
    ws.mkdir("empty/inner");
    let saved = ws.save();
    let expected: Vec<_> = ws
        .manifest()
        .0
        .into_iter()
        .filter_map(|(path, found)| match found {
            Found::File(mode, bytes) => {
                let mode = if mode & 0o100 != 0 { "100755" } else { "100644" };
                Some((path, mode.to_owned(), backtrail_testkit::blob_id(&bytes)))
            }
            Found::Link(target) => Some((path, "120000".to_owned(), backtrail_testkit::blob_id(&target))),
            _ => None,
        })
        .collect();
    assert_eq!(ws.tree_in_store(&saved.id), expected);
    ws.assert_store_is_sound();
}

#[test]
fn a_save_without_changes_creates_no_checkpoint() {
    let ws = TestWorkspace::new();
    ws.write("a", "1\n");
    let first = ws.save();
    let again = ws.save_with(&SaveRequest::default());
    assert!(!again.created);
    assert_eq!(again.checkpoint.id, first.id);
}

#[test]
fn if_changed_creates_a_checkpoint_only_if_something_changed() {
    let ws = TestWorkspace::new();
    let request = SaveRequest {
        name: Some("one".into()),
        if_changed: true,
        origin: Origin { step: Some(1), ..Origin::default() },
        ..SaveRequest::default()
    };
    let first = ws.save_with(&request);
    assert!(first.created, "there was no checkpoint before");
    let again = SaveRequest {
        name: Some("two".into()),
        origin: Origin { step: Some(2), ..Origin::default() },
        ..request.clone()
    };
    let nothing = ws.save_with(&again);
    assert_eq!((nothing.created, nothing.checkpoint.id), (false, first.checkpoint.id));
    assert_eq!(ws.open().list(&ListFilter::default()).unwrap().len(), 1);
    ws.write("a", "1\n");
    assert!(ws.save_with(&again).created);
    let both = SaveRequest { allow_empty: true, ..request };
    assert_eq!(ws.open().save(&both, ws.now()).unwrap_err().code(), ErrorCode::Usage);
}
