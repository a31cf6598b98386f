//! Handmade stores whose trees are deeper than any scan creates: a tree that is too deep is refused at once, and a
//! shallower one is handled quickly.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use backtrail::{CheckpointId, Error, ErrorCode, RestoreRequest, SaveRequest, Scope};
use backtrail_testkit::{TestWorkspace, git_output_with};

use crate::hostile::{RECORD, publish_checkpoint};

/// The most levels that a stored tree may have.
const MAX_LEVELS: usize = 4_096;

/// Publishes a checkpoint with one file below this number of directories.
fn publish_deep_checkpoint(ws: &TestWorkspace, levels: usize) -> CheckpointId {
    let path = format!("{}bottom", "d/".repeat(levels));
    let who = "Backtrail <backtrail@localhost> 1800000000 +0000";
    let commands = format!("commit refs/deep\ncommitter {who}\ndata 0\nM 100644 inline {path}\ndata 2\n1\n\n");
    let made = git_output_with(&ws.store(), &["fast-import", "--quiet"], commands.into_bytes());
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let tree = git_output_with(&ws.store(), &["rev-parse", "refs/deep^{tree}"], Vec::new()).stdout;
    std::fs::remove_file(ws.store().join("refs/deep")).unwrap();
    publish_checkpoint(ws, String::from_utf8(tree).unwrap().trim(), RECORD)
}

/// Removes a chain of directories `d` level by level, because recursion would overflow the stack.
fn remove_chain(top: &Path) {
    let below = top.with_file_name("below");
    while top.exists() {
        let has_more = std::fs::rename(top.join("d"), &below).is_ok();
        std::fs::remove_file(top.join("bottom")).ok();
        std::fs::remove_dir(top).unwrap();
        if has_more {
            std::fs::rename(&below, top).unwrap();
        }
    }
}

fn workspace() -> TestWorkspace {
    let ws = TestWorkspace::in_memory();
    ws.write("file", "1\n");
    ws.save();
    ws
}

/// Regression: a handmade store with three thousand levels took minutes to restore, and the depth was unbounded.
#[test]
fn a_tree_that_is_too_deep_is_refused_at_once() {
    for levels in [MAX_LEVELS + 1, 5_000, 50_000] {
        let ws = workspace();
        let id = publish_deep_checkpoint(&ws, levels);
        let workspace = ws.open();
        let began = Instant::now();
        let refused = |what: &str, error: Error| {
            assert_eq!(error.code(), ErrorCode::StoreDamaged, "{what}: {error}");
            assert!(error.to_string().contains("deep"), "{what}: {error}");
        };
        refused("show", workspace.show(&id).unwrap_err());
        refused("diff", workspace.diff(Some(id), None, &Scope::Whole).unwrap_err());
        refused("plan", workspace.plan_restore(&RestoreRequest::whole(id)).unwrap_err());
        refused("restore", workspace.restore(&RestoreRequest::whole(id), ws.now()).unwrap_err());
        let exported = ws.base().join("exported");
        refused("export", workspace.export(&id, &exported).unwrap_err());
        remove_chain(&exported.join("d"));
        let damaged = workspace.verify().unwrap().damaged;
        assert_eq!(damaged.iter().map(|damage| damage.id.as_str()).collect::<Vec<_>>(), [id.to_string()]);
        assert!(began.elapsed() < Duration::from_secs(30), "{levels}: {:?}", began.elapsed());

        assert_eq!(ws.read("file").unwrap(), b"1\n", "the workspace was changed");
        assert!(!ws.exists("d"));
        ws.write("file", "2\n");
        assert!(workspace.save(&SaveRequest::default(), ws.now()).unwrap().created);
        workspace.prune(ws.now()).unwrap();
    }
}

#[test]
fn the_deepest_allowed_tree_is_compared_and_restored_quickly() {
    let ws = workspace();
    let id = publish_deep_checkpoint(&ws, MAX_LEVELS);
    let workspace = ws.open();
    let began = Instant::now();
    assert_eq!(workspace.verify().unwrap().damaged.len(), 0);
    assert_eq!(workspace.diff(Some(id), None, &Scope::Whole).unwrap().changes.len(), 2);
    assert_eq!(workspace.restore(&RestoreRequest::whole(id), ws.now()).unwrap().changes.len(), 2);
    let exported = ws.base().join("exported");
    assert_eq!(workspace.export(&id, &exported).unwrap(), 1);
    workspace.prune(ws.now()).unwrap();
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    for top in [ws.path("d"), exported.join("d")] {
        assert!(top.exists());
        remove_chain(&top);
    }
}
