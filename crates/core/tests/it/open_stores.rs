//! A process with many workspaces keeps some of their stores open, and never reads stale data.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use backtrail::{CheckpointId, ListFilter, OpenStores, Options, SaveRequest, Workspace};
use backtrail_testkit::TestWorkspace;

fn workspaces(ws: &TestWorkspace, count: usize) -> Vec<PathBuf> {
    let roots = (0..count).map(|number| {
        let root = ws.path(format!("project-{number}"));
        ws.write(format!("project-{number}/file"), format!("{number}\n"));
        ws.open_at(&root).save(&SaveRequest::default(), ws.now()).unwrap();
        root
    });
    roots.collect()
}

fn open(ws: &TestWorkspace, root: &Path, kept: &Arc<OpenStores>) -> Workspace {
    ws.open_as(root, Options { open_stores: Some(Arc::clone(kept)), ..Options::default() })
}

fn read(workspace: &Workspace, ws: &TestWorkspace, id: &CheckpointId) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut take = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok(())
    };
    workspace.cat(id, &ws.workspace_path("file"), &mut take).unwrap().unwrap();
    bytes
}

#[test]
fn no_more_stores_than_the_limit_stay_open() {
    let ws = TestWorkspace::new();
    let roots = workspaces(&ws, 5);
    let kept = Arc::new(OpenStores::new(3));
    for _ in 0..2 {
        for root in &roots {
            assert_eq!(open(&ws, root, &kept).list(&ListFilter::default()).unwrap().len(), 1);
            assert!(kept.count() <= 3);
        }
    }
    assert_eq!(kept.opened(), 10, "each of five stores evicts the one that is needed next");
    for root in roots.iter().rev().take(3).cycle().take(30) {
        open(&ws, root, &kept).list(&ListFilter::default()).unwrap();
    }
    assert_eq!(kept.opened(), 10, "the last three are still open");
    let none = Arc::new(OpenStores::new(0));
    open(&ws, &roots[0], &none).list(&ListFilter::default()).unwrap();
    assert_eq!(none.count(), 0);
}

#[test]
fn changes_by_another_process_are_seen() {
    let ws = TestWorkspace::new();
    ws.write("file", "0\n");
    ws.save();
    let kept = Arc::new(OpenStores::new(3));
    let reader = open(&ws, &ws.root(), &kept);
    for round in 1..130 {
        ws.write("file", format!("{round}\n"));
        let saved = ws.save();
        assert_eq!(read(&reader, &ws, &saved.id), format!("{round}\n").into_bytes());
        if round % 40 == 0 {
            ws.open().prune(ws.now()).unwrap();
            assert_eq!(reader.list(&ListFilter::default()).unwrap().len(), round + 1);
        }
    }
    // The store is moved away, and a new one takes its place.
    std::fs::rename(ws.store(), ws.outside().join("store")).unwrap();
    assert!(reader.list(&ListFilter::default()).unwrap().is_empty());
    ws.write("file", "anew\n");
    let saved = ws.save();
    assert_eq!(read(&reader, &ws, &saved.id), b"anew\n");
}
